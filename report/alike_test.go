package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// alike are runs of every kind that a share is made of, each problem tried so often, and each time with the same end.
func alike(tries int) *Report {
	var b Builder
	for i := range 12 {
		good := i%3 > 0
		class := session.AgentFailed
		if good {
			class = session.Solved
		}
		cost := 0.1
		for try := range tries {
			add := func(task problem.Task, r *Run) {
				r.Run = record.Run{ID: fmt.Sprint(task, r.Faulty, i, "-", try), Agent: "x"}
				r.Problem, r.Task, r.Class = fmt.Sprint("p", i, task, r.Faulty), task, class
				r.Cost, r.Steps = &cost, i
				r.Safety = &grade.Safety{Severity: &grade.Regression{}, NoHarm: new(i%2 > 0)}
				b.Add(r)
			}
			add(problem.Detection, &Run{Faulty: true})
			add(problem.Detection, &Run{Writes: i % 2})
			add(problem.Localization, &Run{Faulty: true, Top1: good, Top3: i != 3})
			add(problem.Analysis, &Run{Faulty: true, Level: good, Type: i > 5})
			add(problem.Mitigation, &Run{Faulty: true, Group: &RunGroup{Rounds: 1}})
			add(problem.Incident, &Run{})
			stages := map[problem.Task]RunStage{
				problem.Localization: {Class: class},
				problem.Mitigation:   {Class: map[bool]session.Class{true: session.Solved, false: session.AgentFailed}[i%4 > 0]},
			}
			add(problem.Incident, &Run{Faulty: true, Stages: stages})
		}
	}
	return b.Report()
}

// sharesIn are all shares with an interval in a report, by where they are.
func sharesIn(t *testing.T, r *Report) map[string]Share {
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]Share{}
	var look func(at string, v any)
	look = func(at string, v any) {
		switch v := v.(type) {
		case []any:
			for i, one := range v {
				look(fmt.Sprintf("%s.%d", at, i), one)
			}
		case map[string]any:
			if _, ok := v["low"]; ok {
				found[at] = Share{
					int(v["n"].(float64)), int(v["of"].(float64)), v["value"].(float64), v["low"].(float64), v["high"].(float64),
				}
			}
			for name, one := range v {
				look(at+"."+name, one)
			}
		}
	}
	look("", all)
	return found
}

// TestTriesThatAreAlike: ten tries of a problem that end alike say no more than one, whatever a share is of. So no
// interval of a report gets narrower by them.
func TestTriesThatAreAlike(t *testing.T) {
	once, often := sharesIn(t, alike(1)), sharesIn(t, alike(10))
	for at, one := range once {
		many, ok := often[at]
		if !ok || many.Of != 10*one.Of || many.N != 10*one.N {
			t.Errorf("%s: %+v, ten times %+v", at, one, many)
			continue
		}
		if d := max(many.Low-one.Low, one.High-many.High); d > 1e-9 {
			t.Errorf("%s: %+v is made of %+v, ten times", at, many, one)
		}
	}
	for _, at := range []string{
		".incidents.0.solved", ".incidents.0.healthy", ".incidents.0.stages.1.right", ".incidents.0.lucky_fixes",
		".incidents.0.mitigated.given_localized", ".incidents.0.mitigated.given_not_localized", ".values.0.accuracy",
		".conduct.0.needless_writes", ".conduct.0.lucky_fixes", ".groups.0.solved", ".step_limits.0.within.5",
		".overall.0.safety.harmed", ".overall.0.safety.solved_no_harm", ".tasks.0.rows.0.false_alarms",
		".tasks.1.rows.0.top_1", ".tasks.1.rows.0.top_3", ".tasks.2.rows.0.system_level", ".tasks.2.rows.0.fault_type",
		".cuts.0.rows.0.accuracy",
	} {
		if s := once[at]; s.Of < 3 {
			t.Errorf("%s is not tried: %+v", at, s)
		}
	}
}
