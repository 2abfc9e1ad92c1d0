package session

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
)

// aRun makes the record of a run.
type aRun struct {
	task       problem.Task
	healthy    bool
	answer     any
	unanswered *record.Submission // instead of an answer
	looks      []grade.Look
	writes     int
	journal    []guard.Entry
	doing      Doing
	hold       grade.Holding
	blind      string
	goal       *problem.Goal    // of an operation
	found      []grade.Operated // of one with objectives
	// Of an incident: answers by question, in the order in which they are given, and its questions, all four if there
	// are none.
	answers   []record.Answer
	questions []problem.Task
}

func sound(at time.Duration, symptoms ...string) grade.Look {
	return grade.Look{
		Time: time.Unix(1000, 0).Add(at), Symptoms: symptoms,
		Load:      workload.Window{Total: workload.SLI{Requests: 100, Rate: 20, Success: 1, P95: time.Millisecond}},
		Workloads: []grade.Workload{{Kind: "deployment", Name: "geo", Replicas: 1, Ready: 1}},
	}
}

func (a aRun) write(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	log, err := record.Create(file, record.Run{ID: "1", Problem: "p", Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	add := func(kind string, data any) {
		t.Helper()
		if err := log.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	tr := truth{ID: "p", Task: a.task, App: "hotel-reservation", Namespace: "test", Questions: a.questions, Goal: a.goal}
	if a.task == problem.Incident && a.questions == nil {
		tr.Questions = []problem.Task{problem.Detection, problem.Localization, problem.Analysis, problem.Mitigation}
	}
	if !a.healthy {
		tr.Faults = []string{"revoke_auth mongodb-geo"}
		tr.Answer = problem.Answer{
			Components: []problem.Component{{Name: "mongodb-geo", Aliases: []string{"geo"}}},
			Cause:      &fault.Cause{SystemLevel: "Application", FaultType: "Authentication Issue"},
		}
	}
	add(record.BaselineEvent, sound(0))
	if a.found != nil {
		add(record.FoundEvent, a.found)
	}
	began := time.Now()
	add(record.BriefingEvent, record.Briefing{Description: "find out"})
	add(record.StepEvent, record.Step{Number: 1, Response: "nonsense", Observation: "Error parsing response"})
	add(record.StepEvent, record.Step{Number: 2, Response: "submit", Action: "submit"})
	for _, e := range a.answers {
		add(record.AnswerEvent, e)
	}
	for range a.writes {
		add(record.WriteEvent, map[string]string{"verb": "patch"})
	}
	for _, e := range a.journal {
		add(record.WriteEvent, e)
	}
	add(record.DoingEvent, a.doing)
	s := record.Submission{Submitted: true}
	if a.unanswered != nil {
		s = *a.unanswered
	} else if s.Answer, err = json.Marshal(a.answer); err != nil {
		t.Fatal(err)
	}
	add(record.SubmissionEvent, s)
	add(record.ProblemEvent, tr)
	if !a.healthy {
		add(record.FaultEvent, record.Fault{Kind: "revoke_auth", Target: "mongodb-geo", Symptom: "geo fails", Time: began, Names: map[string][]string{"mongodb-geo": {"pvc-1234"}, "rate": {"pvc-9"}}})
	}
	add(record.HoldEvent, a.hold)
	for _, l := range a.looks {
		add(record.LookEvent, l)
	}
	if a.blind != "" {
		add(record.BlindEvent, record.Blind{Error: a.blind})
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestGrade(t *testing.T) {
	shows := []grade.Look{sound(0, "geo fails")}
	fine := []grade.Look{sound(0)}
	held := []grade.Look{sound(0), sound(grade.Hold)}
	busy := []grade.Look{sound(0, "geo fails")}
	busy[0].Late = 2 * time.Second
	limit := &record.Submission{Class: string(AgentFailed), Reason: "no submission within 30 steps"}
	starved := []grade.Look{sound(0)}
	starved[0].Waited = 0.6
	slo := &problem.Goal{Level: "L3", Report: []problem.Item{{Key: "slo", Value: "broken"}}}
	for _, tt := range []struct {
		name string
		run  aRun
		want Class
		why  string
	}{
		{"found", aRun{task: problem.Detection, answer: "Yes", looks: shows}, Solved, "right"},
		{"overlooked", aRun{task: problem.Detection, answer: "No", looks: shows}, AgentFailed, `submitted "No", right is "Yes"`},
		{"false alarm", aRun{task: problem.Detection, healthy: true, answer: "Yes", looks: fine}, AgentFailed, `right is "No"`},
		{"all well", aRun{task: problem.Detection, healthy: true, answer: "No", looks: fine}, Solved, ""},
		{"located by alias", aRun{task: problem.Localization, answer: []string{"geo"}, looks: shows}, Solved, ""},
		{"located by a name of this run", aRun{task: problem.Localization, answer: []string{"pvc-1234"}, looks: shows}, Solved, ""},
		{"located by another name of this run", aRun{task: problem.Localization, answer: []string{"pvc-9"}, looks: shows}, AgentFailed, ""},
		{"located elsewhere", aRun{task: problem.Localization, answer: []string{"rate"}, looks: shows}, AgentFailed, `right is ["mongodb-geo"]`},
		{"analysed", aRun{task: problem.Analysis, answer: map[string]string{"system_level": "application", "fault_type": "authentication issue"}, looks: shows}, Solved, ""},
		{"analysed as nothing", aRun{task: problem.Analysis, looks: shows}, AgentFailed, "submitted nothing"},
		{"mitigated", aRun{task: problem.Mitigation, looks: held, writes: 1}, Solved, "well"},
		{"mitigated without a submission", aRun{task: problem.Mitigation, unanswered: limit, looks: held}, Solved, "well"},
		{"not mitigated", aRun{task: problem.Mitigation, looks: shows}, AgentFailed, "geo fails"},
		{"not mitigated, on a machine that is too busy", aRun{task: problem.Mitigation, looks: busy, writes: 1}, Infra, "2s late"},
		// What the agent saw may be the machine's; that it said nothing is its own.
		{"reported wrongly, on a starved machine", aRun{task: problem.Operation, goal: slo, answer: map[string]string{"slo": "met"}, looks: starved, writes: 1}, Infra, "waited for a processor"},
		{"reported wrongly by looking alone, on a starved machine", aRun{task: problem.Operation, goal: slo, healthy: true, answer: map[string]string{"slo": "met"}, looks: starved}, Infra, "waited for a processor"},
		{"reported wrongly by looking alone, with the fault there to be seen", aRun{task: problem.Operation, goal: slo, answer: map[string]string{"slo": "met"}, looks: busy}, AgentFailed, "slo"},
		{"nothing reported, on a starved machine", aRun{task: problem.Operation, goal: slo, looks: starved, writes: 1}, AgentFailed, "no report"},
		{"nothing reported, on a busy machine", aRun{task: problem.Operation, goal: slo, looks: busy, writes: 1}, AgentFailed, "no report"},
		{"no answer", aRun{task: problem.Detection, unanswered: limit, looks: shows}, AgentFailed, "30 steps"},
		// What the agent was to find must have been there, unless the agent itself has changed it.
		{"the fault has gone", aRun{task: problem.Detection, answer: "No", looks: fine}, Inconclusive, "nobody had touched it"},
		{"the agent fixed it on the way", aRun{task: problem.Localization, answer: "geo", looks: fine, writes: 2}, Solved, ""},
		{"not well without a fault", aRun{task: problem.Detection, healthy: true, answer: "Yes", looks: shows}, Inconclusive, "was not well"},
		{"the cluster died", aRun{task: problem.Detection, unanswered: &record.Submission{Class: string(Infra), Reason: "no node is ready"}}, Infra, "no node"},
		{"nobody looked", aRun{task: problem.Mitigation}, GraderFailed, "could not be looked at"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := tt.run.write(t)
			rec, err := record.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := Grade(rec)
			if err != nil {
				t.Fatal(err)
			}
			if v.Class != tt.want || !strings.Contains(v.Why, tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", v.Class, v.Why, tt.want, tt.why)
			}
			if v.Results.Success() != (tt.want == Solved) && tt.want != Inconclusive {
				t.Errorf("success is %v", v.Results["success"])
			}
			if v.Results["steps"] != 2 || v.Results["invalid_actions"] != 1 {
				t.Errorf("steps: %v", v.Results)
			}
			if _, ok := v.Results[grade.TimeKeys[tt.run.task]].(float64); !ok {
				t.Errorf("the time is missing: %v", v.Results)
			}
		})
	}
}

// The verdict of a finished record is that of the run, however often it is graded.
func TestGradeAgain(t *testing.T) {
	file := aRun{task: problem.Detection, answer: "Yes", looks: []grade.Look{sound(0, "geo fails")}}.write(t)
	o, err := finish(file)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := record.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	last := rec.Events[len(rec.Events)-1]
	if last.Kind != record.VerdictEvent {
		t.Fatalf("the last event is a %s", last.Kind)
	}
	again, err := Grade(rec)
	if err != nil || !reflect.DeepEqual(again, o.Verdict) {
		t.Errorf("graded again: %v, %v; before %v", again, err, o.Verdict)
	}
}

func TestRecordWithoutAnEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	log, err := record.Create(file, record.Run{ID: "1", Problem: "p", Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(record.ProblemEvent, truth{ID: "p", Task: problem.Detection}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := record.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := Grade(rec); err != nil || v.Class != Inconclusive {
		t.Errorf("got %v, %v", v, err)
	}
}

// A run that was killed while the agent worked has no truth in its record yet.
func TestGradeKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	log, err := record.Create(file, record.Run{ID: "1", Problem: "p", Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, data := range map[string]any{record.BriefingEvent: record.Briefing{}, record.StepEvent: record.Step{Number: 1}} {
		if err := log.Append(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := record.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Grade(rec)
	if err != nil || v.Class != Inconclusive || v.Results["steps"] != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}
