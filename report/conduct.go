package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Conduct is how an agent works, whether or not it solves what it is given.
type Conduct struct {
	Agent string `json:"agent"`
	// Repeated are the steps that did what a step before them had done, with nothing written in between.
	Repeated Part `json:"repeated"`
	// Needless are the runs in which the agent wrote though nothing was to be mended: another question was asked, or
	// nothing was wrong. Writes is how often it wrote in them. Operations ask for changes, and shifts have a score for
	// what is changed in vain: neither counts.
	Needless Share `json:"needless_writes"`
	Writes   int   `json:"writes"`
	// Lucky is the share of the mended systems of incidents whose fault the agent had not found.
	Lucky Share `json:"lucky_fixes"`
}

// Part is so many of so many.
type Part struct {
	N     int     `json:"n"`
	Of    int     `json:"of"`
	Value float64 `json:"value"` // 0 of nothing
}

// conduct is what a Conduct is made of.
type conduct struct {
	repeated, steps int
	needless        Problems // runs with needless writes, of those in which all would be
	writes          int
}

func (c *conduct) add(r *Run) {
	c.repeated += r.Repeated
	c.steps += r.Steps
	switch r.Task {
	case problem.Operation, problem.OnCall:
		return
	case problem.Mitigation, problem.Incident:
		if r.Faulty {
			return
		}
	}
	c.needless.Add(r.Problem, r.Writes > 0)
	c.writes += r.Writes
}

// conducts are those of all agents, by name.
func (b *Builder) conducts() []Conduct {
	list := []Conduct{}
	for agent, c := range b.conduct {
		one := Conduct{
			Agent: agent, Repeated: Part{N: c.repeated, Of: c.steps}, Writes: c.writes,
			Needless: c.needless.Share(), Lucky: NewShare(0, 0),
		}
		if i := b.incidents[agent]; i != nil {
			one.Lucky = i.lucky.Share()
		}
		one.Repeated.Value = float64(c.repeated) / float64(max(c.steps, 1))
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Conduct) int { return cmp.Compare(a.Agent, b.Agent) })
	return list
}

func (p *printer) conducts(r *Report) {
	if len(r.Conduct) == 0 {
		return
	}
	rows := [][]string{{"AGENT", "REPEATED STEPS", "RUNS WITH NEEDLESS WRITES", "NEEDLESS WRITES", "LUCKY FIXES"}}
	for _, c := range r.Conduct {
		repeated := "-"
		if c.Repeated.Of > 0 {
			repeated = fmt.Sprintf("%.1f (%d/%d)", 100*c.Repeated.Value, c.Repeated.N, c.Repeated.Of)
		}
		rows = append(rows, []string{
			cell(c.Agent), repeated, c.Needless.counted(), fmt.Sprint(c.Writes), c.Lucky.counted(),
		})
	}
	p.table("How agents work, %, with counts and 95 % intervals", rows)
}

// repeats tells which steps of a run did what was done before.
type repeats struct{ done map[string]bool }

// step reports whether a step did what one before it had done.
func (s *repeats) step(step record.Step) bool {
	what := strings.TrimSpace(step.Response)
	if call, err := aci.Parse(step.Response); err == nil { // What is thought about it does not matter.
		if b, err := json.Marshal([]any{call.Name, call.Args, call.Kwargs}); err == nil {
			what = string(b)
		}
	}
	if s.done == nil {
		s.done = map[string]bool{}
	}
	again := s.done[what]
	s.done[what] = true
	return again
}

// write notes that something was written: to look again is not to repeat oneself.
func (s *repeats) write() { s.done = nil }
