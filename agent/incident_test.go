package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// An agent that answers is asked by the observation, and at first by the task.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		task         problem.Task
		observations []string
		want         string
	}{
		{problem.Analysis, []string{aci.NextAction, aci.NextAction}, "analysis analysis"},
		{
			problem.Incident,
			[]string{aci.NextAction, "ok\n\n" + aci.Ask("localization") + "\n" + aci.NextAction, "what?", aci.Ask("mitigation")},
			"detection localization localization mitigation",
		},
	} {
		var asked []string
		a := Answers(tt.task, func(q problem.Task) (string, error) {
			asked = append(asked, string(q))
			return "", nil
		})
		for _, o := range tt.observations {
			if _, err := a.Act(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(asked, " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.task, got, tt.want)
		}
	}
}

// The reference answers are those of the document, and of a healthy twin that nothing is wrong.
func TestReference(t *testing.T) {
	for id, want := range map[string][]string{
		"scale_pod_zero_social_net-incident-1": {
			`submit("Yes")`, `submit(["user-service"])`, `submit({"system_level":"Virtualization","fault_type":"Operation Error"})`,
			`exec_shell("kubectl scale`, `exec_shell(`, `submit()`,
		},
		"scale_pod_zero_social_net-incident-1-healthy": {`submit("No")`, `submit([])`, `submit()`, `submit()`},
	} {
		p, err := problemtest.Library(t).Find(id)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range p.Questions() {
			responses, err := Reference(p, q)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range responses {
				got = append(got, strings.Trim(r, "`\n"))
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %s", id, cmp.Diff(want, got))
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: %s, want %s", id, got[i], want[i])
			}
		}
	}
}
