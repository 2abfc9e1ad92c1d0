package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// Spec is a run that a worker is to do.
type Spec struct {
	ID string `json:"id"`
	NewSession
	// Near says that the client which is the agent may be a process of this server's user, on the same machine.
	Near bool `json:"near,omitempty"`
}

// Backend is the environment that a worker has. It runs one thing at a time.
type Backend interface {
	// Open begins a run, and returns when the environment is up. The run ends with ctx. Events is told
	// of every event of its record, in order.
	Open(ctx context.Context, s Spec, events func(record.Event)) (Run, error)
	// Stage sets the environment up for episodes of a problem and of those like it. It returns when
	// that is done, at once if it was before.
	Stage(ctx context.Context, s Spec) error
	// Episode begins a run on the stage, which is as it was before any other. It returns ErrMisfit for
	// a problem that the stage is not set for. What runs on the stage ask is numbered through all of them.
	Episode(ctx context.Context, s Spec, events func(record.Event)) (Run, error)
}

// ErrMisfit is the error of an episode that needs another stage, and so another worker.
var ErrMisfit = errors.New("the stage is set for another application")

// Run is a run under way, such as a [session.Live].
type Run interface {
	// Briefing waits until the agent has its turn.
	Briefing(ctx context.Context) (agent.Briefing, error)
	// Step takes a step. It returns session.ErrOver when there are none left.
	Step(ctx context.Context, response string) (session.Turn, error)
	// GiveUp ends the agent's turn as its failure.
	GiveUp(ctx context.Context, reason error) error
	// Wait waits for the outcome.
	Wait(ctx context.Context) (*session.Outcome, error)
}

// interrupter is a run whose command under way can be ended, as Ctrl-C does.
type interrupter interface{ Interrupt() }

var (
	_ Run         = (*session.Live)(nil)
	_ interrupter = (*session.Live)(nil)
	_ Run         = (*solo)(nil)
)

// errOwnAgent is the error of a step that somebody else is to take.
var errOwnAgent = fail(http.StatusConflict, "the session has an agent of its own, which takes the steps")

// solo is a run with an agent of its own. Others only watch.
type solo struct {
	desk     *session.Desk
	briefed  chan struct{}
	briefing agent.Briefing
	done     chan struct{}
	outcome  *session.Outcome
	err      error
}

// Solo begins a run of the session's own agent in the background.
func Solo(ctx context.Context, s session.Session) Run {
	r := &solo{desk: s.Desk, briefed: make(chan struct{}), done: make(chan struct{})}
	newAgent := s.Agent.New
	s.Agent.New = func(b agent.Briefing) (agent.Agent, error) {
		r.briefing = b
		close(r.briefed)
		return newAgent(b)
	}
	go func() {
		defer close(r.done)
		r.outcome, r.err = s.Run(ctx)
	}()
	return r
}

func (r *solo) Briefing(ctx context.Context) (agent.Briefing, error) {
	select {
	case <-r.briefed:
	case <-r.done:
		select {
		case <-r.briefed:
		default:
			return agent.Briefing{}, session.ErrOver
		}
	case <-ctx.Done():
		return agent.Briefing{}, context.Cause(ctx)
	}
	return r.briefing, nil
}

func (r *solo) Step(context.Context, string) (session.Turn, error) {
	return session.Turn{}, errOwnAgent
}

// Desk is where the questions of the run's policy lie, or nil.
func (r *solo) Desk() *session.Desk { return r.desk }

func (r *solo) GiveUp(context.Context, error) error { return errOwnAgent }

func (r *solo) Wait(ctx context.Context) (*session.Outcome, error) {
	select {
	case <-r.done:
		return r.outcome, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
