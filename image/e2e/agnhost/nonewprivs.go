package agnhost

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) newNoNewPrivs() *cobra.Command {
	return command("nonewprivs", "Prints the UID of the running process", func(context.Context) error {
		_, err := fmt.Fprintf(p.env.Stdout, "Effective uid: %d\n", p.env.User.UID)
		return err
	})
}
