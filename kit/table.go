package kit

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Table is a process table for one machine whose programs are functions. It numbers, lists and signals them. Its
// owner finds programs by their names and passes them to Fork.
//
// The embedded cloud has a table of its own: a program there has an ID in each PID namespace that sees it, and
// users have rights over each other's programs.
//
// Its methods may be called at the same time.
type Table struct {
	// Most is how many programs run at a time; 0 is any number.
	Most int

	mu    sync.Mutex
	next  int
	procs map[int]*tableEntry
}

// NewTable returns a table whose first program has the given ID.
func NewTable(first int) *Table { return &Table{next: first, procs: map[int]*tableEntry{}} }

// pendingSignals is how many signals wait for a program that handles them. More are lost, as the kernel
// merges them.
const pendingSignals = 16

type tableEntry struct {
	info    ProcessInfo
	cancel  context.CancelCauseFunc
	signals chan syscall.Signal
	taken   bool // it handles signals
	done    chan struct{}
	code    int // valid once done is closed
}

func (p *tableEntry) PID() int { return p.info.PID }

func (p *tableEntry) Wait() int {
	<-p.done
	return p.code
}

// Fork implements Forker. It returns EAGAIN if there is no place.
func (t *Table) Fork(ctx context.Context, env *Env, program Program) (Process, error) {
	t.mu.Lock()
	if t.Most > 0 && len(t.procs) >= t.Most {
		t.mu.Unlock()
		return nil, syscall.EAGAIN
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p := &tableEntry{
		info:    ProcessInfo{PID: t.next, Parent: env.PID, Args: env.Args, User: env.User, Started: time.Now()},
		cancel:  cancel,
		signals: make(chan syscall.Signal, pendingSignals),
		done:    make(chan struct{}),
	}
	t.next++
	t.procs[p.PID()] = p
	t.mu.Unlock()
	env.PID = p.PID()
	env.OnNotify(func() <-chan syscall.Signal {
		t.mu.Lock()
		defer t.mu.Unlock()
		p.taken = true
		return p.signals
	})
	go func() {
		p.code = Run(ctx, program, env)
		cancel(nil)
		t.mu.Lock()
		delete(t.procs, p.PID())
		t.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// List returns the running programs by ID.
func (t *Table) List() []ProcessInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []ProcessInfo
	for _, p := range t.procs {
		list = append(list, p.info)
	}
	slices.SortFunc(list, func(a, b ProcessInfo) int { return a.PID - b.PID })
	return list
}

// Signal does what the kernel would: nobody ends process 1 with a signal that it does not handle.
func (t *Table) Signal(pid int, sig syscall.Signal) error {
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
		default:
		}
	case sig != syscall.SIGKILL && pid == 1:
	default:
		p.cancel(Killed{Signal: sig})
	}
	return nil
}

// Stop kills every program and waits for its end, but no longer than patience. It reports whether all have
// ended.
func (t *Table) Stop(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		t.mu.Lock()
		var done chan struct{}
		for _, p := range t.procs {
			p.cancel(Killed{Signal: syscall.SIGKILL})
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
