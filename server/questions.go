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

// serveQuestions lists the changes that wait for an answer.
func (h *hosted) serveQuestions(w http.ResponseWriter, _ *http.Request) error {
	list := []session.Approval{}
	if d := h.desk(); d != nil {
		list = d.Questions()
	}
	return writeJSON(w, http.StatusOK, list)
}

// serveAnswer answers a question.
func (h *hosted) serveAnswer(w http.ResponseWriter, r *http.Request) error {
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
	d := h.desk()
	if err != nil || d == nil {
		return fail(http.StatusNotFound, "there is no question %q", r.PathValue("number"))
	}
	err = d.Answer(r.Context(), n, guard.Answer{Approved: v.Approved, By: v.By, Why: v.Why})
	if errors.Is(err, session.ErrNoQuestion) {
		return fail(http.StatusConflict, "nobody waits for an answer to question %d: it was never asked, has its "+
			"answer, or took too long", n)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, v)
}
