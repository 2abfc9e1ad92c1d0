package cli

import (
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/aci/tool"
)

// newTool is the command that the processes of an agent are: its shell, kubectl and helm. They take
// their own rights away first, so it is of no use to anybody else.
func newTool(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "tool NAME", Short: "Run a program of an agent's, confined", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code := tool.Run(args, map[string]tool.Program{
				aci.ShellName: aci.Shell,
				"kubectl":     stock(s, func(args []string) int { return report(s.Stderr, runKubectl(s, args)) }),
				"helm":        stock(s, func(args []string) int { return runHelm(s, args) }),
			})
			if code == 0 {
				return nil
			}
			return exitStatus(code)
		},
	}
}

// stock runs a program as if it were a binary of its own: it says in requests and help texts what it
// was called as.
func stock(s *State, run func(args []string) int) tool.Program {
	return func(w *tool.World, args []string) int {
		w.EndWithStarter()
		os.Args, s.Stderr = args, os.Stderr
		return run(args)
	}
}

// runHelm runs helm in this process, as its own main does.
func runHelm(s *State, args []string) int {
	kube.ManagedFieldsManager = "helm"
	cmd, err := helm.NewRootCmd(s.Stdout, args[1:], helm.SetupLogging)
	if err != nil {
		slog.Warn("command failed", slog.Any("error", err))
		return 1
	}
	cmd.SetArgs(args[1:])
	cmd.SetIn(s.Stdin)
	cmd.SetOut(s.Stdout)
	cmd.SetErr(s.Stderr)
	err = cmd.Execute()
	if code, ok := errors.AsType[helm.CommandError](err); ok {
		return code.ExitCode
	}
	if err != nil {
		return 1
	}
	return 0
}
