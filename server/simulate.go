package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/session"
)

// simulationSteps are how many steps a simulation has, as in AIOpsLab.
const simulationSteps = 10

// simulate answers POST /simulate, as AIOpsLab's service does: when the run is over. Who goes away
// before cancels it.
func (f *Front) simulate(w http.ResponseWriter, r *http.Request) error {
	var s Simulation
	if err := decode(w, r, &s); err != nil {
		return err
	}
	n, err := s.session()
	if err != nil {
		return err
	}
	if err := f.checkSession(&n); err != nil {
		return err
	}
	e, err := f.begin(r.Context(), n)
	if err != nil {
		return err
	}
	select {
	case <-e.done:
	case <-r.Context().Done():
		f.running.Go(func() { _ = e.end(f.ctx) })
		return context.Cause(r.Context())
	}
	file, err := e.archive.simulation()
	if err != nil {
		return fail(http.StatusInternalServerError, "Error during simulation: %v", err)
	}
	return writeJSON(w, http.StatusOK, file)
}

// session is the session that a simulation asks for.
func (s Simulation) session() (n NewSession, err error) {
	switch {
	case s.TopP != nil:
		return n, fail(http.StatusUnprocessableEntity, "top_p cannot be set; leave it out")
	case s.RepetitionPenalty != nil:
		return n, fail(http.StatusUnprocessableEntity, "repetition_penalty cannot be set; leave it out")
	}
	n = NewSession{Problem: s.Problem, Agent: cmp.Or(s.Agent, defaultAgent), MaxSteps: simulationSteps}
	if s.MaxSteps != nil {
		if n.MaxSteps = *s.MaxSteps; n.MaxSteps < 1 {
			return n, fail(http.StatusUnprocessableEntity, "max_steps %d: an agent needs one step at least, to submit", n.MaxSteps)
		}
	}
	if s.Model != nil {
		n.Model = *s.Model
	}
	n.Temperature = s.Temperature
	if s.MaxTokens != nil {
		n.MaxTokens = *s.MaxTokens
	}
	return n, nil
}

// simulation is the session in AIOpsLab's format: with the prompts before, and without the reply to
// the last response.
func (a *Archive) simulation() (f session.File, err error) {
	o, err := a.outcome()
	if err != nil {
		return f, err
	}
	if session.Class(o.Class) == session.Infra {
		return f, fmt.Errorf("the environment failed: %s", o.Why)
	}
	if f, err = readSession(o.Session); err != nil {
		return f, err
	}
	if a.Problem != nil {
		f.Trace = append([]grade.Turn{{Role: "system", Content: a.Problem.system()}, {Role: "user", Content: a.Problem.Instructions}}, f.Trace...)
	}
	if last := len(f.Trace) - 1; last >= 0 && f.Trace[last].Role == "env" {
		f.Trace = f.Trace[:last]
	}
	return f, nil
}
