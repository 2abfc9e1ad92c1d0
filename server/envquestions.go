package server

import (
	"context"
	"net/http"

	"github.com/aiopslab/aiopslab/session"
)

// Questions of an environment are numbered through all its episodes, also when it gets another worker: an answer never
// meets another question than the one it was meant for.

// envQuestions answers GET /envs/{id}/questions. It does not wait for a step that is being taken.
func (f *Front) envQuestions(w http.ResponseWriter, r *http.Request) error {
	e, err := f.env(callerOf(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	list := []session.Approval{}
	if l := e.worker(); l != nil {
		err := l.ask(r.Context(), http.MethodGet, "/envs/"+e.id+"/questions", nil, &list)
		switch {
		case e.worker() == nil: // It has died meanwhile.
			list = nil
		case err != nil:
			return err
		}
		list = e.shows(l, list)
	}
	return writeJSON(w, http.StatusOK, list)
}

// envAnswer answers POST /envs/{id}/questions/{number}.
func (f *Front) envAnswer(w http.ResponseWriter, r *http.Request) error {
	e, err := f.env(callerOf(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	l := e.worker()
	if l == nil {
		return noQuestion(r)
	}
	return l.pass(w, r)
}

// worker is the one that the environment has, or nil if it has died.
func (e *env) worker() *lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease == nil {
		return nil
	}
	select {
	case <-e.lease.Done():
		return nil
	default:
		return e.lease
	}
}

// moves gives the environment another worker, or none, and returns the last number of a question that it is not to use.
func (e *env) moves(l *lease) (asked int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease = l
	return e.shown
}

// shows notes what somebody is told that a worker asks. Of a worker that the environment has no more that is nothing.
func (e *env) shows(l *lease, list []session.Approval) []session.Approval {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lease != l || list == nil {
		return []session.Approval{}
	}
	for _, q := range list {
		e.shown = max(e.shown, q.Number)
	}
	return list
}

// endsSoon refuses what the episode asks, until whoever wants to end it has the environment, and says that it is done.
func (e *env) endsSoon(ctx context.Context) (done func()) {
	e.ending.Add(1)
	e.refuse(ctx)
	return func() { e.ending.Add(-1) }
}

// refuse refuses all that the episode under way asks, now and later.
func (e *env) refuse(ctx context.Context) {
	if l := e.worker(); l != nil {
		ctx, cancel := context.WithTimeout(ctx, infoTimeout)
		defer cancel()
		var ok struct{}
		_ = l.ask(ctx, http.MethodPost, "/envs/"+e.id+"/refuse", nil, &ok) // A worker that has died asks nothing.
	}
}
