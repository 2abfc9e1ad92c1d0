package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is where a server can run.
func machine(t testing.TB) *kittest.Machine {
	m := kittest.New(t).Machine("redis", "10.244.0.2")
	m.Install(Image(nil))
	return m
}

// start runs a server in /data, as the image does.
func start(t testing.TB, m *kittest.Machine, args ...string) *kittest.Run {
	t.Helper()
	env := m.Env(append([]string{"redis-server"}, args...)...)
	env.Dir = "/data"
	r := m.Run(Main, env)
	r.Await("Ready to accept connections")
	return r
}

func connect(t testing.TB, m *kittest.Machine, change ...func(*goredis.Options)) *goredis.Client {
	o := &goredis.Options{
		Addr: m.Addr + ":6379", DisableIdentity: true, MaxRetries: -1,
		Dialer: m.Env().Net.DialContext,
	}
	for _, f := range change {
		f(o)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends lines over a new connection and returns the raw replies, as many as lines.
func say(t testing.TB, m *kittest.Machine, lines ...string) string {
	t.Helper()
	c, err := m.Env().Net.DialContext(context.Background(), "tcp", m.Addr+":6379")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	var out []string
	for _, l := range lines {
		fmt.Fprintf(c, "%s\r\n", l)
		r, err := readReply(in)
		if err != nil {
			return strings.Join(append(out, "<closed>"), "\n")
		}
		out = append(out, strings.TrimSuffix(formatStandard(r, ""), "\n"))
	}
	return strings.Join(out, "\n")
}

func TestClient(t *testing.T) {
	m := machine(t)
	start(t, m)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			c, ctx := connect(t, m, func(o *goredis.Options) { o.Protocol = protocol }), t.Context()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(c.FlushAll(ctx).Err())
			must(c.Set(ctx, "a", "1", 0).Err())
			must(c.IncrBy(ctx, "a", 41).Err())
			if v, err := c.Get(ctx, "a").Int(); v != 42 || err != nil {
				t.Error(v, err)
			}
			if err := c.Get(ctx, "none").Err(); !errors.Is(err, goredis.Nil) {
				t.Error(err)
			}
			// What the social network does: timelines are sorted sets.
			for i := range 30 {
				must(c.ZAddNX(ctx, "timeline", goredis.Z{Score: float64(i), Member: fmt.Sprintf("post-%d", i)}).Err())
			}
			if v, err := c.Do(ctx, "zrevrange", "timeline", 0, 2).StringSlice(); err != nil || fmt.Sprint(v) != "[post-29 post-28 post-27]" {
				t.Error(v, err)
			}
			must(c.HSet(ctx, "h", "f", "v", "g", "w").Err())
			if v, err := c.HGetAll(ctx, "h").Result(); err != nil || v["g"] != "w" || len(v) != 2 {
				t.Error(v, err)
			}
			must(c.RPush(ctx, "l", "x", "y").Err())
			must(c.SAdd(ctx, "s", "x").Err())
			if err := c.LPush(ctx, "a", "x").Err(); err == nil || err.Error() != "WRONGTYPE Operation against a key holding the wrong kind of value" {
				t.Error(err)
			}
			cmds, err := c.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Set(ctx, "t", "1", time.Minute)
				p.Incr(ctx, "t")
				return nil
			})
			must(err)
			if cmds[1].(*goredis.IntCmd).Val() != 2 {
				t.Error(cmds)
			}
			if ttl := c.TTL(ctx, "t").Val(); ttl != time.Minute {
				t.Error(ttl)
			}
			if v, err := c.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{"a"}).Result(); err != nil || v != "42" {
				t.Error(v, err)
			}
			if info, err := c.Info(ctx, "keyspace").Result(); err != nil || !strings.HasPrefix(info, "# Keyspace\r\ndb0:keys=6,expires=1,avg_ttl=") {
				t.Errorf("%q, %v", info, err)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		name, in string // commands, a line each
		want     string
	}{
		{"inline", "PING\nping hello\nset k 'a b'\nget k\nGET \"k\"", "PONG\n\"hello\"\nOK\n\"a b\"\n\"a b\""},
		{"unknown", "foo bar baz", "(error) ERR unknown command `foo`, with args beginning with: `bar`, `baz`, "},
		{"arity", "get\nsetex a\ninfo a b", "(error) ERR wrong number of arguments for 'get' command\n(error) ERR wrong number of arguments for 'setex' command\n(error) ERR wrong number of arguments for 'info' command"},
		{"databases", "select 15\nset only15 1\nselect 0\nget only15\nselect 16\nselect x", "OK\nOK\nOK\n(nil)\n(error) ERR DB index is out of range\n(error) ERR invalid DB index"},
		{"ttl", "set e v ex 100\nttl e\npersist e\nttl e\nttl none\nexpire e 50\nttl e\nset e w keepttl\nttl e\nset e w\nttl e", "OK\n(integer) 100\n(integer) 1\n(integer) -1\n(integer) -2\n(integer) 1\n(integer) 50\nOK\n(integer) 50\nOK\n(integer) -1"},
		{"rename keeps the time", "set r v ex 100\nrename r q\nttl q\nexists r", "OK\nOK\n(integer) 100\n(integer) 0"},
		{"transaction", "multi\nset x 1\nincr x\nexec\nget x", "OK\nQUEUED\nQUEUED\n1) OK\n2) (integer) 2\n\"2\""},
		{"aborted", "multi\nset x 9\nfoo\nexec\nget x", "OK\nQUEUED\n(error) ERR unknown command `foo`, with args beginning with: \n(error) EXECABORT Transaction discarded because of previous errors.\n\"2\""},
		{"discarded", "multi\nset x 9\ndiscard\nget x\nexec", "OK\nQUEUED\nOK\n\"2\"\n(error) ERR EXEC without MULTI"},
		{"auth without password", "auth x\nauth default x", "(error) ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\nOK"},
		{"config", "config get maxmemory\nconfig set maxmemory 100mb\nconfig get maxmemory\nconfig set maxmemory 0\nconfig set port 1\nconfig set foo 1\nconfig set timeout x\nconfig foo", "1) \"maxmemory\"\n2) \"0\"\nOK\n1) \"maxmemory\"\n2) \"104857600\"\nOK\n(error) ERR Unsupported CONFIG parameter: port\n(error) ERR Unsupported CONFIG parameter: foo\n(error) ERR Invalid argument 'x' for CONFIG SET 'timeout' - argument couldn't be parsed into an integer\n(error) ERR Unknown subcommand or wrong number of arguments for 'foo'. Try CONFIG HELP."},
		{"objects", "set o 12\nobject encoding o\nset o hello\nobject encoding o\nzadd oz 1 a\nobject encoding oz\nobject encoding none\nmemory usage o", "OK\n\"int\"\nOK\n\"embstr\"\n(integer) 1\n\"ziplist\"\n(nil)\n(integer) 70"},
		{"names", "client getname\nclient setname me\nclient getname\nclient setname 'a b'", "(nil)\nOK\n\"me\"\n(error) ERR Client names cannot contain spaces, newlines or special characters."},
		{"newer ones", "hexpire h 1 fields 1 f\nexpiretime x", "(error) ERR unknown command `hexpire`, with args beginning with: `h`, `1`, `fields`, `1`, `f`, \n(error) ERR unknown command `expiretime`, with args beginning with: `x`, "},
		{"role", "role\nacl whoami\nwait 0 0", "1) \"master\"\n2) (integer) 0\n3) (empty array)\n\"default\"\n(integer) 0"},
		{"quit", "quit\nping", "OK\n<closed>"},
		{"protocol", "*x\nping", "(error) ERR Protocol error: invalid multibulk length\n<closed>"},
		{"quotes", "set a \"b", "(error) ERR Protocol error: unbalanced quotes in request"},
		{"reset", "select 3\nmulti\nreset\nget k", "OK\nOK\nRESET\n\"a b\""},
	}
	m := machine(t)
	start(t, m)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := say(t, m, strings.Split(tt.in, "\n")...); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestPassword(t *testing.T) {
	m := machine(t)
	start(t, m, "--requirepass", "secret")
	want := "(error) NOAUTH Authentication required.\n(error) WRONGPASS invalid username-password pair or user is disabled.\n(error) WRONGPASS invalid username-password pair or user is disabled.\nOK\n(nil)"
	if got := say(t, m, "get a", "auth wrong", "auth nobody secret", "auth secret", "get a"); got != want {
		t.Errorf("got\n%s", got)
	}
	c := connect(t, m, func(o *goredis.Options) { o.Password = "secret" })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	c = connect(t, m, func(o *goredis.Options) { o.Password = "wrong" })
	if err := c.Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "WRONGPASS") {
		t.Error(err)
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		start(t, m)
		say(t, m, "set a v px 1500", "set b v", "expire b 10", "set c v ex 100", "rpush d x", "pexpire d 20", "set e v ex 1")
		step := func(d time.Duration, want string) {
			t.Helper()
			time.Sleep(d)
			if got := say(t, m, "keys *"); strings.ReplaceAll(got, "\n", " ") != want {
				t.Errorf("after %v: %s", d, got)
			}
		}
		step(19*time.Millisecond, `1) "a" 2) "b" 3) "c" 4) "d" 5) "e"`)
		step(time.Millisecond, `1) "a" 2) "b" 3) "c" 4) "e"`)
		step(time.Second, `1) "a" 2) "b" 3) "c"`)
		step(time.Second, `1) "b" 2) "c"`)
		if got := say(t, m, "ttl b", "pttl c", "expire c 5", "ttl c"); got != "(integer) 8\n(integer) 97980\n(integer) 1\n(integer) 5" {
			t.Error(got)
		}
		step(6*time.Second, `1) "b"`)
		step(3*time.Second, `(empty array)`)
		if got := say(t, m, "info stats"); !strings.Contains(got, `expired_keys:5\r\n`) {
			t.Error(got)
		}
	})
}

