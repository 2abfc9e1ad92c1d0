package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// Operation is how an agent did at one operation, try by try. Counts are means over the tries that count.
type Operation struct {
	Problem string `json:"problem"`
	Level   string `json:"level,omitempty"` // of autonomy that it asks for
	Scope   string `json:"scope,omitempty"` // see [Aim]
	Agent   string `json:"agent"`
	// Trials are whether each was solved, the first to begin first.
	Trials []bool `json:"trials"`
	// Rounds are of an agent that is several, and nil for others; so is Assignment, see [Group].
	Rounds     *float64 `json:"rounds"`
	Steps      float64  `json:"steps"` // of an agent that is several, decisions of members
	Assignment *float64 `json:"assignment_accuracy"`
	Study      *Study   `json:"study,omitempty"` // nil if it has no such operation
}

// Aim is what an operation asks for, as far as its record tells.
type Aim struct {
	Level string // of autonomy
	// Scope is low for an operation on one service, and high for one on several, which takes more than one
	// maintainer.
	Scope string
}

// How many services an operation is about, in words.
const (
	low  = "low"
	high = "high"
)

// byScope puts what is about one service before what is about several.
func byScope(a, b string) int {
	order := []string{"", low, high}
	return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
}

// aimOf is that of an operation about services.
func aimOf(level string, services []string) Aim {
	names := slices.Compact(slices.Sorted(slices.Values(services)))
	switch len(names) {
	case 0:
		return Aim{Level: level}
	case 1:
		return Aim{level, low}
	}
	return Aim{level, high}
}

// name is an aim in two words.
func (a Aim) name() string { return strings.TrimSpace(a.Scope + " " + a.Level) }

// opKey is an operation and who tried it.
type opKey struct{ problem, agent string }

// addOperation takes a run that counts.
func (b *Builder) addOperation(r *Run) {
	if r.Task != problem.Operation {
		return
	}
	if b.operations == nil {
		b.operations = map[opKey][]*Run{}
	}
	k := opKey{r.Problem, r.Contestant()}
	b.operations[k] = append(b.operations[k], r)
}

// operationRows are all operations by scope, level, id and agent, as in the study's tables.
func (b *Builder) operationRows() (list []Operation) {
	for k, runs := range b.operations {
		// An id begins with the time.
		slices.SortFunc(runs, func(a, b *Run) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.File, b.File))
		})
		o := Operation{Problem: k.problem, Agent: k.agent, Study: studyOf(k.problem)}
		var rounds, assignment mean
		for _, r := range runs {
			o.Trials = append(o.Trials, r.solved())
			o.Level, o.Scope = cmp.Or(o.Level, r.Aim.Level), cmp.Or(o.Scope, r.Aim.Scope) // Old records do not tell.
			steps := r.Steps
			if g := r.Group; g != nil {
				n := float64(g.Rounds)
				rounds.add(&n)
				assignment.add(g.Assignment)
				steps = g.Turns
			}
			o.Steps += float64(steps)
		}
		o.Steps /= float64(len(runs))
		o.Rounds, o.Assignment = rounds.value(), assignment.value()
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Operation) int {
		return cmp.Or(byScope(a.Scope, b.Scope), cmp.Compare(a.Level, b.Level), cmp.Compare(a.Problem, b.Problem),
			cmp.Compare(a.Agent, b.Agent))
	})
	return list
}

// solved is how many tries were.
func (o Operation) solved() (n int) {
	for _, yes := range o.Trials {
		n += bit(yes)
	}
	return n
}

// trials are the tries as the study writes them.
func (o Operation) trials() string {
	list := make([]string, len(o.Trials))
	for i, yes := range o.Trials {
		if list[i] = "✗"; yes {
			list[i] = "✓"
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (p *printer) operations(r *Report) {
	if len(r.Operations) == 0 {
		return
	}
	rows := [][]string{{"OPERATION", "SCOPE", "LEVEL", "AGENT", "TRIALS", "ROUNDS", "STEPS", "ASSIGNMENT (%)"}}
	var studies []*Study
	for _, o := range r.Operations {
		rows = append(rows, []string{
			cell(o.Problem), cmp.Or(o.Scope, "-"), cmp.Or(cell(o.Level), "-"), cell(o.Agent), o.trials(),
			orNone(o.Rounds, 1), fmt.Sprintf("%.1f", o.Steps), orNone(o.Assignment, 100),
		})
		studies = append(studies, o.Study)
	}
	p.table("Operations, try by try", besideStudy(rows, "TRIALS", studies, (*Study).trials))
}

// orNone is a number that may not be known, times something.
func orNone(x *float64, by float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", by**x)
}
