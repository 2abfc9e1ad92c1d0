package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Group is how an agent that is several worked together. Counts are means over the runs that count.
type Group struct {
	Agent string `json:"agent"`
	// Level is the level of autonomy that operations ask for; empty for other runs.
	Level    string  `json:"level,omitempty"`
	Runs     int     `json:"runs"`
	Solved   float64 `json:"solved"`   // share of them
	Rounds   float64 `json:"rounds"`   // in which a manager handed out tasks, or equals began to talk
	Messages float64 `json:"messages"` // that members sent each other
	Turns    float64 `json:"turns"`    // decisions of members: with models, questions to one
	// Assignment is the share of rounds with a task for somebody who could find the fault; nil if no run tells.
	Assignment *float64 `json:"assignment_accuracy,omitempty"`
}

// RunGroup is how the members of an agent that is several worked together in one run.
type RunGroup struct {
	Rounds, Messages, Turns int
	Assignment              *float64
	Level                   string // of autonomy that an operation asks for
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
	g.Level, _ = results["level"].(string)
	g.Solved, _ = results["success"].(bool)
	if a, ok := results["assignment_accuracy"].(float64); ok {
		g.Assignment = &a
	}
	return g
}

// groupKey is an agent that is several, at a level of autonomy.
type groupKey struct{ agent, level string }

// groups are those of all agents that are several, by name and level.
func (b *Builder) groupRows() (list []Group) {
	for k, runs := range b.groups {
		g := Group{Agent: k.agent, Level: k.level, Runs: len(runs)}
		n, right, told := float64(len(runs)), 0.0, 0
		for _, r := range runs {
			if r.Solved {
				g.Solved += 1 / n
			}
			g.Rounds += float64(r.Rounds) / n
			g.Messages += float64(r.Messages) / n
			g.Turns += float64(r.Turns) / n
			if r.Assignment != nil {
				right += *r.Assignment
				told++
			}
		}
		if told > 0 {
			mean := right / float64(told)
			g.Assignment = &mean
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Level, b.Level))
	})
	return list
}

func (p *printer) groups(r *Report) {
	if len(r.Groups) == 0 {
		return
	}
	rows := [][]string{{"AGENT", "LEVEL", "RUNS", "SOLVED (%)", "ROUNDS", "MESSAGES", "TURNS", "ASSIGNMENT (%)"}}
	for _, g := range r.Groups {
		assignment := "-"
		if g.Assignment != nil {
			assignment = fmt.Sprintf("%.1f", 100**g.Assignment)
		}
		rows = append(rows, []string{
			cell(g.Agent), cmp.Or(g.Level, "-"), fmt.Sprint(g.Runs), fmt.Sprintf("%.1f", 100*g.Solved),
			fmt.Sprintf("%.1f", g.Rounds), fmt.Sprintf("%.1f", g.Messages),
			fmt.Sprintf("%.1f", g.Turns), assignment,
		})
	}
	p.table("How groups work together, means of a run", rows)
}
