package redis

import (
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
)

// A server that is killed has again what it had when it was kept, with what was set while it ran.
func TestKept(t *testing.T) {
	fill := []string{
		"set s 'a b'", "rpush l a b c", "hset h f v g w", "zadd z 1.5 a", "config set maxmemory 64mb",
		"script load 'return 1'", "select 3", "set other 1",
	}
	spoil := []string{"set s spoilt", "del l", "config set maxmemory 1mb", "set new 1", "select 3", "flushdb"}
	look := []string{
		"get s", "lrange l 0 -1", "hgetall h", "zrange z 0 -1 withscores", "config get maxmemory",
		"script exists e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "exists new", "select 3", "get other",
	}
	for name, args := range map[string][]string{
		"in memory": {"--save", ""}, "with snapshots": nil, "append-only": {"--appendonly", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			var keep kit.Keeping
			run := func(kept any) func() {
				env := m.Env(append([]string{"redis-server"}, args...)...)
				env.Dir = "/data"
				env.OnKeep(func(f kit.Keeping) { keep = f }, kept)
				r := m.Run(Main, env)
				r.Await("Ready to accept connections")
				return func() {
					r.Signal(syscall.SIGKILL)
					r.Wait()
				}
			}
			kill := run(nil)
			say(t, m, fill...)
			want := say(t, m, look...)
			kept, bytes, err := keep(t.Context())
			if err != nil || bytes == 0 {
				t.Fatalf("%d bytes, %v", bytes, err)
			}
			files, err := m.Namespace.Copy("/data")
			if err != nil {
				t.Fatal(err)
			}
			say(t, m, spoil...)
			kill()
			if err := m.Namespace.Fill("/data", files); err != nil {
				t.Fatal(err)
			}
			defer run(kept)()
			if diff := cmp.Diff(want, say(t, m, look...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
