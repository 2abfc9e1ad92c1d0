package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// outline is what a record tells, in short: phases by name, other events by kind, each once in a row. How bad the
// system was is left out: that is told by the clock.
func outline(t *testing.T, rec *record.Record) string {
	t.Helper()
	var list []string
	for _, e := range rec.Events {
		name := e.Kind
		if e.Kind == record.SeverityEvent {
			continue
		}
		if e.Kind == record.PhaseEvent {
			var p record.Phase
			if err := e.Decode(&p); err != nil {
				t.Fatal(err)
			}
			name = "(" + p.Name + ")"
			if _, why, ok := strings.Cut(p.Name, "recovering: "); ok && why != "" {
				name = "(recovering: ...)"
			}
		}
		if len(list) == 0 || list[len(list)-1] != name {
			list = append(list, name)
		}
	}
	return strings.Join(list, " ")
}

// Parts of the outlines of runs.
const (
	deploying = "(deploying shop)"
	awaiting  = deploying + " (waiting until its users are served)"
	alerting  = awaiting + ` (waiting until no alert is left from the start, such as Noisy{pod="cart-0"})`
	acting1   = awaiting + " (agent) briefing action step"
	withheld  = " problem past baseline (injecting)" // what the record has when the agent is done
	leaving   = " doing submission" + withheld + " fault hand-over (grading) hold"

	failed   = " problem submission verdict"
	harmless = awaiting + withheld + " submission verdict"
	harmed   = awaiting + withheld + " fault submission verdict"
	shutOut  = awaiting + withheld + " fault hand-over submission verdict"
	judged   = acting1 + " action step" + leaving + " look verdict"
	mended   = awaiting + " (agent) briefing action write step action step" + leaving + " look verdict"
)

// on has something done when the API gets a request, the nth of its kind.
func on(w *fakeShop, method, end string, nth int32, do func(r *http.Request) error) {
	var n atomic.Int32
	w.Before(func(r *http.Request) error {
		if r.Method == method && strings.HasSuffix(r.URL.Path, end) && n.Add(1) == nth {
			return do(r)
		}
		return nil
	})
}

// interrupted interrupts the run, and waits for whoever asked to give up.
func interrupted(w *fakeShop) func(*http.Request) error {
	return func(r *http.Request) error {
		w.interrupt()
		return hang(r.Context())
	}
}

// longest is longer than any of these runs takes, in made-up time: each wait has a limit of its own, long
// before that of all together.
const longest = 6 * time.Minute

var errDown = errors.New("the API is down")

func down(*http.Request) error { return errDown }

