package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	_ "unsafe" // for linkname

	"github.com/spf13/cobra"
	helm "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
	component "k8s.io/component-base/cli"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/aci/tool"
	"github.com/aiopslab/aiopslab/internal/kuberc"
)

// newTool is the command that the processes of an agent are: its shell, kubectl and helm. They take
// their own rights away first, so it is of no use to anybody else.
func newTool(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "tool NAME", Short: "Run a program of an agent's, confined", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			code := tool.Run(args, map[string]tool.Program{
				aci.ShellName: aci.Shell(kuberc.Expand),
				"kubectl":     stock(s, func(args []string) int { return runToolKubectl(s, args) }),
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

// runToolKubectl runs kubectl for an agent. It shows nothing of the program it is a part of: neither the
// stacks that kubectl prints at -v=99 when it fails, nor profiles. The shell has applied preferences,
// before it judged the command.
func runToolKubectl(s *State, args []string) int {
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(s.Stderr, strings.TrimSuffix(message, "\n"))
		}
		os.Exit(code)
	})
	root := newStockKubectl(s, args[:1]) // Without arguments it applies none itself.
	root.SetArgs(args[1:])
	if f := root.PersistentFlags().Lookup("profile"); f != nil {
		f.Value = noProfile{}
	}
	cmdutil.CheckErr(component.RunNoErrOutput(root))
	return 0
}

// noProfile is the value of --profile.
type noProfile struct{}

func (noProfile) String() string { return "none" }
func (noProfile) Type() string   { return "string" }

func (noProfile) Set(name string) error {
	if name != "none" {
		return fmt.Errorf("unknown profile '%s'", name)
	}
	return nil
}

// helmRelease is the version of Helm that is linked in, go.mod's. Helm's own build stamps it.
const helmRelease = "v4.3.1"

//go:linkname helmVersion helm.sh/helm/v4/internal/version.version
var helmVersion string

// runHelm runs helm in this process, as its own main does.
func runHelm(s *State, args []string) int {
	kube.ManagedFieldsManager, helmVersion = "helm", helmRelease
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
