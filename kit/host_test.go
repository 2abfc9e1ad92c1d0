package kit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The test binary is a program too: with this variable set it runs one over HostEnv.
const hostProgram = "KIT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	p, ok := hostPrograms[os.Getenv(hostProgram)]
	if !ok {
		os.Exit(m.Run())
	}
	os.Exit(RunHost(context.Background(), p, HostEnv()))
}

var hostPrograms = map[string]Program{
	"fail":  func(context.Context, *Env) error { return errors.New("out of luck") },
	"panic": func(context.Context, *Env) error { panic("boom") },
	"signals": func(ctx context.Context, env *Env) error {
		signals := env.Notify()
		for range 4 {
			io.WriteString(env.Stdout, "ready\n")
			io.WriteString(env.Stdout, (<-signals).String()+"\n")
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return Exit(7)
	},
	"wait": func(ctx context.Context, env *Env) error {
		io.WriteString(env.Stdout, "ready\n")
		<-ctx.Done()
		return ctx.Err()
	},
	// A program that takes no notice of the end, but of the signal.
	"careful": func(_ context.Context, env *Env) error {
		signals := env.Notify()
		io.WriteString(env.Stdout, "ready\n")
		<-signals
		io.WriteString(env.Stdout, "closed\n")
		return nil
	},
}

// testEnv is HostEnv with buffers for output.
func testEnv(t *testing.T) (env *Env, stdout, stderr *bytes.Buffer) {
	env = HostEnv()
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	env.Dir, env.Stdin, env.Stdout, env.Stderr = t.TempDir(), strings.NewReader(""), stdout, stderr
	return env, stdout, stderr
}

func TestHostExitCodes(t *testing.T) {
	for name, want := range map[string]struct {
		code   int
		stderr string
	}{
		"fail": {1, "out of luck\n"}, "panic": {ExitPanic, "panic: boom\n"},
	} {
		env, _, stderr := testEnv(t)
		env.Vars[hostProgram] = name
		p, err := env.Procs.Start(t.Context(), env.Child(os.Args[0]))
		if err != nil {
			t.Fatal(err)
		}
		if code := p.Wait(); code != want.code || !strings.HasPrefix(stderr.String(), want.stderr) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
		if again := p.Wait(); again != want.code {
			t.Errorf("%s: waiting again gives %d", name, again)
		}
	}
}

func TestHostSignals(t *testing.T) {
	env, _, _ := testEnv(t)
	env.Vars[hostProgram] = "signals"
	r, w := io.Pipe()
	env.Stdout = w
	p, err := env.Procs.Start(t.Context(), env.Child(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Wait()
		w.Close()
	}()
	var seen []string
	buf := make([]byte, 64)
	for signals := []syscall.Signal{syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGTERM}; ; {
		n, err := r.Read(buf)
		if err != nil {
			break
		}
		for line := range strings.Lines(string(buf[:n])) {
			if line != "ready\n" {
				seen = append(seen, strings.TrimSpace(line))
			} else if len(signals) > 0 {
				if err := env.Procs.Signal(p.PID(), signals[0]); err != nil {
					t.Fatal(err)
				}
				signals = signals[1:]
			}
		}
	}
	want := []string{syscall.SIGHUP.String(), syscall.SIGQUIT.String(), syscall.SIGWINCH.String(), syscall.SIGTERM.String()}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	if code := p.Wait(); code != 7 {
		t.Errorf("exit %d", code)
	}
}

// lines is a writer that sends what it is given, by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l <- line
	}
	return len(p), nil
}

// TestHostKilled ends a program that handles no signals.
func TestHostKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		env, _, stderr := testEnv(t)
		env.Vars[hostProgram] = "wait"
		out := make(lines, 8)
		env.Stdout = out
		p, err := env.Procs.Start(t.Context(), env.Child(os.Args[0]))
		if err != nil {
			t.Fatal(err)
		}
		<-out
		if err := env.Procs.Signal(p.PID(), sig); err != nil {
			t.Fatal(err)
		}
		if code := p.Wait(); code != ExitSignal+int(sig) || stderr.Len() > 0 {
			t.Errorf("%v: exit %d, %s", sig, code, stderr)
		}
	}
}

