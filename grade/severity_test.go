package grade

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/workload"
)

// served is a window in which so many of a hundred requests were served, each within a time.
func servedWindow(success float64, p95 time.Duration, rate, wanted float64) workload.Window {
	return workload.Window{
		Covered: 5 * time.Second, Wanted: wanted,
		Total: workload.SLI{Requests: 100, Success: success, P95: p95, Rate: rate},
	}
}

func TestUnserved(t *testing.T) {
	well := servedWindow(1, 100*time.Millisecond, 20, 20)
	for _, c := range []struct {
		name     string
		baseline workload.Window
		now      workload.Window
		want     float64
	}{
		{"as ever", well, well, 0},
		{"a quarter fails", well, servedWindow(0.75, 100*time.Millisecond, 20, 20), 0.25},
		// No verdict complains up to three times 100 ms and 300 ms more.
		{"as slow as allowed", well, servedWindow(1, 600*time.Millisecond, 20, 20), 0},
		{"twice as slow as allowed", well, servedWindow(1, 1200*time.Millisecond, 20, 20), 0.5},
		{"a quarter fails, the rest is slow", well, servedWindow(0.75, 1200*time.Millisecond, 20, 20), 0.625},
		{"half of them wait", well, servedWindow(1, 100*time.Millisecond, 7, 20), 0.5},
		{"fewer, but within what is allowed", well, servedWindow(1, 100*time.Millisecond, 15, 20), 0},
		{"all of them wait", well, workload.Window{Covered: 5 * time.Second, Wanted: 20}, 1},
		{"nobody comes", well, workload.Window{Covered: 5 * time.Second}, Unseen},
		{
			"a hundredth always failed", servedWindow(0.99, 100*time.Millisecond, 20, 20),
			servedWindow(0.98, 100*time.Millisecond, 20, 20), 0.01,
		},
		{"better than ever", servedWindow(0.98, 100*time.Millisecond, 20, 20), well, 0},
	} {
		if got := Unserved(c.baseline, c.now); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUnready(t *testing.T) {
	well := []Workload{
		{Kind: "deployment", Name: "geo", Replicas: 2, Ready: 2},
		{Kind: "deployment", Name: "rate", Replicas: 1, Ready: 1},
		{Kind: "deployment", Name: "fn", Replicas: 1, Ready: 1, Elastic: true},
	}
	for _, c := range []struct {
		name      string
		geo, rate int // ready
		gone      bool
		want      float64
	}{
		{"all ready", 2, 1, false, 0},
		{"more than before", 5, 1, false, 0},
		{"one of two replicas", 1, 1, false, 1 - 1/math.Sqrt2},
		{"one workload", 2, 0, false, 0.5},
		{"two workloads", 0, 0, false, 0.75},
		{"one workload is gone, and its name is another's", 2, 1, true, 0.5},
	} {
		now := []Workload{
			{Kind: "deployment", Name: "geo", Replicas: 2, Ready: c.geo}, {Kind: "deployment", Name: "rate", Replicas: 1, Ready: c.rate},
		}
		if c.gone {
			now[1].Kind = "statefulset"
		}
		if got := Unready(well, now); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSeverity(t *testing.T) {
	for _, c := range []struct {
		name   string
		vitals Vitals
		want   float64
		known  bool
	}{
		{"well", Vitals{}, 0, true},
		{"as bad as can be", Vitals{1, 1, 1}, 1, true},
		{"half of the users, one workload, one critical alert", Vitals{0.5, 0.5, Alarm([]string{"critical"})}, 0.5, true},
		{"users only", Vitals{Users: 0.5}, 0.3, true},
		{"two alerts that are not critical", Vitals{Alerts: Alarm([]string{"warning", ""})}, 0.075, true},
		{"nobody can read the alerts", Vitals{0.17, 0, Unseen}, 0.12, true}, // 0.6 × 0.17 / 0.85
		{"nobody can see anything", Vitals{Unseen, Unseen, Unseen}, 0, false},
	} {
		got, known := DefaultWeights.Severity(c.vitals)
		if math.Abs(got-c.want) > 1e-9 || known != c.known {
			t.Errorf("%s: %v, %v, want %v, %v", c.name, got, known, c.want, c.known)
		}
	}
	if _, known := (Weights{Alerts: 1}).Severity(Vitals{Users: 1, Alerts: Unseen}); known {
		t.Error("what has no weight makes a severity known")
	}
}

// Severity is in its range and never falls when a part gets worse, whatever the weights are.
func TestSeverityRises(t *testing.T) {
	part := rapid.Float64Range(0, 1)
	rapid.Check(t, func(t *rapid.T) {
		w := Weights{part.Draw(t, "wU"), part.Draw(t, "wW"), 0.1 + part.Draw(t, "wA")}
		v := Vitals{part.Draw(t, "users"), part.Draw(t, "workloads"), part.Draw(t, "alerts")}
		worse := v
		worse.Users += (1 - v.Users) * part.Draw(t, "more")
		worse.Workloads += (1 - v.Workloads) * part.Draw(t, "more")
		a, _ := w.Severity(v)
		b, _ := w.Severity(worse)
		if a < 0 || b > 1+1e-9 || b < a-1e-9 {
			t.Fatalf("%v: %v, %v: %v", v, a, worse, b)
		}
	})
}

func TestCourse(t *testing.T) {
	c := Course{Weights: DefaultWeights}
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c.Add(begin, Vitals{})
	c.Add(begin.Add(time.Second), Vitals{Unseen, Unseen, Unseen})
	c.Add(begin.Add(2003*time.Millisecond), Vitals{0.50049, 0, 0})
	want := []Point{
		{begin, Vitals{}, 0, DefaultWeights},
		{begin.Add(2003 * time.Millisecond), Vitals{0.5, 0, 0}, 0.3, DefaultWeights},
	}
	if diff := cmp.Diff(want, c.Points()); diff != "" {
		t.Error(diff)
	}
	c.Alerts = c.Alerts[:1] // as of a record that somebody has cut
	if diff := cmp.Diff(want[:1], c.Points()); diff != "" {
		t.Error(diff)
	}
}
