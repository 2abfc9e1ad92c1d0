package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/cloud/kube"
)

func newCleanup(s *State) *cobra.Command {
	on := cloudFlags{cloud: kubeconfigCloud}
	var dry bool
	c := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove from a cluster that you have what runs that were killed have left there",
		Long: `Remove from a cluster that you have what runs that were killed have left there:
their namespaces, and whatever else has the lab's label. What a run uses that is
alive is left alone, and so is all that the lab has not made. A run counts as
dead when it has not been heard of for a minute and a half.

A run does this by itself for the namespaces that it needs.`,
		Example: `  aiopslab cleanup --dry-run
  aiopslab cleanup --context kind-lab`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return cleanUp(c.Context(), s, &on, dry) },
	}
	on.addCluster(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only tell what would be removed")
	return c
}

func cleanUp(ctx context.Context, s *State, on *cloudFlags, dry bool) error {
	c, err := on.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := c.Remains(ctx)
	if err != nil {
		return fail(ExitError, err, "")
	}
	dead := 0
	for _, r := range all {
		fmt.Fprintln(s.Stdout, tellRemains(r))
		if !r.Alive {
			dead++
		}
	}
	if dead == 0 {
		fmt.Fprintf(s.Stdout, "Nothing is to be removed from the cluster of context %s.\n", c.Context)
		return nil
	}
	if dry {
		fmt.Fprintf(s.Stdout, "Nothing was removed from the cluster of context %s: it is a dry run.\n", c.Context)
		return nil
	}
	removed, err := c.Cleanup(ctx)
	fmt.Fprintf(s.Stdout, "%d %s removed from the cluster of context %s.\n", len(removed),
		plural(len(removed), "object"), c.Context)
	return fail(ExitError, err, "Look at what holds it with 'kubectl describe', then run 'aiopslab cleanup' again.")
}

// tellRemains says what a run has in the cluster.
func tellRemains(r kube.Remains) string {
	state := "is dead and has left"
	if r.Alive {
		state = fmt.Sprintf("is alive since %s and keeps", r.Since.UTC().Format(time.DateTime+" UTC"))
	}
	return fmt.Sprintf("run %s %s %s", r.Run, state, strings.Join(r.Objects, ", "))
}
