package kit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"
)

// pendingSignals is how many signals wait for a program that handles them. More are lost, as the kernel
// merges them.
const pendingSignals = 16

// Running is a program in a [Table].
type Running struct {
	// Info is what is known of it besides its IDs. A program that is begun has its own arguments and user, and has
	// started now unless there is a time.
	Info ProcessInfo
	// Environ are the variables of a program that was begun.
	Environ []string
	// Parent has started it. Without one, Info says who did.
	Parent *Running
	// Owner is what its starter knows of it besides.
	Owner any
	// End ends it. Nobody can if it is nil. A program that is begun has its own.
	End context.CancelCauseFunc

	table *Table
	ids   IDs
	done  chan struct{}
	code  int // valid once done is closed

	mu      sync.Mutex
	signals chan syscall.Signal // nil until the program asked for signals
}

// Standing returns what stands for a program while it is replaced: it is in no table, can be ended, and has ended
// with a code once ended is called.
func Standing(end context.CancelCauseFunc, code int) (p *Running, ended func()) {
	p = &Running{End: end, done: make(chan struct{}), code: code}
	return p, func() { close(p.done) }
}

// PID implements Process. It is the ID in the program's own table.
func (p *Running) PID() int { return p.ids[p.table] }

// IDs are what it is known by.
func (p *Running) IDs() IDs { return p.ids }

// Wait implements Process.
func (p *Running) Wait() int {
	<-p.done
	return p.code
}

// Done is closed when the program has ended.
func (p *Running) Done() <-chan struct{} { return p.done }

// seen is what a table shows of it. A parent that is elsewhere is 0. The table's mutex is held.
func (p *Running) seen(in *Table) ProcessInfo {
	info := p.Info
	info.PID = p.ids[in]
	if p.Parent != nil {
		info.Parent = p.Parent.ids[in]
	}
	return info
}

// prepare makes the program one that can be listed, and waited for.
func (p *Running) prepare(ctx context.Context, env *Env) context.Context {
	ctx, p.End = context.WithCancelCause(ctx)
	p.done, p.Environ = make(chan struct{}), env.Environ()
	p.Info.Args, p.Info.User = slices.Clone(env.Args), env.User
	if p.Info.Started.IsZero() {
		p.Info.Started = time.Now()
	}
	return ctx
}

// begin runs the program, which is listed.
func (p *Running) begin(ctx context.Context, env *Env, program Program, ended func(int) int) {
	env.PID = p.PID()
	env.OnNotify(p.notify)
	go func() {
		code := Run(ctx, program, env)
		var killed Killed
		if errors.As(context.Cause(ctx), &killed) && killed.Signal == syscall.SIGKILL {
			code = ExitSignal + int(syscall.SIGKILL) // Whatever it says of itself.
		}
		if ended != nil {
			code = ended(code)
		}
		p.End(nil)
		p.table.Remove(p)
		p.code = code
		close(p.done)
	}()
}

func (p *Running) notify() <-chan syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.signals == nil {
		p.signals = make(chan syscall.Signal, pendingSignals)
	}
	return p.signals
}

// handles reports whether the program has asked for signals.
func (p *Running) handles() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signals != nil
}

// Signal delivers a signal: to the program if it asked for signals, else it has its default effect.
func (p *Running) Signal(sig syscall.Signal) {
	p.mu.Lock()
	ch := p.signals
	p.mu.Unlock()
	switch {
	case sig == 0:
	case ch != nil && sig != syscall.SIGKILL:
		select {
		case ch <- sig:
		default:
		}
	case sig == syscall.SIGCHLD, sig == syscall.SIGWINCH, sig == syscall.SIGURG, sig == syscall.SIGCONT, p.End == nil:
	default:
		p.End(Killed{Signal: sig})
	}
}
