package interp

import (
	"context"
	"io"
	"strings"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/kit"
)

// Session is a shell that is given one script after another, as somebody at a prompt gives it lines:
// the working directory, variables, functions, aliases and options stay. It belongs to one goroutine.
type Session struct{ s *Shell }

// NewSession returns a shell in env, whose standard streams are not used.
func NewSession(env *kit.Env, cfg Config) *Session {
	return &Session{newShell(context.Background(), env, cfg)}
}

// Dir returns the working directory.
func (x *Session) Dir() string { return x.s.dir }

// Run runs a script and returns its exit status. exit ends the script, not the session. What the
// script left in the background ends when ctx does.
func (x *Session) Run(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer) int {
	s := x.s
	env := *s.env
	env.Stdin, env.Stdout, env.Stderr = stdin, stdout, stderr
	s.env = &env
	for n, f := range standardFiles(&env) {
		s.setFD(n, f)
	}
	s.life, s.returned = ctx, new(atomic.Bool)
	defer s.returned.Store(true)
	ctx, s.kill = context.WithCancelCause(ctx)
	defer s.kill(context.Canceled)
	s.jobs = &jobTable{}
	s.calls, s.params = nil, nil
	s.loops, s.levels, s.sourcing = 0, 0, 0
	s.guarded, s.keepRedirs, s.trapping = false, false, false
	if s.evalReader(ctx, strings.NewReader(script)) == flowExit {
		s.exitTrap(ctx)
	}
	if ctx.Err() != nil {
		s.status = killedStatus(ctx)
	}
	for n := range 3 {
		s.setFD(n, nil)
	}
	return s.status
}

// Close closes the files that scripts left open.
func (x *Session) Close() { x.s.close() }