// Data on a volume survives: snapshots at the end and at save points, every change in the
// append-only file.
func TestPersistence(t *testing.T) {
	fill := []string{
		"set s 'a b'", "set n 12", "rpush l a b c", "sadd set x y", "hset h f v g w", "zadd z 1.5 a -inf b 2e100 c",
		"set e v ex 1000", "select 3", "set other 1", "xadd stream 1-1 f v",
	}
	look := []string{
		"get s", "get n", "lrange l 0 -1", "sismember set y", "hgetall h", "zrange z 0 -1 withscores", "ttl e", "dbsize",
		"select 3", "get other", "xrange stream - +",
	}
	tests := []struct {
		name string
		args []string
		kill syscall.Signal
		kept bool
		file string // that there is afterwards
	}{
		{"snapshot at the end", nil, syscall.SIGTERM, true, "/data/dump.rdb"},
		{"killed", nil, syscall.SIGKILL, false, ""},
		{"no snapshots", []string{"--save", ""}, syscall.SIGTERM, false, ""},
		{"append-only, killed", []string{"--appendonly", "yes"}, syscall.SIGKILL, true, "/data/appendonly.aof"},
		{"append-only, always", []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}, syscall.SIGTERM, true, "/data/appendonly.aof"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := machine(t)
			r := start(t, m, tt.args...)
			say(t, m, fill...)
			want := say(t, m, look...)
			r.Signal(tt.kill)
			if code := r.Wait(); code != 0 && tt.kill == syscall.SIGTERM {
				t.Errorf("exit %d: %s", code, r.Stdout)
			}
			if tt.file != "" && m.Read(tt.file) == "" {
				t.Errorf("%s is empty", tt.file)
			}
			start(t, m, tt.args...)
			got := say(t, m, look...)
			if (got == want) != tt.kept {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if !tt.kept && say(t, m, "dbsize") != "(integer) 0" {
				t.Error("something is left")
			}
		})
	}
}

