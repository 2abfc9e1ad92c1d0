package page

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

// Sessions are runs whose agent is a person at a page: those of a server. Its methods are safe for concurrent use. An
// error that has a method Status says what its page is answered with.
type Sessions interface {
	// Lacks says why a problem cannot be run here, and is empty if it can.
	Lacks(p *problem.Problem) string
	// Begin begins a session, and returns its id, which tells nothing of the problem.
	Begin(ctx context.Context, w Wish) (id string, err error)
	// State says where a session is that nobody has been told of yet.
	State(ctx context.Context, id string) (State, error)
	// Told waits until it is the person's turn, and returns what an agent is told.
	Told(ctx context.Context, id string) (Told, error)
	// Act takes a step. It is taken to its end whatever becomes of ctx.
	Act(ctx context.Context, id, response string) (Turn, error)
	// Interrupt ends the command that a step runs. Act returns what came of it by then.
	Interrupt(ctx context.Context, id string) error
	// GiveUp ends the turn without an answer.
	GiveUp(ctx context.Context, id string) error
	// Outcome waits for the verdict.
	Outcome(ctx context.Context, id string) (Ended, error)
}

// Wish is a session that somebody wants. What is left out is as for every agent.
type Wish struct {
	Problem  string
	Name     string // what the record calls the agent
	Noise    string
	Decoys   []string
	MaxSteps int
	MaxTime  time.Duration
}

// State is where a session is before it is the person's turn.
type State struct {
	Place int    // in the line; 0 if it is being set up
	Error string // why it has failed
}

// Told is what an agent is told.
type Told struct {
	Task, Namespace, Description string
}

// Turn is what a step came to.
type Turn struct {
	Step        int
	Action      string // empty if none could be read
	Observation string
	Failed      bool
	Question    string // of an incident: the one that comes next
	Over        bool   // it was the last
}

// Ended is how a session ended.
type Ended struct {
	Problem, Class, Why string
	Results             map[string]any
}

// Host has people work on incidents in the sessions of a server. It is called once, before there are requests.
func (s *Site) Host(sessions Sessions) { s.sessions = sessions }
