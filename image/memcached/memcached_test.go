package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a server on a machine of its own.
func start(t testing.TB, args ...string) (*kittest.Machine, *kittest.Run) {
	m := kittest.New(t).Machine("cache", "10.244.0.2")
	m.User = kit.User{UID: 11211, GID: 11211}
	r := m.Start(Main, append([]string{"memcached"}, args...)...)
	m.WaitListen(":11211")
	return m, r
}

// talk sends input over a new connection and returns what comes back until the server has nothing
// more to say. A closed connection is noted.
func talk(t testing.TB, dial func() (net.Conn, error), input string) string {
	t.Helper()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go c.Write([]byte(input + "mn\r\n")) // A mark at the end.
	in := bufio.NewReader(c)
	var out strings.Builder
	marks := strings.Count("\n"+input, "\nmn\r\n") + 1
	c.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.ErrClosedPipe) {
			return out.String() + "<closed>"
		}
		if err != nil {
			t.Fatalf("%q: %v after %q", input, err, out.String())
		}
		if line == "MN\r\n" {
			if marks--; marks == 0 {
				return out.String()
			}
		}
		out.WriteString(line)
	}
}

func dialer(m *kittest.Machine) func() (net.Conn, error) {
	return func() (net.Conn, error) { return m.Env().Net.DialContext(context.Background(), "tcp", m.Addr+":11211") }
}

// What a real one answered is what this one answers.
func TestProtocol(t *testing.T) {
	m, _ := start(t)
	data, err := os.ReadFile("testdata/protocol.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		in, out, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		input, want := unquote(t, in), unquote(t, out)
		if got := talk(t, dialer(m), input); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", in, got, want)
		}
	}
}

func unquote(t *testing.T, s string) string {
	t.Helper()
	u, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return u
}

