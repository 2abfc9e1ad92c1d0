package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/terminal"
	"github.com/aiopslab/aiopslab/session"
)

func newShell(s *State) *cobra.Command {
	f := &runFlags{steps: session.DefaultSteps, blind: true}
	c := &cobra.Command{
		Use:   "shell PROBLEM [-- COMMAND [ARG...]]",
		Short: "Work on a problem in a shell with kubectl, or have a program do it",
		Long: `Work on a problem in a shell of your own, or have a program do it that only knows
kubectl. The shell, or the command behind '--', has

  KUBECONFIG    a kubeconfig that reaches the cluster through the guard
  kubectl       this program's, in PATH
  submit        hands the solution in, which ends the run

'submit --help' tells how the solution is written. One that cannot be understood
is not submitted. Who leaves without submitting has given up; a mitigation is
judged all the same.`,
		Example: `  aiopslab shell scale_pod_zero_social_net-mitigation-1
  aiopslab shell scale_pod_zero_social_net-mitigation-1 -- ./my-agent.sh`,
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at >= 0 {
				if at == len(args) {
					return fail(ExitUsage, errors.New("there is no command behind '--'"),
						"Leave '--' out to have a shell.")
				}
				args = args[:at]
			}
			if len(args) > 1 {
				return fail(ExitUsage, fmt.Errorf("unexpected argument %q", args[1]),
					"Put the command to run behind '--': aiopslab shell "+args[0]+" -- "+args[1])
			}
			return f.shadow.oneProblem(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			id, command := f.shadow.names(args)
			p, err := f.problem(s, id)
			if err != nil {
				return err
			}
			if err := f.cage.check(true); err != nil {
				return err
			}
			o := terminal.Options{
				Command: command, Self: self(s), Cage: f.cageOf(s, p),
				Stdin: file(s.Stdin, os.Stdin), Stdout: file(s.Stdout, os.Stdout), Stderr: file(s.Stderr, os.Stderr),
			}
			if len(o.Command) == 0 {
				o.Command, o.Shell = []string{cmp.Or(s.Env("SHELL"), "/bin/sh")}, true
			}
			if f.output != "" {
				o.Stdout = o.Stderr
			}
			a, err := terminal.Entry(o)
			if err != nil {
				code := ExitNotRunnable
				if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
					code = ExitNotFound
				}
				return fail(code, fmt.Errorf("run %s: %w", o.Command[0], err), "")
			}
			return runProblem(c.Context(), s, f, p, a)
		},
	}
	f.cage.add(c)
	f.addRun(c, s)
	outputFlag(c, &f.output, dataFormats...)
	return c
}

// file returns the file that a stream is, or another if it is none: a program cannot use what is only
// in this process.
func file(stream any, other *os.File) *os.File {
	if f, ok := stream.(*os.File); ok {
		return f
	}
	return other
}

// runSubmit is the program that hands a solution in.
func runSubmit(s *State) error {
	err := terminal.Submit(s.Env(terminal.CounterVariable), s.Args[1:], s.Stdout)
	if errors.Is(err, terminal.ErrMalformed) {
		return fail(ExitUsage, err, "")
	}
	return err
}
