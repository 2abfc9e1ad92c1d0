package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/session"
)

// simulationSteps are how many steps a simulation has, as in AIOpsLab.
const simulationSteps = 10

// theirs are the agents of AIOpsLab that have another name here: a model with a shell, whoever serves
// the model.
var theirs = map[string]string{
	"gpt": "shell", "gpt-w-shell": "shell", "qwen": "shell", "deepseek": "shell", "vllm": "shell",
	"openrouter": "shell", "generic": "shell", "llama": "shell",
}

// likeTheirs is the agent that an agent of AIOpsLab's stands for, or the name itself.
func (f *Front) likeTheirs(name string) string {
	if like := theirs[name]; like != "" && !slices.Contains(f.Agents, name) && slices.Contains(f.Agents, like) {
		return like
	}
	return name
}

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
	if err := f.checkSession(r.Context(), &n); err != nil {
		return err
	}
	e, err := f.begin(r.Context(), n)
	if err != nil {
		return err
	}
	select {
	case <-e.done:
	case <-r.Context().Done():
		f.running.Go(func() { _ = f.end(f.ctx, e) })
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
	if p := s.RepetitionPenalty; p != nil && *p <= 0 {
		return n, fail(http.StatusUnprocessableEntity, "repetition_penalty %v: it is above 0", *p)
	}
	n = NewSession{Problem: s.Problem, Agent: cmp.Or(s.Agent, defaultAgent), MaxSteps: simulationSteps}
	if s.MaxSteps != nil {
		if n.MaxSteps = *s.MaxSteps; n.MaxSteps < 1 {
			return n, fail(http.StatusUnprocessableEntity, "max_steps %d: an agent needs one step at least, to submit",
				n.MaxSteps)
		}
	}
	if s.Model != nil {
		n.Model = *s.Model
	}
	n.Temperature, n.TopP = s.Temperature, s.TopP
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
		f.Trace = append([]grade.Turn{
			{Role: "system", Content: a.Problem.system()},
			{Role: "user", Content: a.Problem.Instructions},
		}, f.Trace...)
	}
	if last := len(f.Trace) - 1; last >= 0 && f.Trace[last].Role == "env" {
		f.Trace = f.Trace[:last]
	}
	return f, nil
}