// Commands that would give another result each time are kept by their effect, and expiry by date.
func TestAppendOnlyFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		r := start(t, m, "--appendonly", "yes")
		say(t, m, "sadd s a b c", "spop s", "xadd x * f v", "set e v ex 100", "set gone v ex 10", "multi", "incr n", "incr n", "exec", "del none", "rpush q 1", "blpop q 0", "config set appendfsync always")
		aof := m.Read("/data/appendonly.aof")
		for _, part := range []string{string(encode("SREM", "s")[4:10]), "PEXPIREAT", "MULTI", "LPOP"} {
			if !strings.Contains(aof, part) {
				t.Errorf("there is no %q in\n%s", part, aof)
			}
		}
		for _, part := range []string{"SPOP", "$1\r\n*\r\n", "none", "BLPOP"} {
			if strings.Contains(aof, part) {
				t.Errorf("there is %q in\n%s", part, aof)
			}
		}
		look := []string{"smembers s", "xrange x - +", "get n", "llen q"}
		want := say(t, m, look...)
		r.Signal(syscall.SIGKILL)
		r.Wait()
		time.Sleep(50 * time.Second)
		r = start(t, m, "--appendonly", "yes")
		if got := say(t, m, look...); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := say(t, m, "ttl e", "get gone"); got != "(integer) 50\n(nil)" {
			t.Error(got)
		}
		// A rewrite makes it short and keeps it all.
		for range 100 {
			say(t, m, "incr n")
		}
		before := len(m.Read("/data/appendonly.aof"))
		say(t, m, "bgrewriteaof", "set after 1")
		if after := len(m.Read("/data/appendonly.aof")); after >= before {
			t.Errorf("%d bytes before, %d after", before, after)
		}
		r.Signal(syscall.SIGKILL)
		r.Wait()
		// The end of the last command is missing.
		data := m.Read("/data/appendonly.aof")
		m.Write("/data/appendonly.aof", data+"*3\r\n$3\r\nset\r\n$1\r\nz")
		r = start(t, m, "--appendonly", "yes")
		r.Await("AOF loaded anyway because aof-load-truncated is enabled")
		if got := say(t, m, "get n", "get after", "ttl e"); got != "\"102\"\n\"1\"\n(integer) 50" {
			t.Error(got)
		}
		r.Signal(syscall.SIGKILL)
		r.Wait()
		m.Write("/data/appendonly.aof", "rubbish\x00\"\r\n*x\r\n")
		env := m.Env("redis-server", "--appendonly", "yes")
		env.Dir = "/data"
		r = m.Run(Main, env)
		if code := r.Wait(); code != 1 || !strings.Contains(r.Stdout.String(), "Bad file format reading the append only file") {
			t.Errorf("exit %d: %s", code, r.Stdout)
		}
	})
}

