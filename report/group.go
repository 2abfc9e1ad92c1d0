package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/report/stats"
)

// Group is how an agent that is several worked together. Counts are means over the runs that count.
type Group struct {
	Agent string `json:"agent"`
	// Level is the level of autonomy that operations ask for; empty for other runs.
	Level    string  `json:"level,omitempty"`
	Scope    string  `json:"scope,omitempty"` // how many services they are about, see [Aim]
	Runs     int     `json:"runs"`
	Solved   float64 `json:"solved"`   // share of them
	Rounds   float64 `json:"rounds"`   // in which a manager handed out tasks, or equals began to talk
	Messages float64 `json:"messages"` // that members sent each other
	Turns    float64 `json:"turns"`    // decisions of members: with models, questions to one
	// Assignment is the share of rounds with a task for somebody who could find the fault; nil if no run tells.
	Assignment *float64 `json:"assignment_accuracy,omitempty"`
	// Study is its mean of the same level and scope; nil if no run is of an operation that it has.
	Study *Study `json:"study,omitempty"`
}

// RunGroup is how the members of an agent that is several worked together in one run.
type RunGroup struct {
	Rounds, Messages, Turns int
	Assignment              *float64
	Solved                  bool
}

// takeGroup reads what a verdict says of a group.
func takeGroup(results map[string]any) *RunGroup {
	messages, ok := results["messages"].(float64)
	if !ok {
		return nil
	}
	g := &RunGroup{Messages: int(messages)}
	rounds, _ := results["rounds"].(float64)
	g.Rounds = int(rounds)
	turns, _ := results["turns"].(map[string]any)
	for _, n := range turns {
		n, _ := n.(float64)
		g.Turns += int(n)
	}
	g.Solved, _ = results["success"].(bool)
	if a, ok := results["assignment_accuracy"].(float64); ok {
		g.Assignment = &a
	}
	return g
}

// groupKey is an agent that is several, at what an operation asks for.
type groupKey struct {
	agent string
	aim   Aim
}

// groupRows are those of all agents that are several, by name, scope and level.
func (b *Builder) groupRows() (list []Group) {
	for k, runs := range b.groups {
		g := Group{Agent: k.agent, Level: k.aim.Level, Scope: k.aim.Scope, Runs: len(runs)}
		var assignments []float64
		for _, r := range runs { // Sums of whole numbers are the same in any order.
			g.Solved += float64(bit(r.Solved))
			g.Rounds += float64(r.Rounds)
			g.Messages += float64(r.Messages)
			g.Turns += float64(r.Turns)
			if r.Assignment != nil {
				assignments = append(assignments, *r.Assignment)
			}
		}
		for _, sum := range []*float64{&g.Solved, &g.Rounds, &g.Messages, &g.Turns} {
			*sum /= float64(len(runs))
		}
		if s := stats.SpreadOf(assignments); s != nil {
			g.Assignment = &s.Mean
		}
		g.Study = b.studyFor(k)
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), byScope(a.Scope, b.Scope), cmp.Compare(a.Level, b.Level))
	})
	return list
}

func (p *printer) groups(r *Report) {
	if len(r.Groups) == 0 {
		return
	}
	rows := [][]string{{
		"AGENT", "SCOPE", "LEVEL", "RUNS", "SOLVED (%)", "ROUNDS", "MESSAGES", "TURNS", "ASSIGNMENT (%)",
	}}
	var studies []*Study
	for _, g := range r.Groups {
		rows = append(rows, []string{
			cell(g.Agent), cmp.Or(g.Scope, "-"), cmp.Or(cell(g.Level), "-"), fmt.Sprint(g.Runs),
			fmt.Sprintf("%.1f", 100*g.Solved), fmt.Sprintf("%.1f", g.Rounds), fmt.Sprintf("%.1f", g.Messages),
			fmt.Sprintf("%.1f", g.Turns), orNone(g.Assignment, 100),
		})
		studies = append(studies, g.Study)
	}
	p.table("How groups work together, means of a run", besideStudy(rows, "SOLVED (%)", studies, (*Study).percent))
}
