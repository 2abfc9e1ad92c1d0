package memcached

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// A server that takes over what another has kept answers as that one did then.
func TestKept(t *testing.T) {
	m := kittest.New(t).Machine("cache", "10.244.0.2")
	m.User = kit.User{UID: 11211, GID: 11211}
	var keep kit.Keeping
	run := func(kept any) *kittest.Run {
		env := m.Env("memcached", "-m", "2", "-M")
		env.OnKeep(func(f kit.Keeping) { keep = f }, kept)
		r := m.Run(Main, env)
		m.WaitListen(":11211")
		return r
	}
	first := run(nil)
	var fill, look strings.Builder
	for i := range 50 {
		fmt.Fprintf(&fill, "set key%d %d 0 %d\r\n%s\r\n", i, i%3, 100*i, strings.Repeat("x", 100*i))
		fmt.Fprintf(&look, "gets key%d\r\n", i)
	}
	talk(t, dialer(m), fill.String())
	want := talk(t, dialer(m), look.String())
	kept, bytes, err := keep(t.Context())
	if err != nil || bytes < 100*50 {
		t.Fatalf("%d bytes, %v", bytes, err)
	}
	talk(t, dialer(m), "delete key1\r\nset key2 0 0 1\r\ny\r\nflush_all\r\n")
	first.Signal(9)
	first.Wait()
	run(kept)
	if diff := cmp.Diff(want, talk(t, dialer(m), look.String())); diff != "" {
		t.Error(diff)
	}
	if got := talk(t, dialer(m), "set another 0 0 1\r\nz\r\ngets another\r\n"); !strings.Contains(got, " 51\r\n") {
		t.Errorf("the next item is %q", got) // Its number goes on.
	}
}