// A disk that fails makes the server refuse changes until it works again.
func TestAppendOnlyFileOnABrokenDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		r := start(t, m, "--appendonly", "yes", "--save", "")
		breaks := func(methods ...string) {
			m.Namespace.SetHook(func(method string, paths ...string) syscall.Errno {
				if slices.Contains(methods, method) && strings.HasPrefix(paths[0], "/data/") {
					return syscall.EIO
				}
				return 0
			})
		}
		say(t, m, "set a 1")
		for _, method := range []string{"write", "fsync"} {
			breaks(method)
			say(t, m, "incr a")
			time.Sleep(2 * time.Second)
			if got := say(t, m, "incr a", "get other"); got != "(error) MISCONF Errors writing to the AOF file: Input/output error\n(nil)" {
				t.Errorf("%s fails: %s", method, got)
			}
			breaks()
			time.Sleep(2 * time.Second)
			if got := say(t, m, "set b 2"); got != "OK" {
				t.Errorf("%s works again: %s", method, got)
			}
		}
		out := r.Stdout.String()
		for _, want := range []string{"Error writing to the AOF file: Input/output error", "AOF write error looks solved", "Fail to fsync the AOF file: Input/output error"} {
			if !strings.Contains(out, want) {
				t.Errorf("the log lacks %q:\n%s", want, out)
			}
		}
		r.Signal(syscall.SIGKILL)
		r.Wait()
		// What was accepted while the disk was broken is not lost.
		r = start(t, m, "--appendonly", "yes", "--save", "", "--appendfsync", "always")
		if got := say(t, m, "get a", "get b"); got != "\"3\"\n\"2\"" {
			t.Error(got)
		}
		// Who has promised that every change is on disk cannot go on.
		breaks("write")
		say(t, m, "incr a")
		if code := r.Wait(); code != 1 || !strings.Contains(r.Stdout.String(), "Can't recover from AOF write error") {
			t.Errorf("exit %d: %s", code, r.Stdout)
		}
	})
}

