package agnhost

import (
	"context"
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// newPause returns the sub-command that waits for a signal, so that other commands can be run in
// its container. It leaves the reason of its end as termination message and as last line of output.
func (p *program) newPause() *cobra.Command {
	return command("pause", "Wait for a signal", func(ctx context.Context) error {
		wait := p.onSignal(p.unpause, syscall.SIGINT, syscall.SIGTERM)
		fmt.Fprintln(p.env.Stdout, "Paused") // Specs wait for this.
		return together(ctx, wait)
	})
}

func (p *program) unpause(_ context.Context, sig syscall.Signal) error {
	path := p.env.Getenv("TERMINATION_MESSAGE_PATH")
	if path == "" {
		path = "/dev/termination-log"
	}
	msg := fmt.Sprintf("ended by signal %q\n", sig)
	// The log has it too, so it is no loss if the file cannot be written.
	_ = p.env.WriteFile(path, []byte(msg), 0o644)
	fmt.Fprint(p.env.Stdout, msg)
	if sig == syscall.SIGINT {
		return kit.Exit(1)
	}
	return kit.Exit(2)
}
