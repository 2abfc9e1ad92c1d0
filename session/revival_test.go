package session

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
)

// historian is a cloud whose past is not written, but asked for.
type historian struct {
	*cloudtest.Cloud
	relived, marked, recalled int
	atMark                    func()
	written                   []time.Time // when it was given a past
}

func (h *historian) Rewrite(s cloud.Snapshot, _ func(*cloud.History) error) (cloud.Snapshot, error) {
	h.written = append(h.written, time.Now())
	return s, nil
}

func (h *historian) Relive(ctx context.Context, _ func(*cloud.History) error) (cloud.Snapshot, error) {
	h.relived++
	h.written = append(h.written, time.Now())
	return h.Snapshot(ctx)
}

func (h *historian) Mark(context.Context) error {
	h.marked++
	if h.atMark != nil {
		h.atMark()
	}
	return nil
}

func (h *historian) Recall(context.Context, *past.Past) error {
	h.recalled++
	return nil
}

// An application that was kept with how it looks when it is well is served for a moment, not for as long as it takes
// to find that out. Under a load that it was not seen under, it is looked at, and that is told.
func TestRevived(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		h := &historian{Cloud: w.Cloud}
		w.Local.Cloud = h
		var told []Made
		const seed = 7
		serve := func(rate float64, r *Revival) (ready time.Duration) {
			t.Helper()
			w.Revival, w.stage, w.Made = r, nil, func(_ *app.App, m Made) { told = append(told, m) }
			defer w.Local.Close()
			began := time.Now()
			p := shopProblem(problem.Detection)
			p.Document.Load.Rate = workload.Constant(rate)
			s := Session{
				Problem: p, Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local, Results: results, Seed: seed,
				Progress: func(kind string, _ any) {
					if kind == record.BaselineEvent {
						ready = time.Since(began)
					}
				},
			}
			o, err := s.Run(t.Context())
			if err != nil || o.Verdict.Class != Solved {
				t.Fatalf("%+v: %v", o, err)
			}
			return ready
		}
		first := serve(20, nil)
		if len(told) != 1 || len(told[0].Healthy) != 1 || told[0].Snapshot == nil || h.relived != 1 || h.recalled != 1 {
			t.Fatalf("told of %+v, relived %d, recalled %d", told, h.relived, h.recalled)
		}
		revive := func(m Made) *Revival {
			r := &Revival{App: shop(), Seed: seed, Made: Made{Snapshot: m.Snapshot}}
			b, err := json.Marshal(m.Healthy) // Looks are kept in a file.
			if err != nil || json.Unmarshal(b, &r.Made.Healthy) != nil || h.Reset(t.Context(), m.Snapshot) != nil {
				t.Fatalf("it cannot be kept: %v", err)
			}
			return r
		}
		if first < minPrompt || first >= minCovered {
			t.Errorf("at first ready after %v", first)
		}
		if again := serve(20, revive(told[0])); again >= minPrompt || len(told) != 1 {
			t.Errorf("ready after %v, at first %v; told %d times", again, first, len(told))
		}
		if other := serve(30, revive(told[0])); other < minPrompt || len(told) != 2 || len(told[1].Healthy) != 2 {
			t.Errorf("ready for another load after %v; told of %+v", other, told[1:])
		}
		if again := serve(30, revive(told[1])); again >= minPrompt || len(told) != 2 {
			t.Errorf("ready for the other load after %v; told %d times", again, len(told))
		}
		if h.relived != 1 || h.recalled != 4 {
			t.Errorf("relived %d, recalled %d", h.relived, h.recalled)
		}
	})
}

// How an application looks on a busy machine, slow or with users who are not served, is not kept, and no later run is
// compared with it: what is broken would pass.
func TestBusyDayIsNotKept(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		w.Local.Cloud = &historian{Cloud: w.Cloud}
		var told []Made
		w.Made = func(_ *app.App, m Made) { told = append(told, m) }
		slow := atomic.Bool{}
		slow.Store(true)
		w.Serve("frontend.test-shop:80", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if slow.Load() {
				time.Sleep(4 * time.Second)
			}
		}))
		p := shopProblem(problem.Detection)
		run := func() (baseline time.Duration) {
			s := Session{
				Problem: p, Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local, Results: results,
				Progress: func(kind string, data any) {
					if look, ok := data.(grade.Look); ok && kind == record.BaselineEvent {
						baseline = look.Load.Total.P95
					}
				},
			}
			if o, err := s.Run(t.Context()); err != nil || o.Verdict.Class != Solved {
				t.Fatalf("%+v: %v", o, err)
			}
			return baseline
		}
		if p95 := run(); p95 < 3*time.Second || len(told) != 1 || len(told[0].Healthy) != 0 {
			t.Errorf("on the busy day 95 %% within %v; told of %+v", p95, told)
		}
		slow.Store(false)
		if p95 := run(); p95 > time.Second {
			t.Errorf("on the next day the baseline is that of the busy one: 95 %% within %v", p95)
		}
	})
}

