package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ways are the runs that runners have had, by process, in order.
func ways(t *testing.T, journal string) map[string][]string {
	t.Helper()
	list := map[string][]string{}
	for _, line := range lines(t, journal) {
		if words := strings.Fields(line); words[0] == "in" {
			list[words[1]] = append(list[words[1]], words[2])
		}
	}
	return list
}

// Runners have runs of a kind one after another, whatever their order. One that is lost takes its run along, and no
// other.
func TestRunners(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.warmUp()
	c.Workers = 1
	for seed := range uint64(3) {
		for _, p := range []string{"solved", "agent"} {
			c.Runs = append(c.Runs, Run{Agent: "a", Problem: p, Seed: seed})
		}
	}
	c.Runs = append(c.Runs, campaignRuns("dies", "gone")...)
	ends := collect(c)
	sum, err := c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	want := []string{
		"solved solved 0", "solved solved 0", "solved solved 0", "agent agent 0", "agent agent 0", "agent agent 0",
		"dies infra 1 again", "dies infra 2 again", "dies infra 3", "gone infra 1 again", "gone infra 2 again",
		"gone infra 3",
	}
	if diff := cmp.Diff(want, []string(*ends)); diff != "" {
		t.Error(diff)
	}
	var all [][]string
	for _, w := range ways(t, journal) {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b []string) int { return len(b) - len(a) })
	first := []string{"solved", "solved", "solved", "agent", "agent", "agent", "dies", "dies", "dies", "gone"}
	if diff := cmp.Diff([][]string{first, {"gone"}, {"gone"}}, all); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(filepath.Join(c.Folder.Dir, runningName)); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// A runner prepares nothing, and none can be asked to.
func TestRunnersAhead(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.warmUp()
	c.Workers, c.Ahead, c.Runs = 1, 1, campaignRuns("solved", "agent")
	if sum, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Ahead is 1") {
		t.Errorf("%+v, %v", sum, err)
	}
	if exists(journal) {
		t.Errorf("it began with %v", lines(t, journal))
	}
}

// Two runners have each a kind of their own, as long as there is enough of both.
func TestRunnersSide(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.warmUp()
	c.Workers = 2
	for seed := range uint64(8) {
		for _, p := range []string{"solved", "agent"} {
			c.Runs = append(c.Runs, Run{Agent: "a", Problem: p, Seed: seed})
		}
	}
	if sum, err := c.Run(t.Context()); err != nil || sum.Left != 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	changes := 0
	for _, w := range ways(t, journal) {
		for i := range w[1:] {
			if w[i] != w[i+1] {
				changes++
			}
		}
	}
	if changes > 1 { // Who is done first helps the other one.
		t.Errorf("%d changes of kind: %v", changes, ways(t, journal))
	}
}

// A campaign that is stopped stops the runs of runners, too, without a trace.
func TestRunnersStop(t *testing.T) {
	c, _ := world(t, filepath.Join(t.TempDir(), "folder"))
	c.warmUp()
	c.Workers, c.Runs = 1, campaignRuns("solved", "hangs", "agent")
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Began = func(try *Try) {
		if try.Problem == "hangs" {
			cancel(errors.New("told twice"))
		}
	}
	var ended []string
	c.Ended = func(_ *Try, r *Result) {
		if r != nil {
			ended = append(ended, r.Problem)
		}
	}
	sum, err := c.Run(ctx)
	if err != nil || sum.Left != 2 || !slices.Equal(ended, []string{"solved"}) {
		t.Errorf("%+v, %v, %v", sum, err, ended)
	}
	if left, err := os.ReadDir(filepath.Join(c.Folder.Dir, runningName)); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}
