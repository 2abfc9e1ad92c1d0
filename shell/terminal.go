package shell

import (
	"context"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// AttachTerminal gives a program that reads lines from a person what a kernel gives it: echo, line
// editing and Ctrl-C, which ends the context it returns. If the standard streams are no terminal's,
// or another program has done so already, it changes nothing. detach must be called when the
// program ends.
func AttachTerminal(ctx context.Context, env *kit.Env) (_ context.Context, attached *kit.Env, detach func()) {
	return tty.Attach(ctx, env)
}