// TestHostCause ends a program with what ended its starter, so that it can close its files.
func TestHostCause(t *testing.T) {
	env, _, _ := testEnv(t)
	env.Vars[hostProgram] = "careful"
	out := make(lines, 8)
	env.Stdout = out
	ctx, end := context.WithCancelCause(t.Context())
	p, err := env.Procs.Start(ctx, env.Child(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	<-out
	end(Killed{Signal: syscall.SIGTERM})
	if code := p.Wait(); len(out) != 1 || <-out != "closed\n" {
		t.Errorf("it ended with %d before it could close its files", code)
	}
}

func TestHostProcesses(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	env, stdout, _ := testEnv(t)
	env.Vars["COLOUR"] = "blue"
	env.Stdin = strings.NewReader("in")
	dir, _ := filepath.EvalSymlinks(env.Dir)
	p, err := env.Procs.Start(t.Context(), env.Child("sh", "-c", `echo "$0 $COLOUR $(pwd -P) $(cat)"; kill -9 $$`, "name"))
	if err != nil {
		t.Fatal(err)
	}
	if code := p.Wait(); code != ExitSignal+9 || stdout.String() != "name blue "+dir+" in\n" {
		t.Errorf("exit %d, %q", code, stdout)
	}

	ctx, cancel := context.WithCancel(t.Context())
	p, err = env.Procs.Start(ctx, env.Child("sh", "-c", "while :; do :; done"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := p.Wait(); code != ExitSignal+9 {
		t.Errorf("exit %d", code)
	}

	// PATH is the program's, not the process'.
	for name, mode := range map[string]fs.FileMode{"tool": 0o755, "data": 0o644} {
		if err := env.WriteFile(name, []byte("#!"+sh+"\nexit 5\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	env.Vars["PATH"] = env.Dir
	if p, err = env.Procs.Start(t.Context(), env.Child("tool")); err != nil || p.Wait() != 5 {
		t.Errorf("a tool in PATH: %v", err)
	}
	if p, err = env.Procs.Start(t.Context(), env.Child("./tool")); err != nil || p.Wait() != 5 {
		t.Errorf("a tool by its path: %v", err)
	}
	for name, want := range map[string]string{
		"nothing":   `exec: "nothing": executable file not found in $PATH`,
		"./nothing": `exec: "./nothing": stat ` + env.Dir + `/nothing: no such file or directory`,
		"data":      `exec: "data": permission denied`,
		"./data":    `exec: "./data": permission denied`,
		"/":         `exec: "/": permission denied`,
	} {
		_, err := env.Procs.Start(t.Context(), env.Child(name))
		if exec, ok := errors.AsType[*ExecError](err); !ok || exec.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	self := slices.IndexFunc(env.Procs.List(), func(p ProcessInfo) bool { return p.PID == os.Getpid() })
	if self < 0 {
		t.Errorf("%v", env.Procs.List())
	}
	if err := env.Procs.Signal(p.PID(), 0); err != syscall.ESRCH {
		t.Errorf("a signal to a program that has ended: %v", err)
	}
}

func TestHostFiles(t *testing.T) {
	env, _, _ := testEnv(t)
	if err := env.MkdirAll("a/b/c", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := env.MkdirAll("a/b/c", 0o755); err != nil {
		t.Errorf("a directory that exists: %v", err)
	}
	if err := env.WriteFile("a/b/file", []byte("first, long"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := env.WriteFile("a/b/file", []byte("second"), 0o640); err != nil {
		t.Fatal(err)
	}
	if b, err := env.ReadFile(env.Dir + "/a/b/file"); err != nil || string(b) != "second" {
		t.Errorf("%q, %v", b, err)
	}
	if err := env.MkdirAll("a/b/file/d", 0o755); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a directory below a file: %v", err)
	}
	if err := env.MkdirAll("a/b/file", 0o755); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a directory that is a file: %v", err)
	}
	if _, err := env.ReadFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}

	files := env.FS
	name := func(s string) string { return env.Path(s) }
	at := time.Unix(1700000000, 0)
	for i, err := range []error{
		files.Symlink("b/file", name("a/link")),
		files.Link(name("a/b/file"), name("a/hard")),
		files.Rename(name("a/hard"), name("a/renamed")),
		files.Chmod(name("a/renamed"), 0o600),
		files.Chown(name("a/renamed"), os.Getuid(), os.Getgid()),
		files.Chtimes(name("a/renamed"), at),
		files.Mkdir(name("a/empty"), 0o700),
	} {
		if err != nil {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if fi, err := files.Stat(name("a/link")); err != nil || fi.Mode() != 0o600 || !fi.ModTime().Equal(at) {
		t.Errorf("%v, %v", fi, err)
	}
	for what, list := range map[string]func() ([]fs.DirEntry, error){
		"by name": func() ([]fs.DirEntry, error) { return files.ReadDir(name("a/b")) },
		"a file": func() ([]fs.DirEntry, error) {
			f, err := files.OpenFile(name("a/b"), os.O_RDONLY, 0)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return f.ReadDir(-1)
		},
	} {
		entries, err := list()
		for _, e := range entries {
			fi, ierr := e.Info()
			if o, ok := fi.Sys().(*Owner); ierr != nil || !ok || o.UID != os.Getuid() || o.GID != os.Getgid() || o.Links < 1 {
				t.Errorf("%s: %v, %v", what, o, ierr)
			}
		}
		if len(entries) != 2 || err != nil {
			t.Errorf("%s: %v, %v", what, entries, err)
		}
	}
	if fi, err := files.Stat(name("a/renamed")); err != nil || fi.Sys().(*Owner).Links != 2 {
		t.Errorf("%+v, %v", fi.Sys(), err)
	}
	if fi, err := files.Lstat(name("a/link")); err != nil || fi.Mode().Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", fi, err)
	}
	if target, err := files.Readlink(name("a/link")); err != nil || target != "b/file" {
		t.Errorf("%q, %v", target, err)
	}
	var names []string
	entries, err := files.ReadDir(name("a"))
	for _, d := range entries {
		names = append(names, d.Name())
	}
	if diff := cmp.Diff([]string{"b", "empty", "link", "renamed"}, names); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if info, err := files.StatFS(name("a")); err != nil || info.Total <= 0 || info.Free > info.Total {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := files.StatFS(name("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	} else if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("%T is no *fs.PathError", err)
	}
	// What a link leads to stays.
	if err := env.MkdirAll("kept", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := files.Symlink(name("kept"), name("a/out")); err != nil {
		t.Fatal(err)
	}
	if err := env.RemoveAll("a"); err != nil {
		t.Error(err)
	}
	if err := env.RemoveAll("a"); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	if _, err := files.Stat(name("kept")); err != nil {
		t.Error(err)
	}
}

// deadFS is what a program that was killed sees.
type deadFS struct{ FS }

func (deadFS) Stat(name string) (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: name, Err: syscall.EIO}
}

func (deadFS) Mkdir(name string, _ fs.FileMode) error {
	return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.EIO}
}

func TestMkdirAllWithoutRoot(t *testing.T) {
	env := &Env{FS: deadFS{}, Dir: "/"}
	if err := env.MkdirAll("/a/b", 0o755); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
}

func TestHostNetwork(t *testing.T) {
	env, _, _ := testEnv(t)
	l, err := env.Net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) })}
	served := make(chan error)
	go func() { served <- IgnoreClosed(srv.Serve(l)) }()
	// A proxy of the environment is none of a container's business.
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	transport := env.HTTPTransport()
	res, err := (&http.Client{Transport: transport}).Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if string(body) != l.Addr().String() {
		t.Errorf("%q", body)
	}
	transport.CloseIdleConnections()
	srv.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := env.Net.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v", err)
	}

	pc, err := env.Net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	c, err := env.Net.DialContext(t.Context(), "udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "datagram")
	buf := make([]byte, 16)
	if n, _, err := pc.ReadFrom(buf); err != nil || string(buf[:n]) != "datagram" {
		t.Errorf("%q, %v", buf[:n], err)
	}

	if addrs, err := env.Net.LookupHost(t.Context(), "127.0.0.1"); err != nil || len(addrs) != 1 {
		t.Errorf("%v, %v", addrs, err)
	}
	for _, ip := range env.Net.Addrs() {
		if ip.IsLoopback() {
			t.Errorf("%v is a loopback address", ip)
		}
	}
}

func TestHostResources(t *testing.T) {
	env, _, _ := testEnv(t)
	if err := env.CPU.Use(t.Context(), time.Microsecond); err != nil || env.CPU.Info().Cores < 1 {
		t.Errorf("%v, %+v", err, env.CPU.Info())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := env.CPU.Use(ctx, time.Hour); err != context.Canceled {
		t.Errorf("%v", err)
	}

	m := &hostMemory{}
	for _, step := range []struct {
		add, used int64
		chunks    int
	}{{1 << 20, 1 << 20, 1}, {5<<20 + 17, 6<<20 + 17, 6}, {-17, 6 << 20, 6}, {-1, 6<<20 - 1, 5}, {1 - 6<<20, 0, 0}} {
		if err := m.Add(step.add); err != nil {
			t.Fatal(err)
		}
		if m.Info().Used != step.used || len(m.chunks) != step.chunks {
			t.Errorf("after %d: %d bytes used, %d chunks held", step.add, m.Info().Used, len(m.chunks))
		}
	}
	if err := m.Add(-1); err == nil || m.Info().Used != 0 {
		t.Errorf("%v, %+v", err, m.Info())
	}
}