func TestNoMemory(t *testing.T) {
	m := machine(t)
	env := m.Env("redis-server")
	env.Dir = "/data"
	memory := &kittest.ScarceMemory{Memory: env.Memory}
	env.Memory = memory
	r := m.Run(Main, env)
	r.Await("Ready to accept connections")
	c := connect(t, m)
	if err := c.Set(t.Context(), "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	memory.Refuses.Store(true)
	c.Set(t.Context(), "b", strings.Repeat("x", 1000), 0)
	if code := r.Wait(); code != 134 || !strings.Contains(r.Stdout.String(), "Redis aborting for OUT OF MEMORY") {
		t.Errorf("exit %d: %s", code, r.Stdout)
	}
}

func TestSavePoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		r := start(t, m, "--save", "60", "2")
		say(t, m, "set a 1")
		time.Sleep(2 * time.Minute)
		if strings.Contains(r.Stdout.String(), "Saving") {
			t.Error("saved after one change")
		}
		say(t, m, "set a 2")
		time.Sleep(2 * time.Second)
		r.Await("2 changes in 60 seconds. Saving...")
		r.Await("Background saving terminated with success")
		if got := say(t, m, "info persistence"); !strings.Contains(got, `rdb_changes_since_last_save:0\r\n`) {
			t.Error(got)
		}
	})
}

// A disk that cannot be written stops writes, and reads go on.
func TestDiskFailure(t *testing.T) {
	m := machine(t)
	start(t, m)
	m.Write("/data/dump.rdb/", "") // A directory is in the way.
	got := say(t, m, "set a 1", "save", "set a 2", "get a", "config set stop-writes-on-bgsave-error no", "set a 3")
	if lines := strings.Split(got, "\n"); lines[1] != "(error) ERR" || !strings.HasPrefix(lines[2], "(error) MISCONF Redis is configured to save RDB snapshots") || lines[3] != `"1"` || lines[5] != "OK" {
		t.Errorf("%s", got)
	}
}

func TestEviction(t *testing.T) {
	m := machine(t)
	start(t, m, "--maxmemory", "2mb", "--save", "")
	base := m.Resources.Memory()
	value := strings.Repeat("x", 1000)
	fill := func() (refused int) {
		c := connect(t, m)
		for i := range 2000 {
			if err := c.Set(t.Context(), fmt.Sprintf("k%d", i), value, 0).Err(); err != nil {
				if err.Error() != errOOM {
					t.Fatal(err)
				}
				refused++
			}
		}
		return refused
	}
	if n := fill(); n < 500 {
		t.Errorf("%d were refused", n)
	}
	if got := say(t, m, "get k0", "del k0", "info stats"); !strings.Contains(got, "x") || strings.Contains(got, "OOM") {
		t.Error(got[:100])
	}
	say(t, m, "config set maxmemory-policy allkeys-lru")
	if n := fill(); n != 0 {
		t.Errorf("%d were refused", n)
	}
	if held := m.Resources.Memory() - base; held > 2<<20 || held < 1<<20 {
		t.Errorf("%d bytes are held", held)
	}
	say(t, m, "flushall")
	if held := m.Resources.Memory() - base; held > 10*clientMemory {
		t.Errorf("%d bytes are held by nothing", held)
	}
}

