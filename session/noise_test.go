package session

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/noise"
)

// replicas is how many pods a Deployment of the shop is to have.
func (w *fakeShop) replicas(t *testing.T, name string) int32 {
	t.Helper()
	d, err := w.client.AppsV1().Deployments("test-shop").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *d.Spec.Replicas
}

// A run in which other things change has the verdict of one in which nothing does, whatever is asked and
// whether there is a fault. What was changed is in the record when the agent is done, and no sooner; then
// nothing is changed any more, and everything is as it was, but for the fault and what the agent did.
func TestRunWithNoise(t *testing.T) {
	yes, no, done := agent.Call("submit", "Yes"), agent.Call("submit", "No"), agent.Call("submit")
	scale := agent.Call("exec_shell", "kubectl scale deployment/cart")
	const noisy = " noise"
	leaves := strings.Replace(leaving, " fault hand-over", noisy+" fault hand-over"+noisy, 1)
	for _, c := range []struct {
		name    string
		task    problem.Task
		healthy bool
		answers []string
		want    Class
		tells   string
	}{
		{"a fault is detected", problem.Detection, false, []string{yes}, Solved, leaves + " look verdict"},
		{"a fault is overlooked", problem.Detection, false, []string{no}, AgentFailed, leaves + " look verdict"},
		{
			"nothing is wrong", problem.Detection, true,
			[]string{no},
			Solved,
			strings.Replace(leaves, " fault", "", 1) + " look verdict",
		},
		{
			"changes are taken for a fault", problem.Detection, true,
			[]string{yes},
			AgentFailed,
			strings.Replace(leaves, " fault", "", 1) + " look verdict",
		},
		{"a fault is mended", problem.Mitigation, false, []string{scale, done}, Solved, leaves + " look verdict"},
		{"a fault is left", problem.Mitigation, false, []string{done}, AgentFailed, leaves + " look verdict"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				p := shopProblem(c.task)
				p.Healthy = c.healthy
				var done atomic.Bool // the agent
				var late atomic.Int32
				s := &Session{
					Problem: p, Environment: w.Local, Results: results, Seed: 3, Noise: noise.Calm,
					Agent: acting(func(_ context.Context, n int) (string, error) {
						time.Sleep(20 * time.Second)
						return c.answers[n-1], nil
					}),
				}
				s.Events = func(e record.Event) {
					switch e.Kind {
					case record.SubmissionEvent:
						done.Store(true)
						if n := w.replicas(t, "frontend"); n != 1 {
							t.Errorf("the frontend has %d replicas when the agent is done", n)
						}
						w.Before(func(r *http.Request) error {
							if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/frontend") {
								late.Add(1)
							}
							return nil
						})
					case record.NoiseEvent:
						if !done.Load() {
							t.Error("the record tells what was changed while the agent works")
						}
					}
				}
				o, err := s.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if o.Verdict.Class != c.want {
					t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
				}
				if n := late.Load(); n > 0 {
					t.Errorf("%d changes were made after the agent was done", n)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				if got := outline(t, rec); !strings.HasSuffix(got, c.tells) {
					t.Errorf("the record tells\n%s, not\n%s", got, c.tells)
				}
				checkChanges(t, rec, c.healthy)
				w.Local.Close()
				w.checkOver(t)
			})
		})
	}
}

// checkChanges checks that both services were released, and that only the one that is well was scaled.
func checkChanges(t *testing.T, rec *record.Record, healthy bool) {
	t.Helper()
	count := map[string]int{}
	for _, e := range rec.Events {
		if e.Kind != record.NoiseEvent {
			continue
		}
		var n record.Noise
		if err := e.Decode(&n); err != nil || n.Level != "calm" {
			t.Errorf("%+v, %v", n, err)
		}
		for _, c := range n.Changes {
			count[c.What+" "+c.Service]++
		}
	}
	up, down := count["scale up frontend"]+count["scale up cart"], count["scale down frontend"]+count["scale down cart"]
	if count["load spike "] != 1 && count["load spike "] != 2 {
		t.Errorf("there were %d load spikes", count["load spike "])
	}
	if count["release frontend"] != 1 || count["release cart"] != 1 || up < 5 || up != down {
		t.Errorf("changed were %v", count)
	}
	if !healthy && count["scale up cart"] > 0 {
		t.Errorf("what is faulty was scaled: %v", count)
	}
}
