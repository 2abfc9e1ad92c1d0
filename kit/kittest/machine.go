package kittest

import (
	"context"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// Machine is where programs run: a container, so to speak.
type Machine struct {
	World     *World
	Name      string
	Addr      string
	Tree      *vfs.Tree      // its root
	Namespace *vfs.Namespace // its root and what is mounted on it
	Programs  map[string]kit.Program
	Vars      map[string]string
	User      kit.User
	Resources Resources
	Cells     bool // interpreters run in cells

	net     network
	scratch string

	mu   sync.Mutex
	main *Run // the first program started: process 1
}

// Install puts an image's files and programs on the machine.
func (m *Machine) Install(i kit.Image) {
	m.World.t.Helper()
	root := &kit.Env{FS: m.Namespace.As(kit.User{}), Dir: "/"}
	write := func(name, content string, executable bool) {
		if strings.HasSuffix(name, "/") {
			m.check(root.MkdirAll(name, 0o755))
			return
		}
		m.check(root.MkdirAll(path.Dir(name), 0o755))
		m.check(root.WriteFile(name, []byte(content), 0o644))
		if executable {
			m.check(root.FS.Chmod(name, 0o755))
		}
	}
	for name, content := range i.Files {
		write(name, content, false)
	}
	for name, p := range i.Programs {
		write(name, "", true)
		m.Programs[name] = p
	}
	if m.Vars == nil {
		m.Vars = map[string]string{}
	}
	for k, v := range i.Vars {
		m.Vars[k] = v
	}
}

func (m *Machine) check(err error) {
	m.World.t.Helper()
	if err != nil {
		m.World.t.Fatal(err)
	}
}

// Write creates or replaces a file, with its directories.
func (m *Machine) Write(name, content string) {
	m.World.t.Helper()
	m.Install(kit.Image{Files: map[string]string{name: content}})
}

// Read returns the content of a file.
func (m *Machine) Read(name string) string {
	m.World.t.Helper()
	data, err := m.Env().ReadFile(name)
	m.check(err)
	return string(data)
}

// Env returns a world for one program. Its output goes to buffers.
func (m *Machine) Env(args ...string) *kit.Env {
	env := &kit.Env{
		Args: args, Vars: map[string]string{}, Dir: "/",
		Stdin: strings.NewReader(""), Stdout: &Buffer{}, Stderr: &Buffer{},
		PID: 1, Hostname: m.Name, User: m.User,
		FS: m.Namespace.As(m.User), Net: m.net,
		CPU: &m.Resources, Memory: (*ledger)(&m.Resources),
		Procs: processes{m}, Scratch: m.scratch, Started: time.Now(),
	}
	for k, v := range m.Vars {
		env.Vars[k] = v
	}
	return env
}

// processes starts the machine's programs. Process 1 is the one that was started first by a test;
// others are not listed and get no signals.
type processes struct{ m *Machine }

type process chan int

func (p process) PID() int { return 2 }

func (p process) Wait() int {
	code := <-p
	p <- code
	return code
}

func (p processes) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	name := env.Args[0]
	program := p.m.Programs[name]
	if !strings.Contains(name, "/") {
		for _, dir := range []string{"/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
			if program == nil {
				program = p.m.Programs[dir+"/"+name]
			}
		}
		if program == nil {
			return nil, &kit.ExecError{Name: name, Err: kit.ErrNotInPath}
		}
	}
	if program == nil {
		return nil, &kit.ExecError{Name: name, Err: syscall.ENOENT}
	}
	done := make(process, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() { done <- kit.Run(ctx, program, env) }()
	p.m.World.t.Cleanup(func() { // Nothing outlives the test.
		cancel(kit.Killed{Signal: syscall.SIGKILL})
		done.Wait()
	})
	return done, nil
}

// Confine implements kit.Confiner.
func (p processes) Confine() bool { return p.m.Cells }

func (p processes) first() *Run {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	return p.m.main
}

func (p processes) List() []kit.ProcessInfo {
	r := p.first()
	if r == nil || r.Ended() {
		return nil
	}
	return []kit.ProcessInfo{{PID: 1, Args: r.args}}
}

func (p processes) Signal(pid int, sig syscall.Signal) error {
	r := p.first()
	if pid != 1 || r == nil || r.Ended() {
		return syscall.ESRCH
	}
	r.Signal(sig)
	return nil
}

// Resources is a ledger of what a machine's programs state they use.
type Resources struct {
	Limit int64 // bytes of memory; 0 is unlimited

	mu    sync.Mutex
	cpu   time.Duration
	bytes int64
}

// ledger is the kit.Memory of Resources, whose own Info is that of kit.CPU.
type ledger Resources

// Use counts the time and spends it on the wall clock, as an idle machine with one core would.
func (r *Resources) Use(ctx context.Context, d time.Duration) error {
	r.mu.Lock()
	r.cpu += d
	r.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Info tells the CPU time used.
func (r *Resources) Info() kit.CPUInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kit.CPUInfo{Cores: 1, Used: r.cpu}
}

func (l *ledger) Add(n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 && l.Limit > 0 && l.bytes+n > l.Limit {
		return syscall.ENOMEM
	}
	l.bytes += n
	return nil
}

func (l *ledger) Info() kit.MemoryInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kit.MemoryInfo{Used: l.bytes, Limit: l.Limit}
}

// Memory tells the memory held.
func (r *Resources) Memory() int64 { return (*ledger)(r).Info().Used }
