package box

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// table is the process table of the agent's machine. Its processes are functions; those of kubectl
// and helm wait for a process of the host.
type table struct {
	programs map[string]kit.Program
	// judge decides about a command that is about to run: env.Args may be changed. A refusal has
	// been explained on env.Stderr.
	judge func(ctx context.Context, env *kit.Env) (code int, refused bool)

	most  int // processes at a time
	mu    sync.Mutex
	next  int
	procs map[int]*process
}

var (
	_ kit.Processes = (*table)(nil)
	_ kit.Forker    = (*table)(nil)
)

func newTable(programs map[string]kit.Program, most int) *table {
	return &table{programs: programs, most: most, next: 100, procs: map[int]*process{}}
}

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

// binDirs are the directories whose programs are those in /bin.
var binDirs = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// Start finds a program, judges the command and runs it.
func (t *table) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	name := env.Args[0]
	program := t.programs[name]
	if strings.Contains(name, "/") {
		file := env.Path(name)
		if program = nil; slices.Contains(binDirs, path.Dir(file)) {
			program = t.programs[path.Base(file)]
		}
	} else if file, err := env.LookPath(name); err == nil && path.Dir(file) != "/bin" {
		program = nil // The agent has one of its own before it in PATH.
	}
	if program == nil {
		_, err := env.LookPath(name)
		if err == nil {
			err = syscall.ENOEXEC // A script, which the shell runs itself.
		}
		return nil, &kit.ExecError{Name: name, Err: err}
	}
	return t.Fork(ctx, env, func(ctx context.Context, env *kit.Env) error {
		if code, refused := t.judge(ctx, env); refused {
			return kit.Exit(code)
		}
		return program(ctx, env)
	})
}

// errNoFork is EAGAIN in bash's words.
var errNoFork error = noForkError{}

type noForkError struct{}

func (noForkError) Error() string        { return noFork }
func (noForkError) Is(target error) bool { return target == syscall.EAGAIN }

// Fork runs a program.
func (t *table) Fork(ctx context.Context, env *kit.Env, program kit.Program) (kit.Process, error) {
	t.mu.Lock()
	if len(t.procs) >= t.most {
		t.mu.Unlock()
		return nil, errNoFork
	}
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
	go func() {
		p.code = kit.Run(ctx, quiet(program), env)
		cancel(nil)
		t.mu.Lock()
		delete(t.procs, pid)
		t.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// quiet makes a panic of a program one line: its trace is not for the agent.
func quiet(program kit.Program) kit.Program {
	return func(ctx context.Context, env *kit.Env) (err error) {
		defer func() {
			if recover() != nil {
				fmt.Fprintf(env.Stderr, "%s: %s\n", env.Args[0], internalError)
				err = kit.Exit(kit.ExitPanic)
			}
		}()
		return program(ctx, env)
	}
}

// List returns the running programs by ID.
func (t *table) List() []kit.ProcessInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []kit.ProcessInfo
	for _, p := range t.procs {
		list = append(list, p.info)
	}
	slices.SortFunc(list, func(a, b kit.ProcessInfo) int { return a.PID - b.PID })
	return list
}

// Signal does what the kernel would.
func (t *table) Signal(pid int, sig syscall.Signal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.procs[pid]
	switch {
	case p == nil:
		return syscall.ESRCH
	case sig == 0 || sig == syscall.SIGCHLD || sig == syscall.SIGCONT:
	case sig != syscall.SIGKILL && p.taken:
		select {
		case p.signals <- sig:
		default: // More than can wait are lost, as the kernel merges them.
		}
	default:
		p.cancel(kit.Killed{Signal: sig})
	}
	return nil
}

// stop kills everything that runs and waits for its end, but not forever.
func (t *table) stop(patience time.Duration) (stopped bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		t.mu.Lock()
		var done chan struct{}
		for _, p := range t.procs {
			p.cancel(kit.Killed{Signal: syscall.SIGKILL})
			done = p.done
		}
		t.mu.Unlock()
		if done == nil {
			return true
		}
		select {
		case <-done:
		case <-timer.C:
			return false
		}
	}
}
