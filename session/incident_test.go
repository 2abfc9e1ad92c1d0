package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// said are answers to the questions of an incident, from the first on, in JSON.
func said(answers ...string) (list []record.Answer) {
	for i, q := range []problem.Task{problem.Detection, problem.Localization, problem.Analysis, problem.Mitigation} {
		if i < len(answers) {
			list = append(list, record.Answer{Question: string(q), Answer: json.RawMessage(answers[i]), Step: 2})
		}
	}
	return list
}

// Each question of an incident has a verdict of its own, and the run the one that follows from them.
func TestGradeIncident(t *testing.T) {
	shows, held, fine := []grade.Look{sound(0, "geo fails")}, []grade.Look{sound(0), sound(grade.Hold)}, []grade.Look{sound(0)}
	busy := []grade.Look{sound(0, "geo fails")}
	busy[0].Late = 2 * time.Second
	const yes, no, geo, rate = `"Yes"`, `"No"`, `["geo"]`, `["rate"]`
	const auth, none = `{"system_level": "Application", "fault_type": "Authentication Issue"}`, `null`
	right := said(yes, geo, auth, none)
	limit := &record.Submission{Class: string(AgentFailed), Reason: "no submission within 30 steps"}
	cut := &record.Submission{Class: string(Inconclusive), Reason: "interrupted"}
	away := &record.Submission{Class: string(Infra), Reason: "the model is away"}
	three := []problem.Task{problem.Detection, problem.Localization, problem.Analysis}
	for _, tt := range []struct {
		name   string
		run    aRun
		want   Class
		stages string // the first letter of each class: s, a, i(nfra), g, c (inconclusive)
		lucky  any
	}{
		{"all right", aRun{answers: right, looks: held, writes: 1}, Solved, "ssss", false},
		{"a lucky fix", aRun{answers: said(yes, rate, auth, none), looks: held, writes: 1}, AgentFailed, "sass", true},
		{"found and not mended", aRun{answers: right, looks: shows, writes: 1}, AgentFailed, "sssa", nil},
		{"a wrong no, and then all right", aRun{answers: said(no, geo, auth, none), looks: held, writes: 1}, AgentFailed, "asss", false},
		{"nothing is right", aRun{answers: said(no, `[]`, none, none), looks: shows}, AgentFailed, "aaaa", nil},
		{"its steps are used up", aRun{answers: said(yes, geo), unanswered: limit, looks: shows}, AgentFailed, "ssaa", nil},
		{"its steps are used up, and the system is well", aRun{answers: said(yes, geo), unanswered: limit, looks: held, writes: 1}, AgentFailed, "ssas", false},
		{"interrupted, right so far", aRun{answers: said(yes, geo), unanswered: cut, looks: shows}, Inconclusive, "sscc", nil},
		{"interrupted, wrong so far", aRun{answers: said(no), unanswered: cut, looks: shows}, AgentFailed, "accc", nil},
		{"the model is away", aRun{answers: said(yes), unanswered: away, looks: shows}, Infra, "siii", nil},
		{"too busy to see it mended", aRun{answers: right, looks: busy, writes: 1}, Infra, "sssi", nil},
		{"too busy to see it mended, and an answer is wrong", aRun{answers: said(yes, rate, auth, none), looks: busy, writes: 1}, AgentFailed, "sasi", nil},
		{"the fault has gone by itself", aRun{answers: right, looks: held}, Inconclusive, "cccc", nil},
		{"mended over a connection", aRun{answers: right, looks: held, doing: Doing{Connections: 3}}, Solved, "ssss", false},
		{"nobody looked", aRun{answers: right}, GraderFailed, "gggg", nil},
		{"nobody could look, and the agent may be why", aRun{answers: right, blind: "timeout", hold: grade.Holding{Left: []string{"pod/x"}}}, AgentFailed, "sssa", nil},
		{"all is well", aRun{healthy: true, answers: said(no, `[]`, none, none), looks: held}, Solved, "ssss", nil},
		{"a false alarm", aRun{healthy: true, answers: said(yes, rate, auth, none), looks: held}, AgentFailed, "aaas", nil},
		{"a healthy system broken", aRun{healthy: true, answers: said(no, `[]`, none, none), looks: shows, writes: 2}, AgentFailed, "sssa", nil},
		{"nothing to mend", aRun{questions: three, answers: said(yes, geo, auth), looks: shows}, Solved, "sss", nil},
		{"nothing to mend, and the fault has gone", aRun{questions: three, answers: said(yes, geo, auth), looks: fine}, Inconclusive, "ccc", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.run.task = problem.Incident
			if tt.run.unanswered == nil {
				tt.run.answer = nil
			}
			rec, err := record.Read(tt.run.write(t))
			if err != nil {
				t.Fatal(err)
			}
			v, err := Grade(rec)
			if err != nil {
				t.Fatal(err)
			}
			stages := v.Results["stages"].(map[problem.Task]grade.Result)
			got := ""
			for _, q := range problem.Tasks {
				if s, ok := stages[q]; ok {
					got += map[Class]string{Solved: "s", AgentFailed: "a", Infra: "i", GraderFailed: "g", Inconclusive: "c"}[s["class"].(Class)]
				}
			}
			if v.Class != tt.want || got != tt.stages || v.Results["lucky_fix"] != tt.lucky {
				t.Errorf("got %s, stages %s, lucky %v: %s", v.Class, got, v.Results["lucky_fix"], v.Why)
			}
			if v.Results.Success() != (tt.want == Solved) || strings.Contains(v.Why, "\n") {
				t.Errorf("success %v: %s", v.Results["success"], v.Why)
			}
			for i, key := range []string{"TTD", "TTL", "TTA"} {
				if _, ok := v.Results[key]; ok != (i < len(tt.run.answers)) {
					t.Errorf("%s is there: %v", key, ok)
				}
			}
		})
	}
}

