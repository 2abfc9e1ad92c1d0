package session

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// TestTurnTellsNothing: how long it takes until the agent has its turn does not depend on whether
// there is a fault, nor on how soon it shows.
func TestTurnTellsNothing(t *testing.T) {
	d := &problem.Document{Faults: []problem.FaultSpec{{Kind: "misconfig_app", Target: "geo"}}}
	faulty := &problem.Problem{Document: d, Task: problem.Detection}
	twin := &problem.Problem{Document: d, Task: problem.Detection, Healthy: true}
	turn := func(p *problem.Problem, h HandOver, seed uint64, shows time.Duration) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := holdTurn(t.Context(), turnDelay(p, h, seed, 0), func(context.Context) error {
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
	for h, least := range map[HandOver]time.Duration{AtFault: showTime, AtAlert: callTime} {
		drawn := map[time.Duration]bool{}
		for seed := range uint64(20) {
			healthy := turn(twin, h, seed, 0)
			drawn[healthy] = true
			for _, shows := range []time.Duration{time.Millisecond, time.Second, least} {
				if got := turn(faulty, h, seed, shows); got != healthy {
					t.Errorf("with seed %d a fault that shows after %v gives a turn after %v, a healthy system after %v", seed, shows, got, healthy)
				}
			}
		}
		if len(drawn) < 10 {
			t.Errorf("the moment is not drawn: %v", drawn)
		}
	}
	if got := turn(twin, "90s", 1, 0); got != 90*time.Second {
		t.Errorf("a turn after 90s begins after %v", got)
	}
	// A fault must show before the turn begins, whatever is drawn.
	if got := turn(faulty, AtFault, 1, time.Minute); got != time.Minute {
		t.Errorf("a fault that shows after a minute gives a turn after %v", got)
	}
	// One that grows takes longer to show, and its healthy twin waits as long.
	grows := &problem.Document{Faults: []problem.FaultSpec{{Kind: "memory_stress", Target: "geo"}}}
	if err := yaml.Unmarshal([]byte("{memory: 1Gi, ramp: 40s}"), &grows.Faults[0].Params); err != nil {
		t.Fatal(err)
	}
	slow, well := &problem.Problem{Document: grows, Task: problem.Detection}, &problem.Problem{Document: grows, Task: problem.Incident, Healthy: true}
	if a, b := turn(slow, AtFault, 1, 20*time.Second), turn(well, AtFault, 1, 0); a != b || a < 23*time.Second {
		t.Errorf("a fault that grows gives a turn after %v, its healthy twin after %v", a, b)
	}
	if got := turn(&problem.Problem{Document: d, Task: problem.Mitigation}, AtFault, 1, time.Second); got != time.Second {
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

// fires has Prometheus say that an alert is in a state, from now on.
func (w *fakeShop) fires(name, pod, state string) {
	w.firing.Store(fmt.Sprintf(`{"labels":{"alertname":%q,"severity":"critical","pod":%q},"state":%q,"value":"1",`+
		`"annotations":{"summary":"Pod %s is in trouble."},"activeAt":%q}`, name, pod, state, pod, time.Now().Format(time.RFC3339Nano)))
}

// The turn begins when somebody would be called, and the agent is told what the pager says, unless that is the answer.
func TestHandOver(t *testing.T) {
	whole := func(w *fakeShop) { // Users do not need the cart.
		w.Serve("frontend.test-shop:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	const page = "critical CartDown: Pod cart-1 is in trouble."
	for _, c := range []struct {
		name        string
		task        problem.Task
		hand        HandOver
		set         func(*fakeShop)
		page        string
		least, most time.Duration
	}{
		{"at once", problem.Localization, "", nil, "", 0, 5 * time.Second},
		{"an alert", problem.Localization, AtAlert, func(w *fakeShop) {
			time.AfterFunc(5*time.Second, func() { w.fires("CartDown", "cart-1", "pending") })
			time.AfterFunc(20*time.Second, func() { w.fires("CartDown", "cart-1", "firing") })
		}, page, 19 * time.Second, 22 * time.Second},
		{"users notice", problem.Mitigation, AtAlert, nil, "users report that Shop fails for them.", complaintTime, complaintTime + 15*time.Second},
		{"nobody notices", problem.Mitigation, AtAlert, whole, "", uncalledTime, uncalledTime + 5*time.Second},
		{"an alert from before", problem.Mitigation, AtAlert, func(w *fakeShop) {
			whole(w)
			w.fires("CartDown", "cart-1", "firing")
		}, "", uncalledTime, uncalledTime + 5*time.Second},
		{"the application's own alert", problem.Mitigation, AtAlert, func(w *fakeShop) {
			whole(w)
			w.stage.alerting[`CartDown{pod="cart-1"}`] = true
			time.AfterFunc(5*time.Second, func() { w.fires("CartDown", "cart-1", "firing") })
		}, "", uncalledTime, uncalledTime + 5*time.Second},
		{"Prometheus is what is broken", problem.Mitigation, AtAlert, func(w *fakeShop) {
			w.firing.Store("what?")
		}, "users report", complaintTime, complaintTime + 15*time.Second},
		{"a while", problem.Mitigation, "2m", nil, "", 2 * time.Minute, 2*time.Minute + time.Second},
		{"a detection", problem.Detection, AtAlert, func(w *fakeShop) {
			time.AfterFunc(5*time.Second, func() { w.fires("CartDown", "cart-1", "firing") })
		}, "", callTime, 3 * callTime / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				s := &Session{Problem: shopProblem(c.task), Agent: scripted(agent.Call("submit", "x")), Environment: w.Local, Results: results, HandOver: c.hand}
				s.Progress = func(kind string, data any) {
					if kind == record.BaselineEvent && c.set != nil {
						time.Sleep(time.Millisecond) // An alert from before is older.
						c.set(w)
						time.Sleep(time.Millisecond)
					}
				}
				o, err := s.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				var b record.Briefing
				var h record.HandOver
				for _, e := range rec.Events {
					switch e.Kind {
					case record.BriefingEvent:
						err = e.Decode(&b)
					case record.HandOverEvent:
						err = e.Decode(&h)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				told := strings.Contains(b.Description, "The pager has called you")
				if told != (c.page != "") || !strings.Contains(b.Description, c.page) || !strings.Contains(strings.Join(h.Page, ""), c.page) {
					t.Errorf("the agent is told %q; the record has %q", b.Description, h.Page)
				}
				if after := time.Duration(h.After * float64(time.Second)); after < c.least || after > c.most {
					t.Errorf("the turn began after %v, want %v to %v", after, c.least, c.most)
				}
				w.Local.Close()
			})
		})
	}
}

func TestParseHandOver(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "fault": true, "alert": true, "90s": true, "0s": true, "alarm": false, "-1s": false, "2h": false, "5": false} {
		if h, err := ParseHandOver(text); (err == nil) != ok || ok && string(h) != text {
			t.Errorf("%q: %q, %v", text, h, err)
		}
	}
}
