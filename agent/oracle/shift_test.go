package oracle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// TestWatch: who is on call solves what has come when the pager calls, again if it comes again, and nothing else.
func TestWatch(t *testing.T) {
	p := problemtest.Find(t, "k8s_target_port-misconfig_hotel_res-mitigation-1")
	solution, err := p.Solution()
	if err != nil {
		t.Fatal(err)
	}
	w := newWatch(agent.Briefing{Roster: &problem.Roster{Length: time.Hour, Incidents: []problem.Planned{
		{Problem: p, At: time.Minute}, {Problem: p, At: 30 * time.Minute},
	}}}).(*watch)
	start := time.Now()
	// does is what it does after so long, until it submits.
	does := func(after time.Duration, observation string) (list []string) {
		w.now = func() time.Time { return start.Add(after) }
		for len(list) < 100 {
			response, err := w.Act(t.Context(), observation)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, response)
			if strings.Contains(response, "\nsubmit(") {
				break
			}
			observation = "done"
		}
		return list
	}
	var whole []string
	for _, c := range solution {
		whole = append(whole, agent.Call("exec_shell", c, patience))
	}
	whole = append(whole, agent.Call("submit", p.Involved()))
	nothing := []string{agent.Call("submit")}
	const page = "The pager calls.\nPage 1:\nsomething"
	for _, step := range []struct {
		after time.Duration
		told  string
		want  []string
	}{
		{0, "You are on call.", nothing},
		{70 * time.Second, page, whole},
		{80 * time.Second, page, whole}, // It may have been solved before it came.
		{90 * time.Second, page, nothing},
		{20 * time.Minute, page, nothing},
		{30*time.Minute + 10*time.Second, page, whole}, // There it is again.
		{40 * time.Minute, page, nothing},              // That was not it.
	} {
		if got := does(step.after, step.told); !slices.Equal(got, step.want) {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}
