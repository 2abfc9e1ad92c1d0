package session

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/aiopslab/aiopslab/record"
)

// Regrading is the verdict of a record beside the one that today's graders give.
type Regrading struct {
	Was Verdict `json:"was"`
	Now Verdict `json:"now"`
	// Differences are what differs between them, by name: the class, and results. The words of the reason do not count.
	Differences []Difference `json:"differences"`
}

// Difference is something that is graded otherwise today.
type Difference struct {
	Name string `json:"name"`
	Was  any    `json:"was"` // nil if it was not there
	Now  any    `json:"now"`
}

// Regrade grades a record again that has a verdict. What was asked and what is right are the record's, and so is what a
// model thought of the reasoning. The error says what the record lacks for it.
func Regrade(rec *record.Record) (*Regrading, error) {
	was, err := verdictOf(rec)
	if err != nil {
		return nil, err
	}
	if err := evidence(rec, was); err != nil {
		return nil, err
	}
	now, err := Grade(rec)
	if err != nil {
		return nil, err
	}
	r := &Regrading{Was: *was, Now: now, Differences: []Difference{}}
	if was.Class != now.Class {
		r.Differences = append(r.Differences, Difference{"class", string(was.Class), string(now.Class)})
	}
	b, err := json.Marshal(now.Results)
	if err != nil {
		return nil, err
	}
	var results map[string]any // as a record has them
	if err := json.Unmarshal(b, &results); err != nil {
		return nil, err
	}
	all := maps.Clone(results)
	maps.Copy(all, was.Results)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, had := was.Results[name]; name == "safety" && !had {
			continue // It was not measured then.
		}
		if a, b := was.Results[name], results[name]; !reflect.DeepEqual(a, b) {
			r.Differences = append(r.Differences, Difference{name, a, b})
		}
	}
	return r, nil
}

// verdictOf is the verdict of a record.
func verdictOf(rec *record.Record) (v *Verdict, err error) {
	for _, e := range rec.Events {
		if e.Kind == record.VerdictEvent {
			v = new(Verdict)
			if err := e.Decode(v); err != nil {
				return nil, err
			}
		}
	}
	if v == nil {
		return nil, errors.New("it has no verdict: it is not finished, or was cut off")
	}
	return v, nil
}

// evidence says what a record lacks that its verdict was made of. Records of earlier versions of the lab have less.
func evidence(rec *record.Record, was *Verdict) error {
	h, err := decode(rec)
	if err != nil {
		return err
	}
	has := func(kind string) bool {
		return slices.ContainsFunc(rec.Events, func(e record.Event) bool { return e.Kind == kind })
	}
	switch {
	case h.truth.Shadow:
		return errors.New("it is a shadow run, on which there is no verdict")
	case h.submission == nil:
		return errors.New("it does not tell what the agent submitted")
	case was.Class != Solved && was.Class != AgentFailed, !h.submission.Submitted && !h.truth.byState():
		return nil // It was not judged by its answer or by the system.
	case !hasAnswer(rec):
		return errors.New("it does not have the right answer")
	case h.death != nil || h.blind != "":
		return nil
	case len(h.looks) == 0:
		return errors.New("it has no look at the system after the agent was done")
	case !has(record.BaselineEvent):
		return errors.New("it has no look at the healthy system")
	}
	return nil
}

// hasAnswer reports whether the problem of a record has its answer, which may be that nothing is wrong.
func hasAnswer(rec *record.Record) bool {
	return slices.ContainsFunc(rec.Events, func(e record.Event) bool {
		var p struct {
			Answer json.RawMessage `json:"answer"`
		}
		return e.Kind == record.ProblemEvent && e.Decode(&p) == nil && len(p.Answer) > 0
	})
}
