package session

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// points are how bad the system of a record was, in order.
func points(t *testing.T, rec *record.Record) (list []grade.Point) {
	t.Helper()
	for _, e := range rec.Events {
		if e.Kind == record.SeverityEvent {
			var c grade.Course
			if err := e.Decode(&c); err != nil {
				t.Fatal(err)
			}
			list = append(list, c.Points()...)
		}
	}
	return list
}

// Severity is taken once a second from before the fault until the end, follows what the agent does, and is in no record
// that an agent could read.
func TestSeverity(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if _, err := w.Severity(t.Context()); err == nil {
			t.Error("severity is known before there is a system")
		}
		s := Session{Problem: shopProblem(problem.Mitigation), Environment: w.Local, Results: results, ID: "run"}
		l := s.Open(t.Context())
		if _, err := l.Briefing(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.firing.Store(`{"labels":{"alertname":"Down","severity":"critical"},"state":"firing","value":"1",` +
			`"activeAt":"2026-03-01T11:58:30Z"}`)
		time.Sleep(20 * time.Second)
		// Nobody is served, one of two workloads is not there, and one critical alert fires.
		if mu, err := w.Severity(t.Context()); err != nil || mu < 0.75 || mu > 0.85 {
			t.Errorf("without a cart: %v, %v", mu, err)
		}
		if rec, err := record.Read(results + "/run.jsonl"); err != nil || len(points(t, rec)) > 0 {
			t.Errorf("the agent could read how bad the system is: %v", err)
		}
		if _, err := l.Step(t.Context(), agent.Call("exec_shell", "kubectl scale")); err != nil {
			t.Fatal(err)
		}
		w.firing.Store("")
		time.Sleep(20 * time.Second)
		if mu, err := w.Severity(t.Context()); err != nil || mu != 0 {
			t.Errorf("with a cart: %v, %v", mu, err)
		}
		if _, err := l.Step(t.Context(), agent.Call("submit")); err != nil {
			t.Fatal(err)
		}
		o, err := l.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Severity(t.Context()); err == nil {
			t.Error("severity is known when the run is over")
		}
		rec, err := record.Read(o.Record)
		if err != nil {
			t.Fatal(err)
		}
		list := points(t, rec)
		// 40 seconds of the agent's turn, and those until a mitigation is believed.
		if n := len(list); n < 46 {
			t.Fatalf("%d samples", n)
		}
		if first, last := list[0].Severity, list[len(list)-1].Severity; first != 0 || last != 0 {
			t.Errorf("it begins with %v and ends with %v", first, last)
		}
		for i, p := range list[1:] {
			if gap := p.Time.Sub(list[i].Time); gap < sampleInterval/2 || gap > 2*sampleInterval {
				t.Errorf("sample %d comes %v after the one before", i+1, gap)
			}
		}
		worst := slices.MaxFunc(list, func(a, b grade.Point) int { return int(1000 * (a.Severity - b.Severity)) })
		if worst.Severity < 0.75 {
			t.Errorf("at worst: %+v", worst)
		}
	})
}

// What cannot be seen is not made up, and nobody waits for it.
func TestSeverityUnseen(t *testing.T) {
	seen := grade.Look{Workloads: []grade.Workload{{Kind: "deployment", Name: "cart", Replicas: 1}}}
	well := grade.Look{Workloads: []grade.Workload{{Kind: "deployment", Name: "cart", Replicas: 1, Ready: 1}}}
	for _, c := range []struct {
		name   string
		look   grade.Look
		alarm  float64
		alerts error
		want   grade.Vitals
	}{
		{"no users, no alerts", seen, 0, errors.New("down"), grade.Vitals{Users: -1, Workloads: 0.5, Alerts: -1}},
		{"alerts only", grade.Look{}, 0.5, nil, grade.Vitals{Users: -1, Workloads: -1, Alerts: 0.5}},
		{"no workloads are left", grade.Look{Workloads: []grade.Workload{}}, 0, nil, grade.Vitals{Users: -1, Workloads: 0.5}},
	} {
		s := &sampler{
			baseline: well, look: func(context.Context) grade.Look { return c.look },
			alerts: func(context.Context) (float64, error) { return c.alarm, c.alerts },
		}
		if got := s.measure(t.Context()); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// While somebody else looks at the system, the sampler does not.
func TestSeverityLooksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := &sampler{
			look:   func(context.Context) grade.Look { looks++; return grade.Look{} },
			alerts: func(context.Context) (float64, error) { return 0, nil },
		}
		s.saw(grade.Look{Time: time.Now(), Workloads: []grade.Workload{}})
		time.Sleep(sampleInterval)
		if v := s.measure(t.Context()); v.Workloads != 0 || looks != 0 {
			t.Errorf("%+v after %d looks", v, looks)
		}
		time.Sleep(sampleInterval)
		if v := s.measure(t.Context()); v.Workloads != grade.Unseen || looks != 1 {
			t.Errorf("%+v after %d looks", v, looks)
		}
	})
}

// An API that hangs costs samples, not the run.
func TestSeverityHangs(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		s := Session{Problem: shopProblem(problem.Detection), Environment: w.Local, Results: results}
		l := s.Open(t.Context())
		if _, err := l.Briefing(t.Context()); err != nil {
			t.Fatal(err)
		}
		var hangs atomic.Bool
		hangs.Store(true)
		w.Before(func(r *http.Request) error {
			if hangs.Load() && strings.HasSuffix(r.URL.Path, "/deployments") {
				return hang(r.Context())
			}
			return nil
		})
		if _, err := w.Severity(t.Context()); err != nil {
			t.Errorf("users can be seen all the same: %v", err)
		}
		hangs.Store(false)
		if _, err := l.Step(t.Context(), agent.Call("submit", "Yes")); err != nil {
			t.Fatal(err)
		}
		if o, err := l.Wait(t.Context()); err != nil || o.Verdict.Class != Solved {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// A policy may say what counts how much.
func TestWeightsOfPolicy(t *testing.T) {
	for text, want := range map[string]grade.Weights{
		"": grade.DefaultWeights, "name: x": grade.DefaultWeights,
		"name: x\nseverity: {users: 2, workloads: 1}": {Users: 2, Workloads: 1},
	} {
		l := &Local{setting: Setting{Policy: []byte(text)}}
		if text == "" {
			l.setting.Policy = nil
		}
		if got := l.weights(); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
