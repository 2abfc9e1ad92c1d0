package interp

import (
	"context"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/kit"
)

// asProcess runs f as the main function of a process: until it returns, or a signal the shell has
// taken over kills it. The EXIT trap runs, and the result is the process's.
func (s *Shell) asProcess(ctx context.Context, f func(ctx context.Context)) error {
	s.life, s.returned = ctx, new(atomic.Bool)
	defer s.returned.Store(true)
	ctx, s.kill = context.WithCancelCause(ctx)
	defer s.kill(context.Canceled)
	if s.env.PID == 1 || s.interactive {
		s.takeSignals(ctx)
	}
	f(ctx)
	if ctx.Err() != nil {
		s.status = killedStatus(ctx)
		if s.bash && s.life.Err() == nil {
			s.exitTrap(s.life) // Bash runs it even when a signal ends the shell.
		}
	} else {
		s.exitTrap(ctx)
	}
	s.close()
	return kit.Exit(s.status)
}