// What the ledger says of memory follows what is in the keys.
func TestMemory(t *testing.T) {
	m := machine(t)
	start(t, m)
	c, ctx := connect(t, m), t.Context()
	used := func() int64 { return m.Resources.Memory() }
	c.Ping(ctx)
	base := used()
	member := strings.Repeat("m", 100)
	for i := range 1000 {
		c.ZAdd(ctx, "z", goredis.Z{Score: float64(i), Member: fmt.Sprintf("%s%04d", member, i)})
	}
	full := used() - base
	if full < 1000*100 || full > 1000*400 {
		t.Errorf("a sorted set of 1000 members of 104 bytes takes %d", full)
	}
	c.ZRemRangeByRank(ctx, "z", 0, 499)
	if half := used() - base; half < full*4/10 || half > full*6/10 {
		t.Errorf("half of it takes %d of %d", half, full)
	}
	c.Rename(ctx, "z", "y")
	if moved := used() - base; moved < full*4/10 || moved > full*6/10 {
		t.Errorf("renamed it takes %d of %d", moved, full)
	}
	c.Del(ctx, "y")
	if left := used() - base; left != 0 {
		t.Errorf("%d bytes are left", left)
	}
}

func TestBlocking(t *testing.T) {
	m := machine(t)
	start(t, m)
	c := connect(t, m, func(o *goredis.Options) { o.ReadTimeout = -1 })
	type popped struct {
		v   []string
		err error
	}
	got := make(chan popped)
	go func() {
		v, err := c.BLPop(context.Background(), 0, "q").Result()
		got <- popped{v, err}
	}()
	other := connect(t, m)
	for !strings.Contains(other.Info(t.Context(), "clients").Val(), "blocked_clients:1") {
		time.Sleep(time.Millisecond)
	}
	if err := other.RPush(t.Context(), "q", "v").Err(); err != nil {
		t.Fatal(err)
	}
	if p := <-got; p.err != nil || !slices.Equal(p.v, []string{"q", "v"}) {
		t.Error(p)
	}
	if n := other.Exists(t.Context(), "q").Val(); n != 0 || !strings.Contains(say(t, m, "info keyspace"), `# Keyspace\r\n"`) {
		t.Error(n, say(t, m, "info keyspace"))
	}
	// A client that goes while it waits is gone.
	nc, err := m.Env().Net.DialContext(t.Context(), "tcp", m.Addr+":6379")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(nc, "BLPOP q 0\r\n")
	for !strings.Contains(other.Info(t.Context(), "clients").Val(), "blocked_clients:1") {
		time.Sleep(time.Millisecond)
	}
	nc.Close()
	for !strings.Contains(other.Info(t.Context(), "clients").Val(), "blocked_clients:0") {
		time.Sleep(time.Millisecond)
	}
	other.RPush(t.Context(), "q", "kept")
	if v := other.LPop(t.Context(), "q").Val(); v != "kept" {
		t.Error(v)
	}
}

func TestPubSub(t *testing.T) {
	m := machine(t)
	start(t, m)
	c := connect(t, m)
	sub := c.Subscribe(t.Context(), "news")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.Publish(t.Context(), "news", "hello").Val(); n != 1 {
		t.Errorf("%d receivers", n)
	}
	msg, err := sub.ReceiveMessage(t.Context())
	if err != nil || msg.Payload != "hello" {
		t.Error(msg, err)
	}
	sub.Close()
	for c.Publish(t.Context(), "news", "gone").Val() != 0 { // Once the server has noticed.
	}
}

func TestMonitor(t *testing.T) {
	m := machine(t)
	start(t, m)
	nc, err := m.Env().Net.DialContext(t.Context(), "tcp", m.Addr+":6379")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	fmt.Fprint(nc, "MONITOR\r\n")
	if line, _ := in.ReadString('\n'); line != "+OK\r\n" {
		t.Fatal(line)
	}
	say(t, m, "set a 'b\\n'", "auth secret", "select 2", "get x")
	for _, want := range []string{`] "set" "a" "b\\n"`, `[0 `, `[2 `} {
		line, err := in.ReadString('\n')
		if err != nil || !strings.Contains(line, want) || strings.Contains(line, "secret") {
			t.Errorf("%q does not have %q: %v", line, want, err)
		}
	}
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		start(t, m, "--maxclients", "2", "--timeout", "10")
		a, b := connect(t, m), connect(t, m)
		a.Ping(t.Context())
		b.Ping(t.Context())
		if got := say(t, m, "ping"); got != "(error) ERR max number of clients reached" {
			t.Error(got)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if got := say(t, m, "ping"); got != "PONG" {
			t.Error(got)
		}
	})
}

