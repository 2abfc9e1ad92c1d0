package kittest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Buffer is output that may be read while it is written.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Run is a program under way.
type Run struct {
	Stdout, Stderr *Buffer

	t       testing.TB
	args    []string
	cancel  context.CancelCauseFunc
	signals chan syscall.Signal

	mu    sync.Mutex
	taken bool // the program handles signals itself

	done chan struct{}
	code int
}

// Start runs a program as the machine's.
func (m *Machine) Start(p kit.Program, args ...string) *Run {
	return m.Run(p, m.Env(args...))
}

// Run runs a program in an Env of this machine, whose output must be Buffers.
func (m *Machine) Run(p kit.Program, env *kit.Env) *Run {
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &Run{
		Stdout: env.Stdout.(*Buffer), Stderr: env.Stderr.(*Buffer),
		t: m.World.t, args: env.Args, cancel: cancel,
		signals: make(chan syscall.Signal, 8),
		done:    make(chan struct{}),
	}
	m.mu.Lock()
	if m.main == nil {
		m.main = r
	}
	m.mu.Unlock()
	env.OnNotify(func() <-chan syscall.Signal {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.taken = true
		return r.signals
	})
	go func() {
		defer close(r.done)
		r.code = kit.Run(ctx, p, env)
	}()
	m.World.t.Cleanup(func() {
		r.Signal(syscall.SIGKILL)
		<-r.done
	})
	return r
}

// Signal sends a signal. One the program has not asked for ends it.
func (r *Run) Signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken && sig != syscall.SIGKILL {
		r.signals <- sig
		return
	}
	r.cancel(kit.Killed{Signal: sig})
}

// AwaitHandler waits until the program has taken over its signals.
func (r *Run) AwaitHandler() {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		taken := r.taken
		r.mu.Unlock()
		if taken {
			return
		}
		if r.Ended() || time.Now().After(deadline) {
			r.t.Fatal("the program does not handle signals")
		}
	}
}

// Ended reports whether the program has ended.
func (r *Run) Ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Wait returns the exit code of a program that is about to end.
func (r *Run) Wait() int {
	r.t.Helper()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-r.done:
		return r.code
	case <-t.C:
		r.t.Fatalf("the program goes on\nstdout: %s\nstderr: %s", r.Stdout, r.Stderr)
		return -1
	}
}

// Await waits until the program has written a text, to either stream.
func (r *Run) Await(text string) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		ended := r.Ended()
		if strings.Contains(r.Stdout.String(), text) || strings.Contains(r.Stderr.String(), text) {
			return
		}
		if ended || time.Now().After(deadline) {
			r.t.Fatalf("the program has not written %q\nstdout: %s\nstderr: %s", text, r.Stdout, r.Stderr)
		}
	}
}
