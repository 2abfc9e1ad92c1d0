package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pair is flaky if its verdicts differ between the repeats. What is no verdict on the agent is counted apart, and so
// is no pair of which there is one verdict only.
func TestFlakes(t *testing.T) {
	runs := func(problem, agent string, got ...string) (list []*cell) {
		for _, g := range got {
			list = append(list, &cell{Problem: problem, Agent: agent, Got: g, Want: "agent"})
		}
		return list
	}
	var cells []*cell
	for _, list := range [][]*cell{
		runs("a-1", "oracle", "solved", "solved", "solved"),
		runs("a-1", "noop", "agent", "solved", "agent"),
		runs("b-1", "oracle", "solved", "infra", "solved"),
		runs("b-1", "noop", "agent", "inconclusive", "infra"),
		runs("c-1", "noop", "agent", "agent", "agent"),
	} {
		cells = append(cells, list...)
	}
	for _, tt := range []struct {
		cells []*cell
		want  string
	}{
		{cells, "verdicts differ: a-1 noop: 2 agent, 1 solved\n" +
			"flake rate 25.0 %: the verdicts of 1 of 4 pairs of a problem and an agent differ; 3 of 15 runs have none (1 inconclusive, 2 infra)\n"},
		{cells[:3], "flake rate 0.0 %: the verdicts of 0 of 1 pairs of a problem and an agent differ; 0 of 3 runs have none\n"},
		{runs("a-1", "noop", "infra", "agent"), "flake rate 0.0 %: the verdicts of 0 of 0 pairs of a problem and an agent differ; 1 of 2 runs have none (1 infra)\n"},
	} {
		var out strings.Builder
		flakesOf(tt.cells).print(&out)
		if diff := cmp.Diff(tt.want, out.String()); diff != "" {
			t.Error(diff)
		}
	}
}
