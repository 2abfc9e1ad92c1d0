package tool

import (
	"context"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Hold states that the tool holds n bytes more, until it ends. It ends the tool if that is too much.
func (c *Call) Hold(n int) {
	if err := c.holder.Add(n); err != nil {
		panic(stopped{err})
	}
}

// Hold is for stream.Lines, which may have to keep a line that does not end.
func (s *source) Hold(n int) { s.c.Hold(n) }

// killedByMemory is the result of a program that holds too much: the container is being killed, and
// the program with it.
func killedByMemory(ctx context.Context) error {
	if ctx.Err() != nil {
		return Killed(ctx)
	}
	return kit.Exit(kit.ExitSignal + int(syscall.SIGKILL))
}
