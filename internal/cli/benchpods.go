package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// machineOnly are the flags of bench that mean nothing in pods.
var machineOnly = []string{"max-cost", "retry", isolationFlag, prepareFlag, "prices", "model-cache"}

// checkPlace refuses flags that mean nothing where the runs go on.
func (f *benchFlags) checkPlace(c *cobra.Command) error {
	if !f.on.cluster() {
		return refuseUnused(c, []string{"model-secret", "context", "kubeconfig"})
	}
	for _, name := range machineOnly {
		if c.Flags().Changed(name) {
			hint := "Leave it out."
			if name == "max-cost" { // Nobody counts while pods run.
				hint = "Bound each run with --max-run-cost."
			}
			return fail(ExitUsage, fmt.Errorf("--%s is for one machine, not for --on cluster", name), hint)
		}
	}
	return nil
}

// benchInPods has a Job do the runs, and tells what came of them.
func (f *benchFlags) benchInPods(ctx context.Context, s *State, problems []*problem.Problem, who []local.Contestant,
	list []local.Run, settings []string,
) (err error) {
	plan := &campaign.Plan{Runs: list, Args: append(settings, f.others()...), Telemetry: f.keeps}
	if plan.Documents, err = documents(problems); err != nil {
		return err
	}
	b, side := newBoard(s, &f.matrix, len(list)), map[string]int{}
	b.live = false // Pods do not tell what they are at.
	fmt.Fprintf(b.out, "%s of %s by %s, %d at a time\n", count(len(list), "run"), count(len(problems), "problem"),
		count(len(who), "agent"), f.workers)
	err = f.on.runInPods(ctx, s, &f.matrix, "bench", plan, func(_ int, r *local.Result) {
		side[r.Record] = slices.Index(who, r.Who())
		b.ended(nil, r)
	}, func(i int, why string) {
		b.ended(nil, &local.Result{Run: list[i], Class: session.Infra, Why: cmp.Or(why, "it did not end")})
	})
	if b.done == 0 {
		return err
	}
	return f.conclude(s, b, f.on.dir(f.results), len(who), side, err)
}
