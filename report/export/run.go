package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/session"
)

// Run is a run as its record tells it.
type Run struct {
	Record   *record.Record
	File     string
	Truth    Truth
	Briefing record.Briefing
	Prompts  []record.Prompt
	// Began and Ended are the agent's turn: from its briefing to its submission, as far as the record goes.
	Began, Ended time.Time
	Steps        []Step
	Exchanges    []Exchange
	Submission   record.Submission
	Verdict      *session.Verdict // nil if the run has none yet
}

// Truth is what was wrong, as far as exports tell it.
type Truth struct {
	ID        string       `json:"id"`
	Task      problem.Task `json:"task"`
	App       string       `json:"app"`
	Namespace string       `json:"namespace"`
	Faults    []string     `json:"faults"`
}

// Step is a step of the agent, and when it was over.
type Step struct {
	record.Step
	Time time.Time
}

// Began is when the action was begun.
func (s *Step) Began() time.Time { return s.Time.Add(-seconds(s.Took)) }

// Call is the id of the step's call.
func (s *Step) Call() string { return fmt.Sprintf("call-%d", s.Number) }

// Exchange is an exchange with the agent's model, when it was over, and the number of the step it led to.
type Exchange struct {
	llm.Exchange
	Time time.Time
	Step int
}

// Read reads a run.
func Read(file string) (*Run, error) {
	rec, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	r, err := New(rec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r.File = file
	return r, nil
}

// New takes a run from its record.
func New(rec *record.Record) (*Run, error) {
	r := &Run{Record: rec, Began: rec.Time, Ended: rec.Time}
	for _, e := range rec.Events {
		if err := r.take(e); err != nil {
			return nil, err
		}
	}
	for _, s := range r.Steps { // The turn was cut off: it went on for as long as the record tells.
		r.Ended = later(r.Ended, s.Time)
	}
	for _, x := range r.Exchanges {
		r.Ended = later(r.Ended, x.Time)
	}
	return r, nil
}

func (r *Run) take(e record.Event) error {
	switch e.Kind {
	case record.ProblemEvent:
		return e.Decode(&r.Truth)
	case record.BriefingEvent:
		r.Began, r.Ended = e.Time, e.Time
		return e.Decode(&r.Briefing)
	case record.PromptEvent:
		var p record.Prompt
		err := e.Decode(&p)
		r.Prompts = append(r.Prompts, p)
		return err
	case record.ModelEvent:
		x := Exchange{Time: e.Time, Step: len(r.Steps) + 1}
		err := e.Decode(&x.Exchange)
		r.Exchanges = append(r.Exchanges, x)
		return err
	case record.StepEvent:
		s := Step{Time: e.Time}
		err := e.Decode(&s.Step)
		r.Steps = append(r.Steps, s)
		return err
	case record.SubmissionEvent:
		r.Ended = e.Time
		return e.Decode(&r.Submission)
	case record.VerdictEvent: // The last one counts.
		r.Verdict = new(session.Verdict)
		return e.Decode(r.Verdict)
	}
	return nil
}

// Agent is the agent's name.
func (r *Run) Agent() string { return cmp.Or(r.Record.Agent, "(unnamed)") }

// Model is the name of the agent's model, or empty.
func (r *Run) Model() string {
	if len(r.Exchanges) == 0 {
		return ""
	}
	return r.Exchanges[len(r.Exchanges)-1].Model
}

// Class says how the run ended.
func (r *Run) Class() session.Class {
	if r.Verdict == nil {
		return report.Unfinished
	}
	return r.Verdict.Class
}

// Why says in a line why the run ended so.
func (r *Run) Why() string {
	if r.Verdict == nil {
		return "the record has no verdict"
	}
	return r.Verdict.Why
}

// result is a value of the verdict's results, or nil.
func (r *Run) result(key string) any {
	if r.Verdict == nil {
		return nil
	}
	return r.Verdict.Results[key]
}

// Usage is what all exchanges with the model took. The cost is nil if it is not known, or if there is no model.
func (r *Run) Usage() (u llm.Usage, cost *float64) {
	var sum float64
	known := len(r.Exchanges) > 0
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		u = u.Add(x.Reply.Usage)
		if known = known && x.Cost != nil; known {
			sum += *x.Cost
		}
	}
	if known {
		cost = &sum
	}
	return u, cost
}

// Arguments are those of a step's call by their names, as JSON. They are nil if the step has no call.
func (r *Run) Arguments(s *Step) json.RawMessage {
	if s.Action == "" {
		return nil
	}
	call, err := aci.Parse(s.Response)
	if err != nil {
		return json.RawMessage("{}")
	}
	args := call.Kwargs
	for i, v := range call.Args {
		args[r.parameter(call.Name, i)] = v
	}
	b, err := json.Marshal(args)
	if err != nil { // A number that JSON does not have.
		b, _ = json.Marshal(map[string]string{"call": s.Response}) // A string always can be.
	}
	return b
}

// parameter is the name of an action's parameter.
func (r *Run) parameter(action string, i int) string {
	for _, a := range aci.Actions(string(cmp.Or(r.Truth.Task, problem.Incident))) {
		if a != nil && a.Name == action && i < len(a.Params) {
			return a.Params[i].Name
		}
	}
	return fmt.Sprintf("arg%d", i+1)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
