package runbook

import (
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// On call, it waits until the pager calls, looks then, and answers within the steps there are from one answer to the
// next, though the pager calls on and on.
func TestOnCall(t *testing.T) {
	a, err := newRunbook(agent.Briefing{Task: problem.OnCall, Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	observation, since, answers := "", 0, 0
	for range 200 {
		response, err := a.Act(t.Context(), observation+"\n"+aci.NextAction)
		if err != nil {
			t.Fatal(err)
		}
		call, err := aci.Parse(response)
		if err != nil {
			t.Fatal(err)
		}
		if since++; since > 30 {
			t.Fatalf("%d steps without an answer", since)
		}
		observation = aci.AddPages("No resources found", "Page 2, more:\n    x")
		if call.Name == "submit" {
			answers++
			if since = 0; answers == 1 {
				observation = "There is no page yet."
			} else {
				observation = "\nPage 1:\n    x"
			}
		}
	}
	if answers < 5 {
		t.Errorf("%d answers", answers)
	}
	_ = a.(interface{ Close() error }).Close()
}