// A run in a cloud, from a bare cluster to a verdict: in each phase, whatever can go wrong there does.
// The record tells how far the run came, the verdict whose fault it is, and nothing goes on afterwards:
// a goroutine that is left would end the test.
func TestRun(t *testing.T) {
	yes, no, done := agent.Call("submit", "Yes"), agent.Call("submit", "No"), agent.Call("submit")
	look, scale := agent.Call("exec_shell", "kubectl get pods"), agent.Call("exec_shell", "kubectl scale deployment/cart")
	const cart = "/deployments/cart"
	for _, c := range []struct {
		name  string
		task  problem.Task
		agent agent.Entry
		set   func(*fakeShop)
		want  Class
		why   string
		tells string // the outline of the record
	}{
		// Deploying.
		{"deploying: it is refused", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodPatch, cart, 1, down)
		}, Infra, "deploy shop: apply Deployment cart: ", deploying + failed},
		{"deploying: the manifests are wrong", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.session.Problem.App.Manifests = fstest.MapFS{"a.yaml": {Data: []byte("kind: [")}}
		}, Infra, "deploy shop: a.yaml: ", deploying + failed},
		{"deploying: a part never gets ready", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.Stick("test-shop", "cart", true)
		}, Infra, "deploy shop: Deployment cart: not ready: ", deploying + failed},
		{"deploying: interrupted", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodPatch, cart, 1, interrupted(w))
		}, Inconclusive, "interrupted before the agent could begin", deploying + failed},

		// Waiting until users are served.
		{"serving: there is no such mix", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.session.Problem.Document.Load.Mix = "rush-hour"
		}, Infra, "rush-hour", awaiting + failed},
		{"serving: users never are", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.Serve("frontend.test-shop:80", http.NotFoundHandler())
		}, Infra, "the application is not healthy before any fault: 0.0 % of requests succeed: ", awaiting + failed},
		{"serving: the API goes down", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodGet, "/services", 3, down)
		}, Infra, errDown.Error(), awaiting + failed},
		{"serving: interrupted", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodGet, "/services", 3, interrupted(w))
		}, Inconclusive, "interrupted before the agent could begin", awaiting + failed},

		// Waiting until no alert is left.
		{"alerts: one is gone after a while", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.alerts.Store(noisy)
			time.AfterFunc(30*time.Second, func() { w.alerts.Store("") })
		}, Solved, "the answer is right", strings.Replace(judged, awaiting, alerting, 1)},
		{"alerts: one is the application's own", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.alerts.Store(noisy)
		}, Solved, "the answer is right", strings.Replace(judged, awaiting, alerting, 1)},
		{"alerts: they cannot be read", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.alerts.Store("what?")
		}, Infra, "the alerts cannot be read before any fault: ", awaiting + failed},
		{"alerts: interrupted", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.alerts.Store(noisy)
			time.AfterFunc(30*time.Second, w.interrupt)
		}, Inconclusive, "interrupted before the agent could begin", alerting + failed},

		// Watching the healthy system.
		{
			"baseline: interrupted", problem.Detection, scripted(yes), func(w *fakeShop) {
				w.session.Agent.Baseline = time.Hour
				time.AfterFunc(time.Minute, w.interrupt)
			}, Inconclusive, "interrupted before the agent could begin",
			awaiting + " (watching the healthy system for 1h0m0s) problem past baseline submission verdict",
		},
		{
			"baseline: an agent learns for two minutes", problem.Detection, scripted(look, yes), func(w *fakeShop) {
				w.session.Agent.Baseline = 2 * time.Minute
			}, Solved, "the answer is right",
			strings.Replace(judged, awaiting, awaiting+" (watching the healthy system for 2m0s)", 1),
		},

		// Injecting.
		{"injecting: it is refused", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodPatch, cart, 2, down)
		}, Infra, "inject scale_pods_to_zero into cart: ", harmless},
		{"injecting: the fault never shows", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.session.Problem = shopWith("noop", problem.Detection)
		}, Infra, "noop in cart does not show: ", harmless},
		{"injecting: interrupted", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodPatch, cart, 2, interrupted(w))
		}, Inconclusive, "interrupted before the agent could begin", harmless},
		{"injecting: interrupted as the fault is to show", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.session.Problem = shopWith("noop", problem.Detection)
			on(w, http.MethodGet, "/jobs", 1, func(*http.Request) error { time.AfterFunc(time.Minute, w.interrupt); return nil })
		}, Inconclusive, "interrupted before the agent could begin", harmless},
		{"injecting: interrupted when the fault has shown", problem.Detection, scripted(yes), func(w *fakeShop) {
			on(w, http.MethodPatch, cart, 2, func(*http.Request) error { time.AfterFunc(2*time.Second, w.interrupt); return nil })
		}, Inconclusive, "interrupted before the agent could begin", harmed},
		{"admission: the agent gets no way to the cloud", problem.Detection, scripted(yes), func(w *fakeShop) {
			w.admit = func(context.Context) (*access, error) { return nil, errors.New("no port is free") }
		}, Infra, "no port is free", shutOut},

		// The agent's turn.
		{"agent: the answer is right", problem.Detection, scripted(look, yes), nil, Solved, "the answer is right", judged},
		{"agent: the answer is wrong", problem.Detection, scripted(look, no), nil, AgentFailed, `submitted "No"`, judged},
		{
			"agent: the place is right", problem.Localization, scripted(look, agent.Call("submit", []any{"cart"})), nil,
			Solved, "the answer is right", judged,
		},
		{"agent: nothing is submitted", problem.Detection, scripted(look), func(w *fakeShop) {
			w.session.Steps = 1
		}, AgentFailed, "no submission within 1 steps", acting1 + leaving + " look verdict"},
		{"agent: it mends the system", problem.Mitigation, scripted(scale, done), nil, Solved, "the system has been well", mended},
		{
			"agent: it mends nothing", problem.Mitigation, scripted(look, done), nil,
			AgentFailed, "the system is not well: ", judged,
		},
		{"agent: an action hangs", problem.Detection, scripted(look), func(w *fakeShop) {
			w.session.Time = time.Minute
			w.act = func(ctx context.Context, _ string) string { return hang(ctx).Error() }
		}, AgentFailed, "the agent's time is up: 1m0s", acting1 + leaving + " look verdict"},
		{"agent: interrupted in an action", problem.Detection, scripted(look), func(w *fakeShop) {
			w.act = func(ctx context.Context, _ string) string { w.interrupt(); return hang(ctx).Error() }
		}, Inconclusive, "interrupted", acting1 + strings.Replace(leaving, "hold", "interrupt hold", 1) + " look verdict"},
		{"agent: interrupted after it mended the system", problem.Mitigation, scripted(scale, look), func(w *fakeShop) {
			w.session.Steps = 1 << 20
			w.act = func(ctx context.Context, _ string) string { w.interrupt(); return hang(ctx).Error() }
		}, Inconclusive, "interrupted", acting1 + strings.Replace(leaving, "hold", "interrupt hold", 1) + " look verdict"},

		// Grading.
		{"grading: the fault is gone by itself", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.act = func(ctx context.Context, _ string) string {
				defer time.Sleep(10 * time.Second) // It takes the pod some seconds to count as ready.
				return fmt.Sprint(w.scale(ctx, "cart", 1))
			}
		}, Inconclusive, "the fault did not show any more", judged},
		{"grading: a healthy twin", problem.Detection, scripted(look, no), func(w *fakeShop) {
			w.session.Problem.Healthy = true
		}, Solved, "the answer is right", strings.Replace(judged, " fault", "", 1)},
		{"grading: a healthy twin that falls ill", problem.Detection, scripted(look, no), func(w *fakeShop) {
			w.session.Problem.Healthy, w.broken = true, true
			w.act = func(ctx context.Context, _ string) string { return fmt.Sprint(w.scale(ctx, "cart", 0)) }
		}, Inconclusive, "the system without a fault was not well", strings.Replace(judged, " fault", "", 1)},
		{"grading: the API is down", problem.Mitigation, scripted(scale, done), func(w *fakeShop) {
			on(w, http.MethodGet, "/jobs", 3, func(*http.Request) error { w.Before(down); return nil })
		}, GraderFailed, "could not be looked at after the agent was done: ", strings.Replace(mended, "look", "blind (recovering: ...)", 1)},
		{"grading: a look takes for ever", problem.Mitigation, scripted(scale, done), func(w *fakeShop) {
			on(w, http.MethodGet, "/jobs", 3, func(*http.Request) error {
				w.Before(func(r *http.Request) error { return hang(r.Context()) })
				return nil
			})
		}, GraderFailed, "a look took too long", strings.Replace(mended, "look", "blind (recovering: ...)", 1)},
		{"grading: the system never settles", problem.Mitigation, scripted(scale, done), func(w *fakeShop) {
			w.act = func(ctx context.Context, _ string) string {
				w.Stick("test-shop", "cart", true)
				return fmt.Sprint(w.scale(ctx, "cart", 1))
			}
		}, AgentFailed, "the system is not well: ", judged},
		{"grading: it takes its time to get well", problem.Mitigation, scripted(scale, done), func(w *fakeShop) {
			w.Stick("test-shop", "other", true)
			w.act = func(ctx context.Context, _ string) string {
				w.Stick("test-shop", "cart", true)
				time.AfterFunc(5*time.Second, func() { w.Stick("test-shop", "cart", false) })
				return fmt.Sprint(w.scale(ctx, "cart", 1))
			}
		}, Solved, "the system has been well", judged},
		{"grading: interrupted before the system can be well", problem.Mitigation, agent.Entry{}, func(w *fakeShop) {
			w.session.Agent = acting(func(ctx context.Context, n int) (string, error) {
				if n == 1 {
					w.Stick("test-shop", "cart", true)
					// Soon enough for a run that is not interrupted.
					time.AfterFunc(9*time.Second, func() { w.Stick("test-shop", "cart", false) })
					return scale, nil
				}
				w.interrupt()
				return done, nil
			})
		}, Inconclusive, "interrupted before it was clear how the system fares", strings.Replace(mended, "hold", "interrupt hold", 1)},
		{"grading: interrupted, but the system is well in time", problem.Mitigation, agent.Entry{}, func(w *fakeShop) {
			w.session.Agent = acting(func(ctx context.Context, n int) (string, error) {
				if n == 1 {
					return scale, nil
				}
				time.Sleep(10 * time.Second)
				w.interrupt()
				return done, nil
			})
		}, Solved, "the system has been well", strings.Replace(mended, "hold", "interrupt hold", 1)},
		{"grading: recovering fails", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.broken = true
			on(w, http.MethodPatch, cart, 3, down)
		}, Solved, "the answer is right", strings.Replace(judged, " verdict", " (recovering: ...) verdict", 1)},
		{"grading: the judge fails", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.session.Judge = func(context.Context, string, string) (string, error) { return "", errDown }
		}, Solved, "the answer is right", strings.Replace(judged, " verdict", " (asking the judge) judgement verdict", 1)},
		{"grading: the judge never answers", problem.Detection, scripted(look, yes), func(w *fakeShop) {
			w.session.Judge = func(ctx context.Context, _, _ string) (string, error) { return "", hang(ctx) }
		}, Solved, "the answer is right", strings.Replace(judged, " verdict", " (asking the judge) judgement verdict", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				w.interrupt = interrupt
				s := &Session{Problem: shopProblem(c.task), Agent: c.agent, Environment: w.Local, Results: results}
				w.session = s
				if c.set != nil {
					c.set(w)
				}
				began := time.Now()
				o, err := s.Run(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > longest {
					t.Errorf("it went on for %v", took)
				}
				if o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) {
					t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
				}
				rec, err := record.Read(o.Record)
				if err != nil {
					t.Fatal(err)
				}
				if got := outline(t, rec); got != c.tells {
					t.Errorf("the record tells\n%s, not\n%s", got, c.tells)
				}
				w.Local.Close()
				w.checkOver(t)
			})
		})
	}
}

// checkOver checks that nothing of a run goes on: no user comes, the agent has no way to the cloud, no
// fault is left where it could be undone.
func (w *fakeShop) checkOver(t *testing.T) {
	t.Helper()
	visits := w.visits.Load()
	time.Sleep(time.Minute)
	if n := w.visits.Load() - visits; n > 0 {
		t.Errorf("%d users came after the end", n)
	}
	if w.way != nil || w.Gate() != nil {
		t.Error("the agent has a way to the cloud")
	}
	w.Before(nil)
	d, err := w.client.AppsV1().Deployments("test-shop").Get(t.Context(), "cart", metav1.GetOptions{})
	if err == nil && *d.Spec.Replicas != 1 && !w.broken {
		t.Error("the fault is still there")
	}
}