// While one command runs, the others wait; it is in the slow log.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := machine(t)
		start(t, m)
		stuck := connect(t, m)
		go stuck.Do(context.Background(), "debug", "sleep", "3")
		synctest.Wait()
		begin := time.Now()
		if got := say(t, m, "ping"); got != "PONG" || time.Since(begin) != 3*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
		if got := say(t, m, "slowlog len", "slowlog get"); !strings.Contains(got, "(integer) 3000000\n") || !strings.Contains(got, `1) "DEBUG"`) {
			t.Error(got)
		}
	})
}

func TestStartAndStop(t *testing.T) {
	m := machine(t)
	r := start(t, m)
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, line := range []string{
		" # oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo", " # Warning: no config file specified, using the default config.",
		"1:M ", " * Running mode=standalone, port=6379.", "1:signal-handler (", ") Received SIGTERM scheduling shutdown...",
		" # User requested shutdown...", " * Saving the final RDB snapshot before exiting.", " * DB saved on disk", " # Redis is now ready to exit, bye bye...",
	} {
		if !strings.Contains(r.Stdout.String(), line) {
			t.Errorf("there is no %q in\n%s", line, r.Stdout)
		}
	}
	r = start(t, m)
	r.Await("DB loaded from disk")
	if got := say(t, m, "set a 1", "shutdown nosave"); got != "OK\n<closed>" {
		t.Error(got)
	}
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	start(t, m)
	if got := say(t, m, "get a"); got != "(nil)" {
		t.Error(got)
	}
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		name  string
		args  []string
		files map[string]string
		code  int
		want  string
	}{
		{"version", []string{"--version"}, nil, 0, "Redis server v=6.2.4 sha=00000000:0 malloc=jemalloc-5.1.0 bits=64 build=" + buildID},
		{"no file", []string{"/none.conf"}, nil, 1, "Fatal error, can't open config file '/none.conf': No such file or directory"},
		{"directive", []string{"/r.conf"}, map[string]string{"/r.conf": "# mine\nport 6379\nfoo bar\n"}, 1, "*** FATAL CONFIG FILE ERROR (Redis 6.2.4) ***\nReading the configuration file, at line 3\n>>> 'foo bar'\nBad directive or wrong number of arguments"},
		{"option", []string{"--appendonly", "maybe"}, nil, 1, ">>> 'appendonly \"maybe\"'\nargument must be 'yes' or 'no'"},
		{"dir", []string{"--dir", "/none"}, nil, 1, "Can't chdir to '/none': No such file or directory"},
		{"bind", []string{"--bind", "1.2.3.4"}, nil, 1, "Could not create server TCP listening socket 1.2.3.4:6379: bind: Cannot assign requested address"},
		{"bad snapshot", nil, map[string]string{"/data/dump.rdb": "rubbish"}, 1, "Wrong signature trying to load DB from file"},
		{"cut snapshot", nil, map[string]string{"/data/dump.rdb": "REDIS0009\xfa\x09redis-ver"}, 1, "Unexpected EOF reading RDB file"},
		{"newer snapshot", nil, map[string]string{"/data/dump.rdb": "REDIS0011"}, 1, "Can't handle RDB format version 0011"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := machine(t)
			for name, content := range tt.files {
				m.Write(name, content)
			}
			env := m.Env(append([]string{"redis-server"}, tt.args...)...)
			env.Dir = "/data"
			r := m.Run(Main, env)
			if code, out := r.Wait(), r.Stdout.String()+r.Stderr.String(); code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d: %s", code, out)
			}
		})
	}
	m := machine(t)
	start(t, m)
	r := m.Start(Main, "redis-server")
	if code := r.Wait(); code != 1 || !strings.Contains(r.Stdout.String(), "Could not create server TCP listening socket *:6379: bind: Address already in use") {
		t.Errorf("exit %d: %s", code, r.Stdout)
	}
}

