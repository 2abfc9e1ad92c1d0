package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/record"
)

// File is a session in AIOpsLab's format.
type File struct {
	Agent     string         `json:"agent"`
	SessionID string         `json:"session_id"`
	ProblemID string         `json:"problem_id"`
	StartTime float64        `json:"start_time"` // of the agent's turn, in Unix seconds
	EndTime   float64        `json:"end_time"`
	Trace     []grade.Turn   `json:"trace"` // of "assistant" and "env"
	Results   map[string]any `json:"results"`
}

// conclude appends the verdict to a record, and writes the session file beside it.
func conclude(file string, rec *record.Record, v Verdict) (*Outcome, error) {
	log, err := record.Open(file)
	if err != nil {
		return nil, err
	}
	err = log.Append(record.VerdictEvent, v)
	if e := log.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("the verdict cannot be recorded: %w", err)
	}
	h, err := decode(rec)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(aiopslab(rec, h, v), "", "    ")
	if err != nil {
		return nil, err
	}
	session := strings.TrimSuffix(file, ".jsonl") + ".json"
	if err := writeWhole(session, append(b, '\n')); err != nil {
		return nil, err
	}
	return &Outcome{
		ID: rec.ID, Problem: rec.Problem, Agent: rec.Agent, Seed: rec.Seed, Record: file, Session: session, Verdict: v,
	}, nil
}

// writeWhole writes a file that is there only when it is whole: if it is, the run is finished.
func writeWhole(file string, data []byte) error {
	draft := file + ".draft"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return os.Rename(draft, file)
}

func aiopslab(rec *record.Record, h *history, v Verdict) File {
	return File{
		Agent: rec.Agent, SessionID: rec.ID, ProblemID: rec.Problem, Results: v.Results,
		StartTime: float64(h.began.UnixNano()) / 1e9, EndTime: float64(h.ended.UnixNano()) / 1e9, Trace: h.trace(),
	}
}

// trace is the conversation of agent and environment.
func (h *history) trace() []grade.Turn {
	turns := []grade.Turn{}
	for _, s := range h.steps {
		turns = append(turns, grade.Turn{Role: "assistant", Content: s.Response},
			grade.Turn{Role: "env", Content: s.Observation})
	}
	return turns
}

// FileOf is a record as a session in AIOpsLab's format, with its last verdict. One without a verdict is graded.
func FileOf(rec *record.Record) (File, error) {
	h, err := decode(rec)
	if err != nil {
		return File{}, err
	}
	if h.ended.Before(h.began) { // The record ends before the agent was done.
		h.ended = rec.Events[len(rec.Events)-1].Time
	}
	for _, e := range slices.Backward(rec.Events) {
		if e.Kind == record.VerdictEvent {
			var v Verdict
			err := e.Decode(&v)
			return aiopslab(rec, h, v), err
		}
	}
	v, err := Grade(rec)
	return aiopslab(rec, h, v), err
}