func TestClient(t *testing.T) {
	m, _ := start(t)
	c := memcache.New(m.Addr + ":11211")
	c.DialContext = m.Env().Net.DialContext
	defer c.Close()
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	check("ping", c.Ping(), nil)
	check("set", c.Set(&memcache.Item{Key: "foo", Value: []byte("bar"), Flags: 7}), nil)
	it, err := c.Get("foo")
	check("get", err, nil)
	if string(it.Value) != "bar" || it.Flags != 7 {
		t.Errorf("%+v", it)
	}
	check("add", c.Add(&memcache.Item{Key: "foo", Value: []byte("x")}), memcache.ErrNotStored)
	check("replace", c.Replace(&memcache.Item{Key: "none", Value: []byte("x")}), memcache.ErrNotStored)
	it.Value = []byte("baz")
	check("cas", c.CompareAndSwap(it), nil)
	check("second cas", c.CompareAndSwap(it), memcache.ErrCASConflict)
	check("append", c.Append(&memcache.Item{Key: "foo", Value: []byte("!")}), nil)
	check("prepend", c.Prepend(&memcache.Item{Key: "foo", Value: []byte("?")}), nil)
	if it, err = c.Get("foo"); err != nil || string(it.Value) != "?baz!" {
		t.Errorf("%+v, %v", it, err)
	}
	check("set number", c.Set(&memcache.Item{Key: "n", Value: []byte("41")}), nil)
	if n, err := c.Increment("n", 1); n != 42 || err != nil {
		t.Error(n, err)
	}
	if n, err := c.Decrement("n", 50); n != 0 || err != nil {
		t.Error(n, err)
	}
	all, err := c.GetMulti([]string{"foo", "n", "none"})
	check("get several", err, nil)
	if len(all) != 2 {
		t.Errorf("%v", all)
	}
	check("touch", c.Touch("foo", 100), nil)
	check("touch none", c.Touch("none", 100), memcache.ErrCacheMiss)
	if _, err := c.GetAndTouch("foo", 100); err != nil {
		t.Error(err)
	}
	check("delete", c.Delete("foo"), nil)
	check("delete again", c.Delete("foo"), memcache.ErrCacheMiss)
	check("flush", c.FlushAll(), nil)
	_, err = c.Get("n")
	check("get after flush", err, memcache.ErrCacheMiss)
	if err := c.Set(&memcache.Item{Key: "big", Value: make([]byte, 1<<20)}); err == nil || !strings.Contains(err.Error(), "object too large") {
		t.Error(err)
	}
	check("ping", c.Ping(), nil)
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := start(t)
		say := func(in string) string { t.Helper(); return talk(t, dialer(m), in) }
		absolute := time.Now().Add(31 * 24 * time.Hour).Unix()
		say(fmt.Sprintf("set never 0 0 1\r\nx\r\nset soon 0 10 1\r\nx\r\nset now 0 -1 1\r\nx\r\nset month 0 %d 1\r\nx\r\nset date 0 %d 1\r\nx\r\nset past 0 %d 1\r\nx\r\n",
			monthSeconds, absolute, monthSeconds+1))
		left := func() (keys []string) {
			for _, k := range []string{"never", "soon", "now", "month", "date", "past"} {
				if say("mg "+k+"\r\n") == "HD\r\n" {
					keys = append(keys, k)
				}
			}
			return keys
		}
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{0, "[never soon month date]"},
			{10 * time.Second, "[never month date]"},
			{30 * 24 * time.Hour, "[never date]"},
			{24 * time.Hour, "[never]"},
		} {
			time.Sleep(step.after)
			if got := fmt.Sprint(left()); got != step.want {
				t.Errorf("after %v: %s, want %s", step.after, got, step.want)
			}
		}
		// A flush in the future spares what is stored after it.
		say("set a 0 0 1\r\nx\r\nflush_all 5\r\n")
		time.Sleep(4 * time.Second)
		if got := say("get a\r\n"); got == "END\r\n" {
			t.Error("flushed too early")
		}
		time.Sleep(time.Second)
		say("set b 0 0 1\r\nx\r\n")
		if got := say("get a b never\r\n"); got != "VALUE b 0 1\r\nx\r\nEND\r\n" {
			t.Errorf("%q", got)
		}
		// Items that nobody asks for go, too.
		say("stats reset\r\nset gone 0 1 1\r\nx\r\n")
		time.Sleep(2 * crawlEvery)
		if got := say("stats\r\n"); !strings.Contains(got, "STAT curr_items 1\r\n") || !strings.Contains(got, "STAT crawler_reclaimed 1\r\n") {
			t.Errorf("%q", got)
		}
	})
}

// Under -m the least recently used items go, and the container holds no more than that.
func TestEviction(t *testing.T) {
	m, _ := start(t, "-m", "2", "-I", "100k")
	base := m.Resources.Memory()
	value := strings.Repeat("x", 50_000)
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "set k%d 0 0 %d\r\n%s\r\n", i, len(value), value)
		b.WriteString("mg k0\r\n") // It is used all the time.
	}
	talk(t, dialer(m), b.String())
	for key, want := range map[string]string{"k0": "HD\r\n", "k1": "EN\r\n", "k50": "EN\r\n", "k99": "HD\r\n"} {
		if got := talk(t, dialer(m), "mg "+key+"\r\n"); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	held := m.Resources.Memory() - base
	if held < 1<<20 || held > 2<<20+10*connMemory {
		t.Errorf("%d bytes are held", held)
	}
	stats := talk(t, dialer(m), "stats\r\n")
	if !strings.Contains(stats, "STAT limit_maxbytes 2097152\r\n") || strings.Contains(stats, "STAT evictions 0\r\n") {
		t.Error(stats)
	}
	// A class without a page gets one even so.
	if got := talk(t, dialer(m), "set small 0 0 1\r\nx\r\nget small\r\n"); got != "STORED\r\nVALUE small 0 1\r\nx\r\nEND\r\n" {
		t.Errorf("%q", got)
	}
}

