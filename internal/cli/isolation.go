package cli

import (
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/record"
)

const isolationFlag = "isolation"

// isolation is how the runs of a campaign are kept apart.
type isolation struct{ mode string }

func (i *isolation) add(c *cobra.Command) {
	c.Flags().StringVar(&i.mode, isolationFlag, record.IsolatedFresh,
		"`how` runs are kept apart: fresh, each has a new environment; reset, one is used again for runs of an "+
			"application, if nothing differs once it is reset, or else a new one")
	completeFlag(c, isolationFlag, func() []string { return []string{record.IsolatedFresh, record.IsolatedReset} })
}

// check refuses what cannot be meant. Elsewhere says where else than in this machine's processes the runs go on.
func (i *isolation) check(elsewhere string) error {
	switch {
	case i.mode != record.IsolatedFresh && i.mode != record.IsolatedReset:
		return fail(ExitUsage, fmt.Errorf("--isolation %s: want %s or %s", i.mode, record.IsolatedFresh,
			record.IsolatedReset), "")
	case i.resets() && elsewhere != "":
		return fail(ExitUsage, fmt.Errorf("--isolation reset is not for %s, where each run has its own", elsewhere),
			"Leave it out.")
	}
	return nil
}

func (i *isolation) resets() bool { return i.mode == record.IsolatedReset }

// settings are those of a folder, whose runs are all kept apart in one way.
func (i *isolation) settings() []string {
	if !i.resets() { // As in folders that are older than the flag.
		return nil
	}
	return []string{"--" + isolationFlag, i.mode}
}

// apply has a campaign's runs kept apart.
func (i *isolation) apply(p *pool, c *local.Campaign) {
	if !i.resets() {
		return
	}
	c.Kin = func(r local.Run) string { return p.by[r.Problem].App.Name }
	c.Runner = p.runner
}

// runner is the process of many tries. Its arguments tell nothing of them.
func (p *pool) runner() *exec.Cmd {
	cmd := exec.Command(p.program, "runner")
	cmd.Env, cmd.Stderr = p.environ(), p.log.writer()
	return cmd
}
