package agnhost

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newEntrypointTester returns the sub-command that prints all arguments of the program, its name
// and the sub-command's included: tests want to see which command a container was given.
func (p *program) newEntrypointTester() *cobra.Command {
	return &cobra.Command{
		Use:   "entrypoint-tester",
		Short: "Print all arguments",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.env.Stdout, "%v\n", p.env.Args)
			return err
		},
	}
}
