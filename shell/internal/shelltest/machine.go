package shelltest

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// Patience is how long a test waits for something that should happen at once.
const Patience = time.Minute

// Machine is a container.
type Machine struct {
	Tree  *vfs.Tree
	NS    *vfs.Namespace
	Net   *Net
	Procs *Table
	User  kit.User
	Vars  map[string]string
	Dir   string
	CPU   kit.CPU

	t   testing.TB
	ctx context.Context
}

// New returns a container with the given programs in /bin.
func New(t testing.TB, programs map[string]kit.Program) *Machine {
	t.Helper()
	tree := vfs.NewTree(vfs.Options{Type: "overlay", Disk: &vfs.Disk{Name: "overlay", Total: 16 << 20}})
	ctx, cancel := context.WithCancel(context.Background())
	m := &Machine{
		Tree: tree, NS: vfs.NewNamespace(tree), Dir: "/",
		Vars: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"},
		CPU:  freeCPU{},
		t:    t, ctx: ctx,
	}
	m.Procs = newTable(programs)
	m.Net = newNet(t)
	t.Cleanup(func() {
		if !m.Procs.Stop(Patience) {
			t.Errorf("programs go on after the end: %v", m.Procs.List())
		}
		cancel()
	})
	root := m.root()
	for _, dir := range []string{"/bin", "/dev", "/etc", "/tmp", "/root", "/proc"} {
		m.check(root.MkdirAll(dir, 0o755))
	}
	m.check(root.FS.Chmod("/tmp", 0o777))
	for name := range programs {
		m.check(root.WriteFile("/bin/"+name, nil, 0o755))
		m.check(root.FS.Chmod("/bin/"+name, 0o755))
	}
	m.Write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
	m.Write("/etc/group", "root:x:0:\nnobody:x:65534:\n")
	m.Write("/etc/hosts", "127.0.0.1\tlocalhost\n")
	devices := map[string]vfs.Stream{"null": device{nil}, "zero": device{zeros{}}, "urandom": device{rand.Reader}}
	for name, s := range devices {
		m.check(tree.AddDevice("/dev/"+name, 0o666, vfs.Device{Open: func(int) (vfs.Stream, error) { return s, nil }}))
	}
	return m
}

// device is a device that makes what is read from it and drops what is written.
type device struct{ r io.Reader }

func (d device) Read(p []byte) (int, error) {
	if d.r == nil {
		return 0, io.EOF
	}
	return d.r.Read(p)
}

func (device) Write(p []byte) (int, error) { return len(p), nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// freeCPU is a processor on which nothing takes time.
type freeCPU struct{}

func (freeCPU) Use(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (freeCPU) Info() kit.CPUInfo                              { return kit.CPUInfo{Cores: 4} }

type memory struct{}

func (memory) Add(int64) error { return nil }
func (memory) Info() kit.MemoryInfo {
	return kit.MemoryInfo{Total: 8 << 30, Limit: 512 << 20, Used: 128 << 20}
}

func (m *Machine) root() *kit.Env { return &kit.Env{FS: m.NS.As(kit.User{}), Dir: "/"} }

func (m *Machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// Write creates or replaces a file, with its directories.
func (m *Machine) Write(name, content string) {
	m.t.Helper()
	root := m.root()
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		m.check(root.MkdirAll(name[:i], 0o755))
	}
	m.check(root.WriteFile(name, []byte(content), 0o644))
}

// Read returns the content of a file, or "" if there is none.
func (m *Machine) Read(name string) string {
	data, _ := m.root().ReadFile(name)
	return string(data)
}

// FS is the file system as root sees it.
func (m *Machine) FS() kit.FS { return m.NS.As(kit.User{}) }

// Buffer is output that may be read while it is written.
type Buffer = kittest.Buffer

// Env returns a world for one program. Its input is empty and its output goes to Buffers.
func (m *Machine) Env(args ...string) *kit.Env {
	return &kit.Env{
		Args: args, Vars: maps.Clone(m.Vars), Dir: m.Dir,
		Stdin: strings.NewReader(""), Stdout: &Buffer{}, Stderr: &Buffer{},
		Hostname: "box", User: m.User,
		FS: m.NS.As(m.User), Net: m.Net, CPU: m.CPU, Memory: memory{}, Procs: m.Procs,
	}
}

// Result is what came of a program.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a command to its end.
func (m *Machine) Run(args ...string) Result { return m.RunWith("", args...) }

// RunWith runs a command with the given standard input.
func (m *Machine) RunWith(stdin string, args ...string) Result {
	m.t.Helper()
	env := m.Env(args...)
	env.Stdin = strings.NewReader(stdin)
	return m.Start(env).Wait()
}

// Running is a program under way.
type Running struct {
	m      *Machine
	p      kit.Process
	stdout *Buffer
	stderr *Buffer
}

// Start starts a program in an Env whose outputs are Buffers.
func (m *Machine) Start(env *kit.Env) *Running {
	m.t.Helper()
	stdout, _ := env.Stdout.(*Buffer)
	stderr, _ := env.Stderr.(*Buffer)
	p, err := m.Procs.Start(m.ctx, env)
	m.check(err)
	return &Running{m, p, stdout, stderr}
}

// PID returns the process ID.
func (r *Running) PID() int { return r.p.PID() }

// Signal sends a signal.
func (r *Running) Signal(sig syscall.Signal) { r.m.Procs.Signal(r.PID(), sig) }

// Stdout returns what was written so far.
func (r *Running) Stdout() string { return r.stdout.String() }

// Wait waits for the end of a program that is about to end.
func (r *Running) Wait() Result {
	r.m.t.Helper()
	done := make(chan int, 1)
	go func() { done <- r.p.Wait() }()
	select {
	case code := <-done:
		res := Result{Code: code}
		if r.stdout != nil {
			res.Stdout = r.stdout.String()
		}
		if r.stderr != nil {
			res.Stderr = r.stderr.String()
		}
		return res
	case <-time.After(Patience):
		r.m.t.Fatalf("the program goes on; stdout %q, stderr %q", r.stdout, r.stderr)
		return Result{}
	}
}

// Await waits until a text was written to standard output.
func (r *Running) Await(text string) {
	r.m.t.Helper()
	for deadline := time.Now().Add(Patience); !strings.Contains(r.stdout.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.m.t.Fatalf("%q was not written; stdout %q, stderr %q", text, r.stdout, r.stderr)
		}
	}
}
