package shell

import (
	"context"
	"io"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/interp"
	"github.com/aiopslab/aiopslab/shell/internal/script"
)

// Session is a shell that is given one script after another: the working directory, variables,
// functions, aliases and options stay. It belongs to one goroutine.
type Session struct{ s *interp.Session }

// NewSession returns a shell in env. Its name, Args[0], says how it speaks: sh or bash.
func NewSession(env *kit.Env) *Session {
	return &Session{interp.NewSession(env, interp.Config{Programs: script.Inside()})}
}

// Dir returns the working directory.
func (s *Session) Dir() string { return s.s.Dir() }

// Run runs a script and returns its exit status. exit ends the script, not the session. What the
// script left in the background ends when ctx does.
func (s *Session) Run(ctx context.Context, script string, stdin io.Reader, stdout, stderr io.Writer) int {
	return s.s.Run(ctx, script, stdin, stdout, stderr)
}

// Close closes the files that scripts left open.
func (s *Session) Close() { s.s.Close() }
