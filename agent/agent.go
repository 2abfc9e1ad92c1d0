// Package agent is who works on a problem: what it is told, and the one method it has. The agents
// themselves are below, each in a package of its own.
package agent

import (
	"context"
	"errors"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
)

// Agent works on one problem.
type Agent interface {
	// Act returns the agent's next response to what it observed: text with one API call in it, as
	// [aci.Parse] reads it. It is called from one goroutine, until the agent submits or a limit is
	// reached. An error ends the run as a failure of the agent, unless it is ErrUnavailable.
	Act(ctx context.Context, observation string) (string, error)
}

// ErrUnavailable is the error of an agent that could not do its work through no fault of its own,
// such as when its model cannot be reached. The run does not count against it.
var ErrUnavailable = errors.New("the agent is unavailable")

// Briefing is what an agent is told when a run begins.
type Briefing struct {
	Task         problem.Task
	Namespace    string
	Description  string
	Instructions string
	Actions      []*aci.Action
	// Truth is the problem itself. Only an Entry that asks for it gets it.
	Truth *problem.Problem
}

// Entry is a kind of agent, by which one is made for each run.
type Entry struct {
	Name string
	Doc  string // one line
	// KnowsTruth marks those that are told the answer: they prove problems, and are no contestants.
	KnowsTruth bool
	New        func(b Briefing) (Agent, error)
}

// Func is an agent that is a function.
type Func func(ctx context.Context, observation string) (string, error)

// Act calls the function.
func (f Func) Act(ctx context.Context, observation string) (string, error) {
	return f(ctx, observation)
}