// A run of an incident: the record has each answer with its time, later stages take the times and steps of their own,
// and a step that answers is no step of the limit.
func TestIncident(t *testing.T) {
	cause := map[string]any{"system_level": "Virtualization", "fault_type": "Operation Error"}
	look, scale := agent.Call("exec_shell", "true"), agent.Call("exec_shell", "kubectl scale cart")
	for _, tt := range []struct {
		name    string
		healthy bool
		steps   int
		agent   []string
		want    Class
		events  string
	}{
		{"all of it", false, 3, []string{
			look, agent.Call("submit", "Yes"), agent.Call("submit", []any{"cart"}), agent.Call("submit", cause), scale, agent.Call("submit"),
		}, Solved, "step, answer detection 2 localization, step, answer localization 3 analysis, step, answer analysis 4 mitigation, step, step, answer mitigation 6 , step"},
		{"a healthy twin", true, 0, []string{
			agent.Call("submit", "No"), agent.Call("submit", []any{}), agent.Call("submit"), agent.Call("submit"),
		}, Solved, "answer detection 1 localization, step, answer localization 2 analysis, step, answer analysis 3 mitigation, step, answer mitigation 4 , step"},
		{"cut off", false, 2, []string{agent.Call("submit", "Yes"), look}, AgentFailed, "answer detection 1 localization, step, step, step"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				p := *incident(t)
				p.Healthy = tt.healthy
				s := Session{Problem: &p, Agent: scripted(tt.agent...), Environment: w.Local, Results: results, Steps: tt.steps}
				o, err := s.Run(t.Context())
				w.Local.Close()
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Class != tt.want {
					t.Errorf("%+v", o.Verdict)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, e := range rec.Events {
					var a record.Answer
					switch e.Kind {
					case record.AnswerEvent:
						if err := e.Decode(&a); err != nil {
							t.Fatal(err)
						}
						list = append(list, fmt.Sprint("answer ", a.Question, " ", a.Step, " ", a.Next))
					case record.StepEvent:
						list = append(list, "step")
					}
				}
				if diff := cmp.Diff(tt.events, strings.Join(list, ", ")); diff != "" {
					t.Error(diff)
				}
				again, err := Grade(rec)
				if err != nil || again.Class != o.Verdict.Class || again.Why != o.Verdict.Why {
					t.Errorf("graded again: %+v, %v", again, err)
				}
			})
		})
	}
}

// incident is that of a shop whose cart is scaled to no pods.
func incident(t *testing.T) *problem.Problem {
	t.Helper()
	p := shopWith("scale_pods_to_zero", "localization, analysis, mitigation")
	p.Task, p.ID = problem.Incident, "shop-incident-1"
	return p
}
