package report

import (
	"cmp"
	"fmt"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// Known is what the index of a directory has of a run: all that [Compare] asks, so that thousands of records need not
// be read again for it. A report asks for more, which only records have: what was done in each step, questions of
// incidents, harm. An error is that of [Read].
func Known(x *index.Run) (*Run, error) {
	r := &Run{
		Run:  record.Run{ID: x.ID, Problem: x.Problem, Agent: cmp.Or(x.Agent, "(unnamed)"), Seed: x.Seed},
		File: x.File, Model: x.Model, Task: problem.Task(x.Task), Class: session.Class(x.Class), Why: x.Why,
		Unfinished: x.Class == index.Unfinished, Seconds: x.Seconds, Steps: x.Steps, InTokens: x.In, OutTokens: x.Out,
		Cost: x.Cost,
	}
	if r.Task == "" && !r.Unfinished {
		return nil, fmt.Errorf("%s: %w", x.File, errNoProblem)
	}
	return r, nil
}
