package shelltest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Table is a process table.
type Table struct {
	// Cells has interpreters run in cells.
	Cells bool

	programs map[string]kit.Program

	mu    sync.Mutex
	next  int
	procs map[int]*process
	wg    sync.WaitGroup
}

var (
	_ kit.Processes = (*Table)(nil)
	_ kit.Forker    = (*Table)(nil)
	_ kit.Confiner  = (*Table)(nil)
)

// Confine implements kit.Confiner.
func (t *Table) Confine() bool { return t.Cells }

func newTable(programs map[string]kit.Program) *Table {
	return &Table{programs: programs, next: 7, procs: map[int]*process{}}
}

// SetNext sets the ID of the next process.
func (t *Table) SetNext(pid int) { t.next = pid }

type process struct {
	info    kit.ProcessInfo
	cancel  context.CancelCauseFunc
	signals chan syscall.Signal
	taken   bool
	done    chan struct{}
	code    int
}

func (p *process) PID() int { return p.info.PID }

func (p *process) Wait() int {
	<-p.done
	return p.code
}

// Start finds a program in /bin, or by its path.
func (t *Table) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	name := env.Args[0]
	program := t.programs[strings.TrimPrefix(name, "/bin/")]
	if strings.Contains(name, "/") && !strings.HasPrefix(name, "/bin/") {
		program = nil
	}
	if program != nil {
		return t.Fork(ctx, env, program)
	}
	if !strings.Contains(name, "/") {
		return nil, &kit.ExecError{Name: name, Err: kit.ErrNotInPath}
	}
	fi, err := env.FS.Stat(env.Path(name))
	switch {
	case err != nil:
		return nil, &kit.ExecError{Name: name, Err: syscall.ENOENT}
	case fi.IsDir() || fi.Mode().Perm()&0o111 == 0:
		return nil, &kit.ExecError{Name: name, Err: syscall.EACCES}
	}
	return nil, &kit.ExecError{Name: name, Err: syscall.ENOEXEC}
}

// Fork runs a program. Like the runtime of the embedded cloud it ends a program's context when the
// program has ended.
func (t *Table) Fork(ctx context.Context, env *kit.Env, program kit.Program) (kit.Process, error) {
	t.mu.Lock()
	pid := t.next
	t.next++
	ctx, cancel := context.WithCancelCause(ctx)
	p := &process{
		info:    kit.ProcessInfo{PID: pid, Parent: env.PID, Args: env.Args, User: env.User, Started: time.Now()},
		cancel:  cancel,
		signals: make(chan syscall.Signal, 16),
		done:    make(chan struct{}),
	}
	t.procs[pid] = p
	t.mu.Unlock()
	env.PID = pid
	env.OnNotify(func() <-chan syscall.Signal {
		t.mu.Lock()
		defer t.mu.Unlock()
		p.taken = true
		return p.signals
	})
	t.wg.Go(func() {
		p.code = kit.Run(ctx, program, env)
		cancel(nil)
		t.mu.Lock()
		delete(t.procs, pid)
		t.mu.Unlock()
		close(p.done)
	})
	return p, nil
}

// List returns the running programs by ID.
func (t *Table) List() []kit.ProcessInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []kit.ProcessInfo
	for _, p := range t.procs {
		info := p.info
		if info.PID == 1 { // Who holds what the machine uses.
			info.Memory = memory{}.Info().Used
		}
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b kit.ProcessInfo) int { return a.PID - b.PID })
	return list
}

// Signal does what the kernel would.
func (t *Table) Signal(pid int, sig syscall.Signal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.procs[pid]
	switch {
	case p == nil:
		return syscall.ESRCH
	case sig == 0 || sig == syscall.SIGCHLD || sig == syscall.SIGCONT:
	case sig != syscall.SIGKILL && p.taken:
		p.signals <- sig
	case sig != syscall.SIGKILL && pid == 1:
	default:
		p.cancel(kit.Killed{Signal: sig})
	}
	return nil
}

// stop kills everything that runs and waits for its end, which should be near.
func (t *Table) stop(tb testing.TB) {
	t.mu.Lock()
	for _, p := range t.procs {
		p.cancel(kit.Killed{Signal: syscall.SIGKILL})
	}
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(Patience):
		tb.Errorf("programs go on after the end: %v", t.List())
	}
}
