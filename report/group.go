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
	Solved   Share   `json:"solved"`
	Rounds   float64 `json:"rounds"`   // in which a manager handed out tasks, or equals began to talk
	Messages float64 `json:"messages"` // that members sent each other
	Turns    float64 `json:"turns"`    // decisions of members: with models, questions to one
	// Roles are the turns of a round by who takes them; nil if nobody leads the others.
	Roles *Roles `json:"turns_of_a_round,omitempty"`
	// Assignment is the share of rounds with a task for somebody who could find the fault; nil if no run tells.
	Assignment *float64 `json:"assignment_accuracy,omitempty"`
	// Study is its mean of the same level and scope; nil if no run is of an operation that it has.
	Study *Study `json:"study,omitempty"`
}

// Roles are the turns of a manager in a round, and those of a maintainer who took any.
type Roles struct {
	Manager    float64 `json:"manager"`
	Maintainer float64 `json:"maintainer"`
}

func (r *Roles) text() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f + %.1f", r.Manager, r.Maintainer)
}

// RunGroup is how the members of an agent that is several worked together in one run.
type RunGroup struct {
	Rounds, Messages, Turns int
	// Managers is how many of the turns the manager took, and Maintainers how many others took any; 0 if nobody leads.
	Managers, Maintainers int
	Assignment            *float64
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
	manager, _ := results["manager"].(string)
	for who, n := range turns {
		n, _ := n.(float64)
		g.Turns += int(n)
		if who == manager {
			g.Managers, g.Maintainers = int(n), len(turns)-1
		}
	}
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
		var solved Problems
		var roles roleSums
		for _, run := range runs {
			solved.Add(run.Problem, run.solved())
			r := run.Group
			g.Rounds += float64(r.Rounds)
			g.Messages += float64(r.Messages)
			g.Turns += float64(r.Turns)
			if r.Assignment != nil {
				assignments = append(assignments, *r.Assignment)
			}
			roles.add(r)
		}
		for _, sum := range []*float64{&g.Rounds, &g.Messages, &g.Turns} {
			*sum /= float64(len(runs))
		}
		if s := stats.SpreadOf(assignments); s != nil {
			g.Assignment = &s.Mean
		}
		g.Solved, g.Roles, g.Study = solved.Share(), roles.mean(), b.studyFor(k)
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), byScope(a.Scope, b.Scope), cmp.Compare(a.Level, b.Level))
	})
	return list
}

// roleSums are the turns and rounds of several runs. Sums of whole numbers are the same in any order.
type roleSums struct{ managers, rounds, maintainers, maintained int }

func (s *roleSums) add(r *RunGroup) {
	if r.Managers > 0 {
		s.managers += r.Managers
		s.rounds += r.Rounds
		s.maintainers += r.Turns - r.Managers
		s.maintained += r.Rounds * r.Maintainers
	}
}

func (s *roleSums) mean() *Roles {
	if s.maintained == 0 {
		return nil
	}
	return &Roles{float64(s.managers) / float64(s.rounds), float64(s.maintainers) / float64(s.maintained)}
}

func (p *printer) groups(r *Report) {
	if len(r.Groups) == 0 {
		return
	}
	rows := [][]string{{
		"AGENT", "SCOPE", "LEVEL", "RUNS", "SOLVED (%)", "ROUNDS", "MESSAGES", "TURNS", "TURNS A ROUND",
		"ASSIGNMENT (%)",
	}}
	var studies []*Study
	for _, g := range r.Groups {
		rows = append(rows, []string{
			cell(g.Agent), cmp.Or(g.Scope, "-"), cmp.Or(cell(g.Level), "-"), fmt.Sprint(g.Runs),
			fmt.Sprintf("%.1f", 100*g.Solved.Value), fmt.Sprintf("%.1f", g.Rounds), fmt.Sprintf("%.1f", g.Messages),
			fmt.Sprintf("%.1f", g.Turns), g.Roles.text(), orNone(g.Assignment, 100),
		})
		studies = append(studies, g.Study)
	}
	p.table("How groups work together, means of a run", besideStudy(rows, "SOLVED (%)", studies, (*Study).percent))
}
