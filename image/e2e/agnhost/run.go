package agnhost

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// part is one of the things a program does at the same time. It returns soon after its context ends.
type part func(ctx context.Context) error

// together runs parts until the first of them returns; that ends the others and is the result.
func together(ctx context.Context, parts ...part) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		err      error
		panicked any
	}
	results := make(chan outcome, len(parts))
	for _, f := range parts {
		go func() {
			var o outcome
			defer func() {
				// A panic must end this program, not everything else in the process.
				if r := recover(); r != nil {
					o.panicked = fmt.Sprintf("%v\n\n%s", r, debug.Stack())
				}
				results <- o
			}()
			o.err = f(inner)
		}()
	}
	first := <-results
	cancel()
	for range len(parts) - 1 {
		<-results
	}
	switch {
	case first.panicked != nil:
		panic(first.panicked)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return first.err
}

// idle is a part that does nothing.
func idle(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// once makes a part of something that ends when it succeeds while the rest goes on.
func once(f part) part {
	return func(ctx context.Context) error {
		if err := f(ctx); err != nil {
			return err
		}
		return idle(ctx)
	}
}

// sleep waits, and returns the context's error if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// onSignal returns a part that waits for one of the handled signals and then does f. Another signal
// ends the program if that is what the kernel would do with it. From the call on, no signal ends
// the program's context.
func (p *program) onSignal(f func(context.Context, syscall.Signal) error, handled ...syscall.Signal) part {
	signals := p.env.Notify()
	fatal := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}
	return func(ctx context.Context) error {
		for {
			select {
			case sig := <-signals:
				switch {
				case slices.Contains(handled, sig):
					return f(ctx, sig)
				case slices.Contains(fatal, sig):
					return kit.Exit(kit.ExitSignal + int(sig))
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