func TestNoEviction(t *testing.T) {
	m, _ := start(t, "-m", "2", "-M")
	value := strings.Repeat("x", 400_000)
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "set k%d 0 0 %d\r\n%s\r\n", i, len(value), value)
	}
	got := talk(t, dialer(m), b.String())
	if !strings.HasPrefix(got, "STORED\r\nSTORED\r\n") || !strings.HasSuffix(got, "SERVER_ERROR out of memory storing object\r\n") {
		t.Errorf("%q", got)
	}
}

func TestConnectionLimit(t *testing.T) {
	m, _ := start(t, "-c", "2")
	dial := dialer(m)
	var held []net.Conn
	for range 2 { // An earlier probe may not be gone yet.
		for {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(c, "version\r\n")
			if line, _ := bufio.NewReader(c).ReadString('\n'); line == "VERSION "+Version+"\r\n" {
				held = append(held, c)
				break
			}
			c.Close()
		}
	}
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if all, _ := io.ReadAll(c); string(all) != "ERROR Too many open connections\r\n" {
		t.Errorf("%q", all)
	}
	for _, c := range held {
		c.Close()
	}
	for talk(t, dial, "version\r\n") != "VERSION "+Version+"\r\n" { // Once the server has noticed.
	}
}

func TestLongLines(t *testing.T) {
	m, _ := start(t)
	if got := talk(t, dialer(m), "set "+strings.Repeat("a", 3000)); got != "<closed>" {
		t.Errorf("%q", got)
	}
	if got := talk(t, dialer(m), "get "+strings.Repeat("a ", 3000)+"\r\n"); got != "END\r\n" {
		t.Errorf("%q", got)
	}
}

func TestLogAndSignal(t *testing.T) {
	m, r := start(t, "-vv")
	talk(t, dialer(m), "set a 0 0 1\r\nx\r\nget a\r\nset a 0 0 1 noreply\r\ny\r\nfoo\r\n")
	for _, line := range []string{" server listening (auto-negotiate)", "set a 0 0 1\n", " STORED\n", " sending key a\n", " NOREPLY STORED\n", " ERROR\n", " connection closed.\n"} {
		r.Await(line)
	}
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if !strings.Contains(r.Stderr.String(), "Exiting normally\n") {
		t.Error(r.Stderr)
	}
}

func TestCommandLine(t *testing.T) {
	tests := []struct {
		args   string
		uid    int
		code   int
		output string
	}{
		{"-V", 11211, 0, "memcached 1.6.7\n"},
		{"", 0, 64, "can't run as root without the -u switch\n"},
		{"-u nosuch", 0, 67, "can't find the user nosuch to switch to\n"},
		{"-p 99999", 11211, 64, "ERROR: Invalid port number 99999.\n"},
		{"-c 0", 11211, 1, "Maximum connections must be greater than 0\n"},
		{"-I 10", 11211, 64, "Item max size cannot be less than 1024 bytes.\n"},
		{"-I 64m", 11211, 64, "Cannot set item size limit higher than 1/2 of memory max.\n"},
		{"-m x", 11211, 64, "Cannot set item size limit higher than 1/2 of memory max.\n"},
		{"-z", 11211, 1, "memcached: invalid option -- 'z'\nIllegal argument \"?\"\n"},
		{"-m", 11211, 1, "memcached: option requires an argument -- 'm'\nIllegal argument \"?\"\n"},
		{"--no-such", 11211, 1, "memcached: unrecognized option '--no-such'\nIllegal argument \"?\"\n"},
		{"-l 1.2.3.4", 11211, 71, "bind(): Cannot assign requested address\nfailed to listen on one of interface(s) 1.2.3.4: Invalid argument\n"},
		{"-l no.such.host", 11211, 71, "getaddrinfo(): Name or service not known\nfailed to listen on one of interface(s) no.such.host: Success\n"},
	}
	for _, tt := range tests {
		m := kittest.New(t).Machine("cache", "10.244.0.2")
		m.User.UID = tt.uid
		r := m.Start(Main, append([]string{"memcached"}, strings.Fields(tt.args)...)...)
		if code, out := r.Wait(), r.Stdout.String()+r.Stderr.String(); code != tt.code || out != tt.output {
			t.Errorf("%s: exit %d, %q", tt.args, code, out)
		}
	}
	m, _ := start(t)
	r := m.Start(Main, "memcached", "-p", "11211")
	if code := r.Wait(); code != 71 || r.Stderr.String() != "failed to listen on TCP port 11211: Address already in use\n" {
		t.Errorf("exit %d, %q", code, r.Stderr)
	}
}

