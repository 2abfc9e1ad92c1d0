package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/aiopslab/aiopslab/agent/terminal"
	"github.com/aiopslab/aiopslab/internal/builtin"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// State is the world of a command.
type State struct {
	Args []string // as of os.Args
	Env  func(string) string
	// LookupEnv is as os.LookupEnv: it tells what is empty from what is not there.
	LookupEnv func(string) (string, bool)

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Terminal says that Stderr is one, so that progress can be shown.
	Terminal bool
	// OutTerminal says that Stdout is one.
	OutTerminal bool
	// Parts are what the program has beside what is built in.
	Parts builtin.Parts

	own bool // the process is the program's, and can be hidden: nobody has kept a part of its command line

	registry string // the prefix of the registry that images come from; see --images

	dirs ownFlags
	logs logFlags

	runner *runner // whose run it is; nil for a run of its own
}

// Process is the state of this process.
func Process() *State {
	return &State{
		Args: ownArguments(), own: runtime.GOOS == "linux", Env: os.Getenv, LookupEnv: os.LookupEnv, Stdin: os.Stdin,
		Stdout: os.Stdout, Stderr: os.Stderr, Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// Main runs a command and returns its exit code.
func Main(ctx context.Context, s *State) int {
	switch strings.TrimSuffix(filepath.Base(s.Args[0]), ".exe") {
	case "kubectl":
		return report(s.Stderr, runKubectl(s, s.Args))
	case terminal.Program:
		return report(s.Stderr, runSubmit(s))
	}
	if err := s.Parts.Check(); err != nil {
		return report(s.Stderr, fail(ExitUsage, fmt.Errorf("this program adds what cannot be added: %w", err),
			"Give it another name in the call of lab.Main."))
	}
	root := newRoot(s)
	root.SetArgs(s.Args[1:])
	root.SetIn(s.Stdin)
	root.SetOut(s.Stdout)
	root.SetErr(s.Stderr)
	return report(s.Stderr, root.ExecuteContext(ctx))
}

func newRoot(s *State) *cobra.Command {
	// Packages of Kubernetes put flags of their own into the process' set, and cobra would offer
	// them with every command.
	pflag.CommandLine = pflag.NewFlagSet("aiopslab", pflag.ContinueOnError)
	root := &cobra.Command{
		Use:   "aiopslab",
		Short: "A lab in which AI agents learn to run clouds",
		Long: `AIOpsLab takes AI agents through incidents in a live cloud and grades what they
found and fixed. The cloud is a Kubernetes cluster in one unprivileged process,
up in a second: no Docker, no root, nothing to install.

  aiopslab run revoke_auth_mongodb-mitigation-1     see an agent at work
  aiopslab problems                                 see what there is to solve
  aiopslab play revoke_auth_mongodb-mitigation-1    solve it yourself`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		Version:       version(),
		RunE: func(c *cobra.Command, _ []string) error {
			return c.Help()
		},
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return flagFailure(c, err)
	})
	root.SetHelpCommand(newHelp())
	root.AddCommand(newRun(s), newShift(s), newPlay(s), newProblems(s), newDescribe(s), newVerify(s), newAudit(s),
		newBench(s), newReport(s), newCompare(s), newExport(s), newFaults(s), newAgents(s))
	root.AddCommand(newRuns(s), newShow(s), newView(s), newReplay(s), newRegrade(s))
	root.AddCommand(newShell(s), newMCP(s), newUp(s), newKubectl(s), newApps(s), newImages(s), newSnapshot(s),
		newAdopt(s), newLoad(s), newReset(s), newVersion(s), newTool(s), newDoctor(s), newCleanup(s))
	root.AddCommand(newServe(s), newWorker(s), newRunner(s), newCampaign(s), newMan(s))
	for _, c := range root.Commands() {
		s.dirs.add(c, s)
	}
	s.logs.add(root, s)
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(c.Root(), rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// unknownCommand refuses arguments of the root command and names the nearest command.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "Run 'aiopslab --help' to see the commands."
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("Did you mean '%s'?", cmp.Or(strict.Nearest(args[0], near), near[0]))
	}
	return fail(ExitUsage, fmt.Errorf("unknown command %q", args[0]), hint)
}

// noArgs refuses arguments of a command that takes none.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(ExitUsage, fmt.Errorf("%s takes no arguments, got %q", c.CommandPath(), args[0]),
			fmt.Sprintf("Run '%s --help'.", c.CommandPath()))
	}
	return nil
}

// oneArg asks for exactly one argument.
func oneArg(what string) cobra.PositionalArgs { return nArgs(1, "one argument", what) }

// twoArgs asks for exactly two.
func twoArgs(what string) cobra.PositionalArgs { return nArgs(2, "two arguments", what) }

func nArgs(n int, many, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fail(ExitUsage, fmt.Errorf("%s needs %s, %s; got %d", c.CommandPath(), many, what, len(args)),
				fmt.Sprintf("Run '%s --help'.", c.CommandPath()))
		}
		return nil
	}
}
