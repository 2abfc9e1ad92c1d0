package cli

import (
	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/human"
)

func newPlay(s *State) *cobra.Command {
	f := &runFlags{blind: true, silent: true}
	c := &cobra.Command{
		Use:   "play PROBLEM",
		Short: "Work on a problem yourself",
		Long: `Work on a problem yourself, with the same interface and limits as an agent.

A line is a command for the shell, or an API call such as
  get_logs("test-hotel-reservation", "geo")
  submit(["geo"])
What an agent would see is shown in full, a page at a time on a terminal.
'help' lists the calls. On a terminal, Tab completes and the arrow keys bring
earlier lines back. The end of the input, Ctrl-D, gives up.`,
		Example: `  aiopslab play revoke_auth_mongodb-localization-1`,
		Args:    f.shadow.oneProblem,
		RunE: func(c *cobra.Command, args []string) error {
			id, _ := f.shadow.names(args)
			p, err := f.problem(s, id)
			if err != nil {
				return err
			}
			shown := s.Stdout
			if f.output != "" {
				shown = s.Stderr
			}
			return runProblem(c.Context(), s, f, p, human.Entry(s.Stdin, shown, s.Stderr))
		},
	}
	f.add(c, s)
	return c
}
