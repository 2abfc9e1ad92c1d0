package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Start starts a command in the tool's own world and with its streams, or explains why it cannot and
// returns the exit code of that.
func (c *Call) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	c.Out.Flush()
	p, err := c.Env.Procs.Start(ctx, env)
	if err == nil {
		return p, nil
	}
	if exec, ok := errors.AsType[*kit.ExecError](err); ok {
		text := Reason(exec.Err)
		if exec.Err == kit.ErrNotInPath {
			text = "No such file or directory"
		}
		fmt.Fprintf(c.Env.Stderr, "%s: can't execute '%s': %s\n", c.Name, env.Args[0], text)
		return nil, kit.Exit(exec.ExitCode())
	}
	return nil, err
}

// Command runs a command with the tool's own streams and returns its exit code.
func (c *Call) Command(ctx context.Context, args ...string) (code int, err error) {
	p, err := c.Start(ctx, c.Env.Child(args...))
	if err != nil {
		return 0, err
	}
	return p.Wait(), nil
}

// Sleep waits. It ends the tool when the context does.
func (c *Call) Sleep(ctx context.Context, d time.Duration) {
	c.Out.Flush()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		Stopped(ctx)
	}
}
