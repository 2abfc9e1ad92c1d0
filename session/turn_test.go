package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/problem"
)

// TestTurnTellsNothing: how long it takes until the agent has its turn does not depend on whether
// there is a fault, nor on how soon it shows.
func TestTurnTellsNothing(t *testing.T) {
	d := &problem.Document{Faults: []problem.FaultSpec{{Kind: "misconfig_app", Target: "geo"}}}
	faulty := &problem.Problem{Document: d, Task: problem.Detection}
	twin := &problem.Problem{Document: d, Task: problem.Detection, Healthy: true}
	turn := func(p *problem.Problem, seed uint64, shows time.Duration) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := holdTurn(t.Context(), turnDelay(p, seed), func(context.Context) error {
				time.Sleep(shows)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			took = time.Since(begin)
		})
		return took
	}
	drawn := map[time.Duration]bool{}
	for seed := range uint64(20) {
		healthy := turn(twin, seed, 0)
		drawn[healthy] = true
		for _, shows := range []time.Duration{time.Millisecond, time.Second, showTime} {
			if got := turn(faulty, seed, shows); got != healthy {
				t.Errorf("with seed %d a fault that shows after %v gives a turn after %v, a healthy system after %v", seed, shows, got, healthy)
			}
		}
	}
	if len(drawn) < 10 {
		t.Errorf("the moment is not drawn: %v", drawn)
	}
	// A fault must show before the turn begins, whatever is drawn.
	if got := turn(faulty, 1, time.Minute); got != time.Minute {
		t.Errorf("a fault that shows after a minute gives a turn after %v", got)
	}
	// One that grows takes longer to show, and its healthy twin waits as long.
	grows := &problem.Document{Faults: []problem.FaultSpec{{Kind: "memory_stress", Target: "geo"}}}
	if err := yaml.Unmarshal([]byte("{memory: 1Gi, ramp: 40s}"), &grows.Faults[0].Params); err != nil {
		t.Fatal(err)
	}
	slow, well := &problem.Problem{Document: grows, Task: problem.Detection}, &problem.Problem{Document: grows, Task: problem.Incident, Healthy: true}
	if a, b := turn(slow, 1, 20*time.Second), turn(well, 1, 0); a != b || a < 23*time.Second {
		t.Errorf("a fault that grows gives a turn after %v, its healthy twin after %v", a, b)
	}
	if got := turn(&problem.Problem{Document: d, Task: problem.Mitigation}, 1, time.Second); got != time.Second {
		t.Errorf("a mitigation, where all know of the fault, begins after %v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := holdTurn(ctx, time.Hour, func(context.Context) error { return nil }); err == nil {
			t.Error("the end of the run was not heard")
		}
	})
}