// What fails while the telemetry's usual second is measured would fail in all of its past: the second begins anew. An
// application that never serves all its users has a past all the same.
func TestUsualSecondIsWell(t *testing.T) {
	for _, fails := range []int{0, 1, 100} {
		results := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			w := newShop(t)
			defer w.Local.Close()
			h := &historian{Cloud: w.Cloud}
			w.Local.Cloud = h
			if err := w.Keep(t.Context(), shop()); err != nil {
				t.Fatal(err)
			}
			p := shopProblem(problem.Detection)
			p.Document.Load.Rate = workload.Constant(200)
			s := Session{Problem: p, Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local, Results: results}
			if _, err := s.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			h.marked, h.recalled = 0, 0
			var failing atomic.Int32
			left := fails
			h.atMark = func() { // The first request after it fails.
				if left > 0 {
					left--
					failing.Store(1)
				}
			}
			w.Serve("frontend.test-shop:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				if failing.Add(-1) >= 0 {
					rw.WriteHeader(http.StatusBadGateway)
				}
			}))
			if o, err := s.Run(t.Context()); err != nil || o.Verdict.Class != Solved {
				t.Fatalf("%+v: %v", o, err)
			}
			// A look at the system may find the failure first, and begin one more.
			least := 1 + min(fails, maxUnusual)
			if h.marked < least || h.marked > least+min(fails, 1) || h.recalled != 1 {
				t.Errorf("%d failures: %d usual seconds, want %d; recalled %d times", fails, h.marked, least, h.recalled)
			}
		})
	}
}

// The first users of an application that was only just deployed may come too early. They are forgotten, if it serves
// all users soon. If it never does, it is watched for longer, and has a past all the same.
func TestFirstUsersAreForgotten(t *testing.T) {
	for _, c := range []struct {
		name         string
		fails        func(n int64, since time.Duration) bool // the nth request
		least, below time.Duration
		failed       bool // the baseline has failures
	}{
		{
			"for a moment", func(_ int64, since time.Duration) bool { return since < time.Second },
			time.Second + minPrompt, time.Second + minCovered, false,
		},
		{
			"now and then", func(n int64, _ time.Duration) bool { return n%60 == 0 },
			warming + minCovered, warming + minCovered + 2*maxUnusual*minUsual, true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newShop(t)
				defer w.Local.Close()
				h := &historian{Cloud: w.Cloud}
				w.Local.Cloud = h
				began := time.Now()
				w.Serve("frontend.test-shop:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
					if c.fails(w.visits.Add(1), time.Since(began)) {
						rw.WriteHeader(http.StatusBadGateway)
					}
				}))
				p := shopProblem(problem.Detection)
				p.Document.Load.Rate = workload.Constant(400)
				var ready time.Duration
				var baseline grade.Look
				s := Session{
					Problem: p, Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local, Results: results,
					Progress: func(kind string, data any) {
						if look, ok := data.(grade.Look); ok && kind == record.BaselineEvent {
							baseline, ready = look, time.Since(began)
						}
					},
				}
				if _, err := s.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				failed := baseline.Load.Total.Failed
				if ready < c.least || ready >= c.below || failed > 0 != c.failed || h.recalled != 1 {
					t.Errorf("ready after %v, %d users failed, recalled %d times", ready, failed, h.recalled)
				}
			})
		})
	}
}

// How many users there usually are is known before they have come: a second is too short to count them.
func TestUsualRate(t *testing.T) {
	second := workload.Think{Min: time.Second, Max: time.Second}
	slow := workload.Window{Total: workload.SLI{Mean: 250 * time.Millisecond}}
	for _, c := range []struct {
		name string
		load problem.Load
		want float64
	}{
		{"constant", problem.Load{Arrivals: workload.Arrivals{Rate: workload.Constant(20)}}, 20},
		{"who wait for answers", problem.Load{Users: &workload.Users{Count: 50, Think: second}}, 40},
		{"who have yet to come", problem.Load{Users: &workload.Users{Count: 50, Think: second, Spawn: 1, From: 10}}, 8},
	} {
		if got := usualRate(&c.load, slow); got != c.want {
			t.Errorf("%s: %v requests a second, want %v", c.name, got, c.want)
		}
	}
	if got := usualRate(&problem.Load{Users: &workload.Users{Count: 5}}, workload.Window{}); got != 0 {
		t.Errorf("of users who do not think, before the first answer: %v requests a second", got)
	}
}
