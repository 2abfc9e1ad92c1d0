package session

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// finished is the record of a run, read with the verdict that it had.
func finished(t *testing.T, a aRun) *record.Record {
	t.Helper()
	file := a.write(t)
	if _, err := finish(file); err != nil {
		t.Fatal(err)
	}
	rec, err := record.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// change changes the data of the events of a kind, or removes them.
func change(rec *record.Record, kind string, to func(json.RawMessage) json.RawMessage) {
	var events []record.Event
	for _, e := range rec.Events {
		if e.Kind == kind {
			if e.Data = to(e.Data); e.Data == nil {
				continue
			}
		}
		events = append(events, e)
	}
	rec.Events = events
}

func gone(json.RawMessage) json.RawMessage { return nil }

func replaced(old, with string) func(json.RawMessage) json.RawMessage {
	return func(b json.RawMessage) json.RawMessage { return []byte(strings.Replace(string(b), old, with, 1)) }
}

var (
	located   = aRun{task: problem.Localization, answer: []any{"geo"}, looks: []grade.Look{sound(0, "no")}}
	mitigated = aRun{task: problem.Mitigation, writes: 1, looks: []grade.Look{sound(0), sound(7 * time.Second)}}
)

// The graders that gave a verdict give it again.
func TestRegradeSame(t *testing.T) {
	for name, a := range map[string]aRun{
		"localization": located, "mitigation": mitigated,
		"detection": {task: problem.Detection, answer: "No", looks: located.looks},
		"analysis":  {task: problem.Analysis, answer: map[string]any{}, looks: located.looks},
		"incident":  {task: problem.Incident, looks: mitigated.looks, writes: 1},
		"no answer": {task: problem.Detection, unanswered: &record.Submission{Reason: "steps", Class: string(AgentFailed)}},
		"infra":     {task: problem.Detection, unanswered: &record.Submission{Reason: "died", Class: string(Infra)}},
	} {
		r, err := Regrade(finished(t, a))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(r.Differences) > 0 {
			t.Errorf("%s: %+v", name, r.Differences)
		}
	}
}

func TestRegradeDiffers(t *testing.T) {
	rec := finished(t, located)
	change(rec, record.VerdictEvent, func(b json.RawMessage) json.RawMessage {
		return replaced(`"top_1":true`, `"top_1":false,"old":1`)(replaced(`"class":"solved"`, `"class":"agent"`)(b))
	})
	r, err := Regrade(rec)
	if err != nil {
		t.Fatal(err)
	}
	want := []Difference{{"class", string(AgentFailed), string(Solved)}, {"old", 1.0, nil}, {"top_1", false, true}}
	if diff := cmp.Diff(want, r.Differences); diff != "" {
		t.Error(diff)
	}
	change(rec, record.VerdictEvent, replaced("the answer is right", "other words"))
	if again, err := Regrade(rec); err != nil || len(again.Differences) != len(want) {
		t.Errorf("a reason in other words counts: %+v, %v", again, err)
	}
}

// What a record has not enough of is not graded again, and it is said what that is.
func TestRegradeLacks(t *testing.T) {
	for want, lack := range map[string]func() *record.Record{
		"no verdict": func() *record.Record {
			rec := finished(t, located)
			change(rec, record.VerdictEvent, gone)
			return rec
		},
		"what the agent submitted": func() *record.Record {
			rec := finished(t, located)
			change(rec, record.SubmissionEvent, gone)
			return rec
		},
		"the right answer": func() *record.Record {
			rec := finished(t, located)
			change(rec, record.ProblemEvent, replaced(`"answer":`, `"riddle":`))
			return rec
		},
		"after the agent was done": func() *record.Record {
			rec := finished(t, mitigated)
			change(rec, record.LookEvent, gone)
			return rec
		},
		"the healthy system": func() *record.Record {
			rec := finished(t, mitigated)
			change(rec, record.BaselineEvent, gone)
			return rec
		},
		"a shadow run": func() *record.Record {
			rec := finished(t, located)
			change(rec, record.ProblemEvent, replaced(`{`, `{"shadow":true,`))
			return rec
		},
		"no problem": func() *record.Record {
			rec := finished(t, located)
			change(rec, record.ProblemEvent, gone)
			return rec
		},
	} {
		if r, err := Regrade(lack()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", want, r, err)
		}
	}
}
