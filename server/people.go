package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/server/page"
)

// people are the sessions of a front whose agent is a person at a page. What they are told is what a caller of the API
// is told, and nothing of it is the problem. No token is issued for them.
type people struct{ f *Front }

var _ page.Sessions = people{}

// Lacks says why a problem cannot be run.
func (p people) Lacks(one *problem.Problem) string { return p.f.lacks(one) }

// Begin begins a session.
func (p people) Begin(ctx context.Context, w page.Wish) (string, error) {
	n := NewSession{
		Problem: w.Problem, Name: w.Name, Noise: w.Noise, Decoys: w.Decoys, MaxSteps: w.MaxSteps,
		MaxTime: w.MaxTime.Seconds(),
	}
	if err := p.f.checkSession(ctx, &n); err != nil {
		return "", err
	}
	e, err := p.f.begin(ctx, n)
	if err != nil {
		return "", err
	}
	return e.first.ID, nil
}

// entry is a session by its id.
func (p people) entry(id string) (*entry, error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if e := p.f.sessions[id]; e != nil {
		return e, nil
	}
	return nil, fail(http.StatusNotFound, "there is no session %q", id)
}

// State says where a session is.
func (p people) State(ctx context.Context, id string) (page.State, error) {
	e, err := p.entry(id)
	if err != nil {
		return page.State{}, err
	}
	s := p.f.info(ctx, e)
	return page.State{Place: s.Place, Error: s.Error}, nil
}

// errEnded is the error of who asks the worker of a session that has ended.
var errEnded = fail(http.StatusConflict, "the session has ended")

// ask asks the worker of a session for a part of it.
func (p people) ask(ctx context.Context, id, method, part string, body, into any) (*entry, error) {
	e, err := p.entry(id)
	if err != nil {
		return nil, err
	}
	if err := e.launched(ctx); err != nil {
		return e, err
	}
	select {
	case <-e.done:
		return e, errEnded
	default:
	}
	err = e.lease.ask(ctx, method, "/sessions/"+id+"/"+part, body, into)
	if m, ok := errors.AsType[*failure](err); !ok || m.status != http.StatusBadGateway {
		return e, err
	}
	select {
	case <-e.done: // It ended just then.
		return e, errEnded
	case <-time.After(deathTimeout):
		return e, err
	}
}

// Told waits until it is the person's turn.
func (p people) Told(ctx context.Context, id string) (page.Told, error) {
	var told Problem
	e, err := p.ask(ctx, id, http.MethodGet, "problem", nil, &told)
	if errors.Is(err, errEnded) {
		if e.archive.Problem == nil {
			return page.Told{}, neverBegan(e.archive.Session)
		}
		told, err = *e.archive.Problem, nil
	}
	return page.Told{Task: told.Task, Namespace: told.Namespace, Description: told.Description}, err
}

// Act takes a step.
func (p people) Act(ctx context.Context, id, response string) (page.Turn, error) {
	var t Turn
	_, err := p.ask(ctx, id, http.MethodPost, "act", Act{Response: response}, &t)
	return page.Turn{
		Step: t.Step, Action: t.Action, Observation: t.Observation, Failed: t.Failed, Question: t.Question,
		Over: t.Over,
	}, err
}

// Interrupt ends the command that a step runs.
func (p people) Interrupt(ctx context.Context, id string) error {
	var s Session
	_, err := p.ask(ctx, id, http.MethodPost, "interrupt", nil, &s)
	return err
}

// GiveUp ends the person's turn, and waits for the outcome.
func (p people) GiveUp(ctx context.Context, id string) error {
	var o Outcome
	_, err := p.ask(ctx, id, http.MethodPost, "give-up", Surrender{"the person gave up"}, &o)
	return err
}

// Outcome waits for the verdict.
func (p people) Outcome(ctx context.Context, id string) (page.Ended, error) {
	e, err := p.entry(id)
	if err != nil {
		return page.Ended{}, err
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		return page.Ended{}, context.Cause(ctx)
	}
	o, err := e.archive.outcome()
	if err != nil {
		return page.Ended{}, err
	}
	return page.Ended{Problem: o.Problem, Class: o.Class, Why: o.Why, Results: o.Results}, nil
}
