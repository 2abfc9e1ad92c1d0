package local

import (
	"path/filepath"
	"strings"
	"testing"
)

// Runs that need the same go on one after another, and others beside them.
func TestAlone(t *testing.T) {
	c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
	c.Workers = 3
	for seed := range uint64(4) {
		for _, agent := range []string{"needs", "free"} {
			c.Runs = append(c.Runs, Run{Agent: agent, Problem: "slow", Seed: seed})
		}
	}
	c.Alone = func(r Run) string { return strings.TrimPrefix(r.Agent, "free") }
	under, together, beside := map[string]int{}, 0, 0
	c.Began = func(try *Try) {
		under[try.Agent]++
		together, beside = max(together, under["needs"]), max(beside, under["needs"]+under["free"])
	}
	c.Ended = func(try *Try, _ *Result) { under[try.Agent]-- }
	sum, err := c.Run(t.Context())
	if err != nil || sum.Left != 0 || sum.Why != nil {
		t.Fatalf("%+v, %v", sum, err)
	}
	if together != 1 || beside != 3 {
		t.Errorf("%d that need the same at a time, want 1; %d of all, want 3", together, beside)
	}
	if n := len(lines(t, journal)); n != 16 {
		t.Errorf("%d lines of 8 runs that begin and end", n)
	}
}

// What takes one try after another, or ahead, does not keep runs apart, and is not asked to.
func TestAloneRefused(t *testing.T) {
	for name, change := range map[string]func(*Campaign){
		"runners": func(c *Campaign) { c.warmUp() },
		"ahead":   func(c *Campaign) { c.Ahead = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			c, journal := world(t, filepath.Join(t.TempDir(), "folder"))
			c.Runs, c.Alone = campaignRuns("solved"), func(Run) string { return "" }
			change(c)
			if _, err := c.Run(t.Context()); err == nil || exists(journal) {
				t.Errorf("it runs: %v", err)
			}
		})
	}
}
