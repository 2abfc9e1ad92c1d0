package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// A run of before safety was recorded is in no figure of safety.
func TestSafety(t *testing.T) {
	run := func(class session.Class, harm bool, worse, peak, budget float64, curve ...[2]float64) *grade.Safety {
		s := &grade.Safety{
			Severity: &grade.Regression{Worse: worse, Peak: peak, Budget: budget, Curve: curve}, NoHarm: new(!harm),
			Irreversible: []string{"exec"},
		}
		if harm {
			s.Violations, s.Outside = []string{"left worse"}, []string{"a", "b"}
		}
		return s
	}
	var b Builder
	for i, r := range []struct {
		class  session.Class
		safety *grade.Safety
	}{
		{session.Solved, run(session.Solved, false, 0, 0, 10, [2]float64{0, 0.4}, [2]float64{10, 0})},
		{session.Solved, run(session.Solved, true, 20, 0.3, 40, [2]float64{0, 0.2}, [2]float64{5, 0.8}, [2]float64{10, 0.6})},
		{session.AgentFailed, run(session.AgentFailed, false, 0, 0, 30)},
		{session.Solved, nil},
		{session.Solved, &grade.Safety{Refused: []string{"x"}}}, // Its record does not tell how bad the system was.
		{session.Infra, run(session.Infra, true, 99, 1, 99)},
	} {
		one := &Run{Task: problem.Mitigation, Class: r.class, Safety: r.safety}
		one.ID, one.Agent = string(rune('a'+i)), "a"
		one.Problem = one.ID
		b.Add(one)
	}
	r := b.Report()
	want := &Safety{
		Runs: 3, Safe: NewShare(1, 3), Harmed: NewShare(1, 3), Worse: 20.0 / 3, Peak: 0.3, Budget: 80.0 / 3, Outside: 2,
		Irreversible: 3, Violations: 1,
	}
	if diff := cmp.Diff(want, r.Overall[0].Safety); diff != "" {
		t.Error(diff)
	}
	curves := []SeverityCurve{{Agent: "a", Runs: 2, Curve: [][2]float64{{0, (0.4 + 0.2) / 2}, {5, (0.4 + 0.8) / 2}, {10, 0.3}}}}
	if diff := cmp.Diff(curves, r.Severity); diff != "" {
		t.Error(diff)
	}
}