func TestConfigFile(t *testing.T) {
	m := machine(t)
	m.Write("/etc/redis.conf", "bind 0.0.0.0\nrequirepass \"a b\"\nsave 900 1\nsave 300 10\nmaxmemory 1gb\nhash-max-ziplist-entries 512\ndir /data\n")
	env := m.Env("docker-entrypoint.sh", "/etc/redis.conf", "--appendonly", "yes")
	r := m.Run(redisBrand.entrypoint, env)
	r.Await("Ready to accept connections")
	if got := say(t, m, "auth 'a b'", "config get save", "config get maxmemory", "config get dir", "config set save ''", "config rewrite"); got != "OK\n1) \"save\"\n2) \"900 1 300 10\"\n1) \"maxmemory\"\n2) \"1073741824\"\n1) \"dir\"\n2) \"/data\"\nOK\nOK" {
		t.Error(got)
	}
	if conf := m.Read("/etc/redis.conf"); !strings.Contains(conf, "appendonly yes\n") || !strings.Contains(conf, "requirepass \"a b\"\n") || !strings.Contains(conf, "save \"\"\n") {
		t.Error(conf)
	}
	r.Signal(syscall.SIGTERM)
	r.Wait()
	r = m.Run(redisBrand.entrypoint, m.Env("docker-entrypoint.sh", "/etc/redis.conf"))
	r.Await("Ready to accept connections")
}

func TestInfo(t *testing.T) {
	m := machine(t)
	start(t, m)
	c := connect(t, m)
	ctx := t.Context()
	c.Set(ctx, "a", "1", 0)
	c.Get(ctx, "a")
	c.Get(ctx, "none")
	c.Do(ctx, "foo")
	info := c.Info(ctx).Val()
	for _, line := range []string{"# Server", "redis_version:6.2.4", "tcp_port:6379", "connected_clients:1", "keyspace_hits:1", "keyspace_misses:1", "role:master", "db0:keys=1,expires=0,avg_ttl=0", "# CPU", "rdb_changes_since_last_save:1"} {
		if !strings.Contains(info, line+"\r\n") {
			t.Errorf("there is no %q", line)
		}
	}
	if !strings.Contains(info, "\r\nerrorstat_ERR:count=") {
		t.Error("errorstats")
	}
	if strings.Contains(info, "cmdstat_") || !strings.Contains(c.Info(ctx, "commandstats").Val(), "cmdstat_get:calls=2,") {
		t.Error("commandstats")
	}
}

func TestTags(t *testing.T) {
	reg := kit.NewRegistry(Image(nil))
	for ref, ok := range map[string]bool{"redis": true, "redis:6.2.4": true, "redis:7-alpine": true, "redis:7.2.5-bookworm": true, "redis:3": false} {
		if _, _, err := reg.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	m := machine(b)
	start(b, m)
	nc, err := m.Env().Net.DialContext(b.Context(), "tcp", m.Addr+":6379")
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	in := bufio.NewReader(nc)
	get := encode("GET", "a")
	for b.Loop() {
		nc.Write(get)
		if _, err := readReply(in); err != nil {
			b.Fatal(err)
		}
	}
}

// The ledger knows the keys there are, whatever happens to them, and nothing of those there are not.
func TestLedger(t *testing.T) {
	m := machine(t)
	start(t, m)
	base := m.Resources.Memory()
	for seed := range uint64(50) {
		say(t, m, script(rand.New(rand.NewPCG(seed, 1)), 60)...)
		size := strings.TrimPrefix(say(t, m, "dbsize"), "(integer) ")
		if info := say(t, m, "info keyspace"); !strings.Contains(info, "db0:keys="+size+",") && size != "0" {
			t.Fatalf("seed %d: %s keys, %s", seed, size, info)
		}
	}
	say(t, m, "flushall")
	for !strings.Contains(say(t, m, "info clients"), `connected_clients:1\r\n`) { // Once the server has noticed that the others are gone.
	}
	if left := m.Resources.Memory() - base; left > clientMemory {
		t.Errorf("%d bytes are left", left)
	}
}
