package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/session"
)

// flakes tells how far verdicts can be relied on, by the runs of one problem and agent that were repeated.
type flakes struct {
	pairs  int      // of a problem and an agent, with two verdicts or more
	differ []string // those of them whose verdicts are not the same
	runs   int
	none   map[string]int // runs without a verdict on the agent, by what they have instead
}

// flakesOf counts them.
func flakesOf(cells []*cell) flakes {
	f := flakes{runs: len(cells), none: map[string]int{}}
	verdicts := map[string]map[string]int{}
	for _, c := range cells {
		if c.Got != string(session.Solved) && c.Got != string(session.AgentFailed) {
			f.none[c.Got]++
			continue
		}
		pair := c.Problem + " " + c.Agent
		if verdicts[pair] == nil {
			verdicts[pair] = map[string]int{}
		}
		verdicts[pair][c.Got]++
	}
	for _, pair := range slices.Sorted(maps.Keys(verdicts)) {
		got := verdicts[pair]
		if n := got[string(session.Solved)] + got[string(session.AgentFailed)]; n < 2 {
			continue
		}
		if f.pairs++; len(got) > 1 {
			f.differ = append(f.differ, fmt.Sprintf("%s: %s", pair, tally(got)))
		}
	}
	return f
}

// tally is how often each word comes up: "2 infra, 1 lost".
func tally(words map[string]int) string {
	var list []string
	for _, w := range slices.Sorted(maps.Keys(words)) {
		list = append(list, fmt.Sprintf("%d %s", words[w], w))
	}
	return strings.Join(list, ", ")
}

// print writes which verdicts differ, and the rates.
func (f flakes) print(out io.Writer) {
	for _, line := range f.differ {
		fmt.Fprintf(out, "verdicts differ: %s\n", line)
	}
	rate := 0.0
	if f.pairs > 0 {
		rate = 100 * float64(len(f.differ)) / float64(f.pairs)
	}
	none := 0
	for _, n := range f.none {
		none += n
	}
	fmt.Fprintf(out, "flake rate %.1f %%: the verdicts of %d of %d pairs of a problem and an agent differ; "+
		"%d of %d runs have none", rate, len(f.differ), f.pairs, none, f.runs)
	if none > 0 {
		fmt.Fprintf(out, " (%s)", tally(f.none))
	}
	fmt.Fprintln(out)
}