func TestImage(t *testing.T) {
	reg := kit.NewRegistry(Image(nil))
	for ref, ok := range map[string]bool{"memcached": true, "memcached:1.6.7": true, "memcached:1.6-alpine": true, "memcached:9": false} {
		if _, _, err := reg.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
	m := kittest.New(t).Machine("cache", "10.244.0.2")
	m.User = kit.User{UID: 11211, GID: 11211}
	m.Install(Image(nil))
	m.Start(entrypoint, "docker-entrypoint.sh", "-m", "8")
	m.WaitListen(":11211")
	if got := talk(t, dialer(m), "stats settings\r\n"); !strings.HasPrefix(got, "STAT maxbytes 8388608\r\n") {
		t.Errorf("%q", got)
	}
}

func TestSlabClasses(t *testing.T) {
	s := newSlabs(64 << 20)
	// As "memcached -vv" lists them.
	want := []int{0, 96, 120, 152, 192, 240, 304, 384, 480, 600, 752, 944, 1184, 1480, 1856, 2320, 2904, 3632, 4544, 5680, 7104, 8880, 11104, 13880, 17352, 21696, 27120, 33904, 42384, 52984, 66232, 82792, 103496, 129376, 161720, 202152, 252696, 315872, 394840, 524288}
	for i, c := range s.classes {
		if i >= len(want) || c.size != want[i] {
			t.Fatalf("class %d has chunks of %d bytes, of %d classes", i, c.size, len(s.classes))
		}
	}
	if len(s.classes) != len(want) {
		t.Errorf("%d classes", len(s.classes))
	}
}

// script makes a sequence of commands that has everything in it.
func script(rng *rand.Rand, n int) (commands []string) {
	key := func() string { return fmt.Sprintf("k%d", rng.IntN(6)) }
	value := func() string {
		if rng.IntN(2) == 0 {
			// It keeps its length: whether a real one fills a shorter number with spaces depends on
			// what its threads are doing.
			return strconv.Itoa(5000 + rng.IntN(2000))
		}
		return strings.Repeat("v", rng.IntN(300))
	}
	noreply := func() string {
		if rng.IntN(6) == 0 {
			return " noreply"
		}
		return ""
	}
	for range n {
		v := value()
		var b strings.Builder
		switch rng.IntN(16) {
		case 0, 1, 2:
			fmt.Fprintf(&b, "set %s %d 0 %d%s\r\n%s\r\n", key(), rng.IntN(3), len(v), noreply(), v)
		case 3:
			command := []string{"add", "replace", "append", "prepend"}[rng.IntN(4)]
			fmt.Fprintf(&b, "%s %s %d 0 %d%s\r\n%s\r\n", command, key(), rng.IntN(3), len(v), noreply(), v)
		case 4:
			fmt.Fprintf(&b, "cas %s 1 0 %d %d%s\r\n%s\r\n", key(), len(v), rng.IntN(40), noreply(), v)
		case 5, 6:
			fmt.Fprintf(&b, "gets %s %s %s\r\n", key(), key(), key())
		case 7:
			fmt.Fprintf(&b, "incr %s %d%s\r\n", key(), rng.IntN(20), noreply())
		case 8:
			fmt.Fprintf(&b, "decr %s %d%s\r\n", key(), rng.IntN(20), noreply())
		case 9:
			fmt.Fprintf(&b, "delete %s%s\r\n", key(), noreply())
		case 10:
			fmt.Fprintf(&b, "touch %s 100%s\r\n", key(), noreply())
		case 11:
			fmt.Fprintf(&b, "gat 100 %s %s\r\n", key(), key())
		case 12:
			fmt.Fprintf(&b, "mg %s s v f c k O%d q\r\n", key(), rng.IntN(10))
		case 13:
			mode := []string{"", " ME", " MR", " MA", " MP", " MS", " c", " q", fmt.Sprintf(" C%d", rng.IntN(40))}[rng.IntN(9)]
			fmt.Fprintf(&b, "ms %s %d F1%s k\r\n%s\r\n", key(), len(v), mode, v)
		case 14:
			fmt.Fprintf(&b, "ma %s N0 J5000 D%d v\r\n", key(), rng.IntN(20))
		case 15:
			if rng.IntN(5) == 0 {
				b.WriteString("flush_all\r\n")
			} else {
				fmt.Fprintf(&b, "md %s k\r\n", key())
			}
		}
		commands = append(commands, b.String())
	}
	return commands
}

// Where a real one is installed, both answer alike, whatever they are told.
func TestLikeTheRealOne(t *testing.T) {
	program, err := exec.LookPath("memcached")
	if err != nil {
		t.Skip("memcached is not installed")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	cmd := exec.CommandContext(t.Context(), program, "-l", "127.0.0.1", "-p", strconv.Itoa(addr.Port), "-U", "0", "-u", "root")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	dialReal := func() (net.Conn, error) {
		for {
			c, err := net.Dial("tcp", addr.String())
			if err == nil || t.Context().Err() != nil {
				return c, err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	m, _ := start(t)
	for seed := range uint64(300) {
		for _, in := range script(rand.New(rand.NewPCG(seed, 0)), 20) {
			want, got := talk(t, dialReal, in), talk(t, dialer(m), in)
			if got != want {
				t.Fatalf("seed %d:\n%s\ngot\n%s\nwant\n%s", seed, in, got, want)
			}
		}
	}
}

// FuzzProtocol: whatever is sent, the server stays up and its memory adds up.
func FuzzProtocol(f *testing.F) {
	f.Add([]byte("set a 0 0 3\r\nabc\r\nget a\r\nincr a 1\r\n"))
	f.Add([]byte("ms a 2 T5 F3 c\r\nhi\r\nmg a v t f\r\nma b N0 J1\r\n"))
	f.Add([]byte("set a 0 0 5\r\nab\r\ngat 1 a\r\nflush_all 1\r\nstats slabs\r\n"))
	for seed := range uint64(5) {
		f.Add([]byte(strings.Join(script(rand.New(rand.NewPCG(seed, 1)), 10), "")))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		env := kittest.New(t).Machine("m", "10.244.0.2").Env("memcached")
		s := newServer(env, options{memory: 4 << 20, maxItem: 1 << 20, maxConns: 10, threads: 4})
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() { s.client(t.Context(), server); close(done) }()
		go io.Copy(io.Discard, client)
		client.Write(data)
		client.Close()
		<-done
		var bytes, used int64
		for _, it := range s.store.items {
			bytes += int64(it.size())
			used += it.chunks
		}
		for i := range s.store.slabs.classes {
			used -= s.store.slabs.classes[i].used
		}
		if bytes != s.store.bytes || used != 0 {
			t.Errorf("%d bytes in items, %d counted; chunks differ by %d", bytes, s.store.bytes, used)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	m, _ := start(b)
	c, err := dialer(m)()
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	fmt.Fprint(c, "set key 0 0 100\r\n"+strings.Repeat("x", 100)+"\r\n")
	in.ReadString('\n')
	for b.Loop() {
		io.WriteString(c, "get key\r\n")
		for range 3 {
			if _, err := in.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
	}
}
