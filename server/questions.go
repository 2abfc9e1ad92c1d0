package server

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/session"
)

// maxWhy is how long the reason of an answer may be, and the name of who gives it.
const maxWhy = 500

// Verdict is the answer to a question of a policy.
type Verdict struct {
	Approved bool   `json:"approved" doc:"whether the change may be made"`
	By       string `json:"by,omitempty" doc:"who answers; the record has it"`
	Why      string `json:"why,omitempty" doc:"the reason, which the agent is told if it is a no"`
}

// asking is a run whose policy asks questions that anybody may answer who may.
type asking interface{ Desk() *session.Desk }

var (
	_ asking = (*session.Live)(nil)
	_ asking = (*solo)(nil)
)

// desk is where the questions of the session lie, or nil if there are none.
func (h *hosted) desk() *session.Desk {
	select {
	case <-h.briefed:
	default:
		return nil // Nothing is written before the agent has its turn.
	}
	if a, ok := h.run.(asking); ok {
		return a.Desk()
	}
	return nil
}

// inquiry is what a worker's session or environment asks.
type inquiry struct {
	desk   *session.Desk // nil if nothing is asked
	before int           // the last number that an environment used up before it had this worker
}

// inquiry is what the worker's session asks, or its environment, which may be in the middle of a step.
// Nothing is asked as long as there is neither.
func (w *Worker) inquiry() (q inquiry) {
	w.mu.Lock()
	s, g := w.session, w.gym
	w.mu.Unlock()
	if g != nil {
		s, q.before = g.latest.Load(), g.before
	}
	if s != nil {
		q.desk = s.desk()
	}
	return q
}

// asked serves a part of the questions of a session or an environment.
func (w *Worker) asked(serve func(inquiry, http.ResponseWriter, *http.Request) error) handler {
	return func(rw http.ResponseWriter, r *http.Request) error {
		return serve(w.inquiry(), rw, r)
	}
}

// serveList lists the changes that wait for an answer.
func (q inquiry) serveList(w http.ResponseWriter, _ *http.Request) error {
	list := []session.Approval{}
	if q.desk != nil {
		list = q.desk.Questions()
	}
	for i := range list {
		list[i].Number += q.before
	}
	return writeJSON(w, http.StatusOK, list)
}

// serveRefusal refuses what waits for an answer and all that the episode asks from now on, for the front.
func (q inquiry) serveRefusal(w http.ResponseWriter, _ *http.Request) error {
	if q.desk != nil {
		q.desk.Refuse("the episode is to end")
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// serveAnswer answers a question.
func (q inquiry) serveAnswer(w http.ResponseWriter, r *http.Request) error {
	var v Verdict
	if err := decode(w, r, &v); err != nil {
		return err
	}
	if v.By = oneLine(v.By); v.By == "" {
		v.By = "somebody"
	}
	v.Why = oneLine(v.Why)
	if len(v.By) > maxWhy || len(v.Why) > maxWhy {
		return fail(http.StatusUnprocessableEntity, "by and why have %d bytes at most", maxWhy)
	}
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || q.desk == nil {
		return fail(http.StatusNotFound, "there is no question %q", r.PathValue("number"))
	}
	err = q.desk.Answer(r.Context(), n-q.before, guard.Answer{Approved: v.Approved, By: v.By, Why: v.Why})
	if errors.Is(err, session.ErrNoQuestion) {
		return noQuestion(r)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}

// noQuestion is the error of an answer that nobody waits for.
func noQuestion(r *http.Request) error {
	return fail(http.StatusConflict, "nobody waits for an answer to question %s: it was never asked, has its "+
		"answer, or took too long", r.PathValue("number"))
}
