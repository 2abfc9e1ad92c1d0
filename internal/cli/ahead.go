package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session/process"
)

const (
	// aheadFlag has a run of a campaign set up its environment, and begin when it reads a line.
	aheadFlag = "ahead"

	prepareFlag = "prepare"
)

// preparation is how many environments of a campaign are set up before it is their turn.
type preparation struct {
	most  int
	given bool
}

func (f *preparation) add(c *cobra.Command) {
	c.Flags().IntVar(&f.most, prepareFlag, 0, "how many more environments are prepared while agents think; each takes "+
		"the memory of one that goes on")
	c.Flags().Lookup(prepareFlag).DefValue = "1 if an agent uses a model or is a program, if there is memory for it"
}

// complete takes what the command line says, and has fewer runs go on at a time by default: what is prepared takes as
// much memory as what goes on.
func (f *preparation) complete(c *cobra.Command, m *matrix) error {
	f.given = c.Flags().Changed(prepareFlag)
	switch {
	case f.most < 0:
		return fail(ExitUsage, fmt.Errorf("--%s %d cannot be negative", prepareFlag, f.most), "")
	case f.most > 0 && m.apart.resets():
		return fail(ExitUsage, fmt.Errorf("--%s is for new environments: one that is used again is there already",
			prepareFlag), "Leave it out, or --isolation reset.")
	case f.most > 0 && !c.Flags().Changed("workers"):
		m.workers = usualWorkers(os.DirFS("/"), f.most)
	}
	return nil
}

// of is how many it is for so many runs at a time. Waits says that there are agents who mostly wait, as for a model:
// others leave no processor idle. Root is this machine's files.
func (f *preparation) of(m *matrix, waits bool, root fs.FS) int {
	switch {
	case f.given:
		return f.most
	case !waits || m.apart.resets() || m.workers >= roomFor(root, usualMemory):
		return 0
	}
	return 1
}

// await has the environment of a run ready, and returns when it is the run's turn.
func (f *runFlags) await(ctx context.Context, env *process.Environment, p *problem.Problem) error {
	select {
	case <-f.turn: // There is nothing to wait for.
		return nil
	default:
	}
	err := openEnvironment(ctx, env, func(ctx context.Context, env *process.Environment) error {
		return env.Ready(ctx, p)
	})
	if err != nil {
		return err
	}
	select {
	case <-f.turn:
		return nil
	case <-env.Done():
		return fail(ExitEnvironment, env.Err(), "")
	case <-ctx.Done():
		return interrupted
	}
}
