// Package agent is who works on a problem: what it is told, and the one method it has. The agents
// themselves are below, each in a package of its own.
package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
)

// Agent works on one problem.
type Agent interface {
	// Act returns the agent's next response to what it observed: text with one API call in it, as
	// [aci.Parse] reads it. It is called from one goroutine, until the agent submits or a limit is
	// reached. An error ends the run as a failure of the agent, unless it is ErrUnavailable.
	Act(ctx context.Context, observation string) (string, error)
}

// ErrUnavailable is the error of an agent that could not work for reasons outside it, such as a model that cannot
// be reached. The run does not count against the agent.
var ErrUnavailable = errors.New("the agent is unavailable")

// MemberToken begins the names of the variables with tokens that members of a group are shown, and Queue those that say
// who the group is to the server of its messages. They are for the group alone: see [OfGroup].
const (
	MemberToken = "AIOPSLAB_MEMBER_TOKEN_"
	Queue       = "AIOPSLAB_QUEUE_"
)

// OfGroup reports whether a variable, as "NAME=value", is for a group alone: a program that is an agent does not get
// it.
func OfGroup(variable string) bool {
	return strings.HasPrefix(variable, MemberToken) || strings.HasPrefix(variable, Queue)
}

// Briefing is what an agent is told when a run begins.
type Briefing struct {
	Task         problem.Task
	Namespace    string
	Description  string
	Instructions string
	Actions      []*aci.Action
	// Kubeconfig reaches the cluster through the guard, with the agent's own rights.
	Kubeconfig []byte
	// Scratch is a directory for temporary files. It is removed when the run ends, in whatever way. Empty means
	// the system's own directory for them.
	Scratch string
	// Note records an event of the agent's own, such as what it asked a model. It is never nil.
	Note func(kind string, data any)
	// Steps is how many calls the agent may make in all; 0 if nobody said.
	Steps int
	// Model is the chat model of an agent that has one. What it is asked is recorded, and the budget
	// of the run holds. It is nil if the run has none.
	Model llm.Model
	// Healthy is when the system was known to be well, for an Entry that asks for a Baseline.
	Healthy Interval
	// Export writes the telemetry of an interval into a new directory and returns its name. The directory is
	// removed when the run ends. Export is nil unless the Entry asks for a Baseline.
	Export func(ctx context.Context, i Interval) (dir string, err error)
	// Now is when the agent's turn begins, in an incident that is over and was recorded. It is zero for a system that
	// lives.
	Now time.Time
	// Truth is the problem itself. Only an Entry that asks for it gets it.
	Truth *problem.Problem
	// Roster is what comes in a shift, for who is told the truth; nil for others.
	Roster *problem.Roster
}

// Interval is the time between two moments.
type Interval struct {
	From, To time.Time
	// Step is how far apart samples of metrics are; 0 for 15 seconds.
	Step time.Duration `json:",omitempty"`
	// Services asks for the rates, errors and latencies of services as well.
	Services bool `json:",omitempty"`
}

// Entry describes an agent. Each run makes one of its own with New.
type Entry struct {
	Name string
	Doc  string // one line
	// KnowsTruth marks agents that are told the answer. They are there to prove problems and do not compete.
	KnowsTruth bool
	// Baseline is how long the healthy system is to be watched before a fault comes, for agents that
	// learn from its telemetry.
	Baseline time.Duration
	// Live marks those that work with kubectl, and have nothing to look at where there is no cluster.
	Live bool
	// NeedsModel marks those that cannot work without a chat model.
	NeedsModel bool
	// TakesModel marks those that can work with a chat model, and without one.
	TakesModel bool
	// Held says how an agent that is a program is confined, and Gap why it is not, or not wholly. Both are empty
	// for other agents.
	Held, Gap string
	// Options returns the agent that "NAME:OPTIONS" names; it is nil if there are no options. An error says what is
	// wrong with them.
	Options func(text string) (Entry, error)
	// New makes the agent. If it has a Close method, that is called when its turn is over.
	New func(b Briefing) (Agent, error)
}

// Func is an agent that is a function.
type Func func(ctx context.Context, observation string) (string, error)

// Act calls the function.
func (f Func) Act(ctx context.Context, observation string) (string, error) {
	return f(ctx, observation)
}
