package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Group is how an agent that is several worked together. Counts are means over the runs that count.
type Group struct {
	Agent    string  `json:"agent"`
	Runs     int     `json:"runs"`
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
	if a, ok := results["assignment_accuracy"].(float64); ok {
		g.Assignment = &a
	}
	return g
}

// groups are those of all agents that are several, by name.
func (b *Builder) groupRows() (list []Group) {
	for agent, runs := range b.groups {
		g := Group{Agent: agent, Runs: len(runs)}
		n, right, told := float64(len(runs)), 0.0, 0
		for _, r := range runs {
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
	slices.SortFunc(list, func(a, b Group) int { return cmp.Compare(a.Agent, b.Agent) })
	return list
}

func (p *printer) groups(r *Report) {
	if len(r.Groups) == 0 {
		return
	}
	rows := [][]string{{"AGENT", "RUNS", "ROUNDS", "MESSAGES", "TURNS", "ASSIGNMENT (%)"}}
	for _, g := range r.Groups {
		assignment := "-"
		if g.Assignment != nil {
			assignment = fmt.Sprintf("%.1f", 100**g.Assignment)
		}
		rows = append(rows, []string{
			cell(g.Agent), fmt.Sprint(g.Runs), fmt.Sprintf("%.1f", g.Rounds), fmt.Sprintf("%.1f", g.Messages),
			fmt.Sprintf("%.1f", g.Turns), assignment,
		})
	}
	p.table("How groups work together, means of a run", rows)
}
