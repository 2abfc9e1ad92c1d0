package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/report/stats"
)

// Tries is how an agent did in problems that it tried more than once.
type Tries struct {
	Agent    string `json:"agent"`
	Problems int    `json:"problems"` // that were tried more than once
	// At and All are the chances that one of 1, 2, ... tries of a problem is solved, and that all of them are, in the
	// mean over these problems, up to as many tries as each of them had: pass@k and pass^k.
	At  []float64 `json:"pass_at"`
	All []float64 `json:"pass_all"`
}

// tries are how an agent did in problems that it tried more than once, if there are any.
func (t *tally) tries(agent string) (r Tries, ok bool) {
	again := slices.DeleteFunc(t.solved.groups(), func(g stats.Group) bool { return g.Of < 2 })
	if len(again) == 0 {
		return r, false
	}
	r = Tries{Agent: agent, Problems: len(again)}
	for k := 1; k <= again[0].Of; k++ {
		at, all := 0.0, 0.0
		for _, g := range again {
			at += stats.PassAt(k, g.Solved, g.Of)
			all += stats.PassAll(k, g.Solved, g.Of)
		}
		r.At, r.All = append(r.At, at/float64(len(again))), append(r.All, all/float64(len(again)))
	}
	return r, true
}

// allTries are those of all agents.
func (b *Builder) allTries() []Tries {
	list := []Tries{}
	for k, t := range b.tallies {
		if k.task != "" {
			continue
		}
		if r, ok := t.tries(k.agent); ok {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b Tries) int { return cmp.Compare(a.Agent, b.Agent) })
	return list
}

func (p *printer) tries(r *Report) {
	if len(r.Tries) == 0 {
		return
	}
	rows := [][]string{{"AGENT", "PROBLEMS", "TRIES", "PASS@1", "PASS@K", "PASS^K"}}
	for _, t := range r.Tries {
		k := len(t.At)
		percent := func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
		rows = append(rows, []string{
			cell(t.Agent), fmt.Sprint(t.Problems), fmt.Sprint(k), percent(t.At[0]), percent(t.At[k-1]),
			percent(t.All[k-1]),
		})
	}
	p.table("Problems that were tried more than once: K tries", rows)
}
