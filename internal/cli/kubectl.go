package cli

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	component "k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	_ "github.com/aiopslab/aiopslab/internal/english"
)

func newKubectl(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl",
		Short: "kubectl, for the running environment",
		Long: `kubectl, complete, of the same version as the cluster. Unless KUBECONFIG or
--kubeconfig says otherwise, it talks to the environment that 'aiopslab up'
started. It never falls back to ~/.kube/config.`,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return runKubectl(s, append([]string{"kubectl"}, args...))
		},
	}
}

// runKubectl runs kubectl in this process, as its own main does: on an error it exits by itself.
func runKubectl(s *State, args []string) error {
	if err := pointKubectl(s, args); err != nil {
		return err
	}
	os.Args = args // It takes them from there, unless an alias of the user's has more.
	cmdutil.CheckErr(component.RunNoErrOutput(newStockKubectl(s, args)))
	return nil
}

// newStockKubectl is kubectl's own command, with transactions. It applies the user's preferences to the arguments, and
// holds those that result.
func newStockKubectl(s *State, args []string) *cobra.Command {
	streams := genericiooptions.IOStreams{In: s.Stdin, Out: s.Stdout, ErrOut: s.Stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(
		300).WithDiscoveryQPS(50).WithWarningPrinter(streams)
	root := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		PluginHandler: kubectl.NewDefaultPluginHandler([]string{"kubectl"}), Arguments: args, IOStreams: streams,
		ConfigFlags: flags,
	})
	root.AddCommand(newTransactions(flags, streams.Out))
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	return root
}

// pointKubectl makes kubectl talk to the running environment, unless it is told which cluster to
// talk to.
func pointKubectl(s *State, args []string) error {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i] // What follows is for a container.
	}
	if s.Env("KUBECONFIG") != "" || slices.ContainsFunc(args, namesCluster) {
		return nil
	}
	e, err := theEnvironment(s)
	if err != nil && needsCluster(args) {
		return err
	}
	return os.Setenv("KUBECONFIG", cmp.Or(e.Kubeconfig, os.DevNull))
}

// namesCluster reports whether an argument says which cluster to talk to.
func namesCluster(arg string) bool {
	for _, flag := range []string{"--kubeconfig", "--server", "-s"} {
		if arg == flag || strings.HasPrefix(arg, flag+"=") {
			return true
		}
	}
	return false
}

// needsCluster reports whether a command talks to a cluster at all.
func needsCluster(args []string) bool {
	for _, a := range args[1:] {
		switch a {
		case "help", "--help", "-h", "completion", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd,
			"kustomize", "options", "plugin", "--client":
			return false
		}
	}
	return len(args) > 1
}
