package past_test

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/aiopslab/aiopslab/kit/past"
)

var join = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newPast(seed uint64) *past.Past {
	return past.New(seed, join.Add(-4*time.Second), join, past.Cast{})
}

// TestPastIsOfItsSeed holds that one seed has one past, whenever it is told, and another seed another.
func TestPastIsOfItsSeed(t *testing.T) {
	a, b := newPast(7), newPast(7)
	later := past.New(7, join.Add(time.Hour-4*time.Second), join.Add(time.Hour), past.Cast{})
	other := newPast(8)
	from := -3 * time.Hour
	x := a.Work(join.Add(from), join)
	if y := b.Work(join.Add(from), join); y != x {
		t.Errorf("%v and %v of one seed", x, y)
	}
	if y := later.Work(join.Add(time.Hour+from), join.Add(time.Hour)); math.Abs(y-x) > 1e-6 {
		t.Errorf("%v, and %v an hour later", x, y)
	}
	if y := other.Work(join.Add(from), join); y == x {
		t.Errorf("%v of two seeds", x)
	}
}

// TestWorkJoinsThePresent holds that there is no step in the load at the join, that there is a day in it, and
// that what was done only grows.
func TestWorkJoinsThePresent(t *testing.T) {
	for seed := range uint64(20) {
		p := newPast(seed)
		if x := p.Work(join.Add(-30*time.Second), join) / 30; math.Abs(x-1) > 0.05 {
			t.Errorf("seed %d: the load before the join is %.3f of that after it", seed, x)
		}
		low, high := math.Inf(1), 0.0
		for ago := time.Hour; ago <= past.Window; ago += time.Hour {
			x := p.Work(join.Add(-ago), join.Add(time.Hour-ago)) / 3600
			low, high = min(low, x), max(high, x)
		}
		if low <= 0.3 || high/low < 1.2 {
			t.Errorf("seed %d: the load is between %.2f and %.2f in a day", seed, low, high)
		}
		if a, b := p.Work(join.Add(-10*24*time.Hour), join), p.Work(join.Add(-9*24*time.Hour), join); a <= b {
			t.Errorf("seed %d: %v in ten days, %v in nine", seed, a, b)
		}
	}
}

// TestExcursionsAreOver holds that there were excursions in the last hours, of both kinds, and that none is left.
func TestExcursionsAreOver(t *testing.T) {
	for seed := range uint64(20) {
		kinds := map[past.Kind]bool{}
		for _, e := range newPast(seed).Excursions {
			if join.Sub(e.To) < 20*time.Minute {
				t.Errorf("seed %d: an excursion ended %v ago", seed, join.Sub(e.To))
			}
			if join.Sub(e.From) < 6*time.Hour {
				kinds[e.Kind] = true
			}
		}
		if !kinds[past.Surge] || !kinds[past.Slow] {
			t.Errorf("seed %d: only %v in the last six hours", seed, kinds)
		}
	}
}

// TestGathererCountsOn holds that what a program counts after it was told its past is added to what it would have
// counted before, and that a histogram stays one.
func TestGathererCountsOn(t *testing.T) {
	reg := prometheus.NewRegistry()
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "http_requests_total"})
	idle := prometheus.NewCounter(prometheus.CounterOpts{Name: "errors_total"})
	cpu := prometheus.NewCounter(prometheus.CounterOpts{Name: "process_cpu_seconds_total"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "http_request_duration_seconds", Buckets: []float64{0.1, 1, 2.5},
	})
	reg.MustRegister(requests, idle, cpu, took)
	for range 100 {
		requests.Inc()
		took.Observe(0.05)
	}
	cpu.Add(3)
	g := &past.Gatherer{Gatherer: reg}
	p := newPast(7)
	started := join.Add(-5 * time.Hour)
	if err := g.Age(p, started); err != nil {
		t.Fatal(err)
	}
	want := math.Floor(100 * p.Work(started, join) / 4)
	requests.Inc()
	got := gather(t, g)
	if v := got["http_requests_total"].Counter.GetValue(); math.Abs(v-want-1) > 2 {
		t.Errorf("%v requests, want %v", v, want+1)
	}
	if v := got["errors_total"].Counter.GetValue(); v != 0 {
		t.Errorf("%v errors of none", v)
	}
	if v := got["process_cpu_seconds_total"].Counter.GetValue(); v != 3 {
		t.Errorf("%v s of CPU: that is its container's to say", v)
	}
	h := got["http_request_duration_seconds"].Histogram
	last := uint64(0)
	for _, b := range h.Bucket {
		if b.GetCumulativeCount() < last {
			t.Errorf("%v", h)
		}
		last = b.GetCumulativeCount()
	}
	if last > h.GetSampleCount() || h.Bucket[0].GetCumulativeCount() >= h.GetSampleCount() {
		t.Errorf("no request was ever slow, or more than there were: %v", h)
	}
}

// TestGathererLooksAtTheUsualLoad holds that what was counted while an application became warm does not count, but for
// what is rare; and that failures of the start are not what always happens.
func TestGathererLooksAtTheUsualLoad(t *testing.T) {
	reg := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "http_requests_total"}, []string{"code", "handler"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took_seconds", Buckets: []float64{0.1, 1, 2.5}})
	reg.MustRegister(requests, took)
	often, rarely, failed := requests.WithLabelValues("200", "/often"), requests.WithLabelValues("200", "/rarely"),
		requests.WithLabelValues("500", "/often")
	for range 300 {
		often.Inc()
		took.Observe(2)
	}
	rarely.Inc()
	failed.Add(7)
	g := &past.Gatherer{Gatherer: reg}
	if err := g.Mark(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		often.Inc()
		took.Observe(0.05)
	}
	p := newPast(7)
	p.Began = join.Add(-10 * time.Second)
	started := join.Add(-5 * time.Hour)
	if err := g.Age(p, started); err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	life := p.Work(started, join)
	want := map[string]float64{"200/often": 100 * life / 4, "200/rarely": life / 10, "500/often": 7}
	for _, m := range families[0].Metric {
		name := m.Label[0].GetValue() + m.Label[1].GetValue()
		if v := m.Counter.GetValue(); math.Abs(v-want[name]) > 1 {
			t.Errorf("%s: %v, want %v", name, v, want[name])
		}
	}
	h := families[1].Metric[0].Histogram
	if fast := float64(h.Bucket[0].GetCumulativeCount()) / float64(h.GetSampleCount()); fast < 0.95 {
		t.Errorf("%.2f were as fast as they are now", fast)
	}
}

// TestGathererLives holds that what a program says to have counted before is added once, in all buckets, also to metrics
// that come later, and to nothing else.
func TestGathererLives(t *testing.T) {
	reg := prometheus.NewRegistry()
	rounds := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rounds_total"}, []string{"of"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took_seconds", Buckets: []float64{1, 10}}, []string{"of"})
	other := prometheus.NewCounter(prometheus.CounterOpts{Name: "other_total"})
	reg.MustRegister(rounds, took, other)
	rounds.WithLabelValues("a").Add(3)
	other.Inc()
	g := &past.Gatherer{Gatherer: reg}
	if err := g.Live(func(name string, _ *dto.Metric) (past.Lived, bool) {
		switch name {
		case "rounds_total":
			return past.Lived{Sum: 100}, true
		case "took_seconds":
			return past.Lived{Samples: 100, Sum: 500}, true
		}
		return past.Lived{}, false
	}); err != nil {
		t.Fatal(err)
	}
	rounds.WithLabelValues("a").Inc()
	took.WithLabelValues("a").Observe(0.5)
	for range 2 {
		got := gather(t, g)
		if v := got["rounds_total"].Counter.GetValue(); v != 101 {
			t.Errorf("%v rounds, want 101", v)
		}
		if v := got["other_total"].Counter.GetValue(); v != 1 {
			t.Errorf("%v others, want 1", v)
		}
		h := got["took_seconds"].Histogram
		if h.GetSampleCount() != 101 || h.GetSampleSum() != 500.5 || h.Bucket[0].GetCumulativeCount() != 1 ||
			h.Bucket[1].GetCumulativeCount() != 101 {
			t.Errorf("it took %v", h)
		}
	}
}

// TestYoungProgramHasNoPast holds that a program which was started after the load began only tells what it knows.
func TestYoungProgramHasNoPast(t *testing.T) {
	reg := prometheus.NewRegistry()
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "http_requests_total"})
	reg.MustRegister(requests)
	requests.Add(5)
	g := &past.Gatherer{Gatherer: reg}
	if err := g.Age(newPast(7), join.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if v := gather(t, g)["http_requests_total"].Counter.GetValue(); v != 5 {
		t.Errorf("%v requests, want 5", v)
	}
}

func gather(t *testing.T, g prometheus.Gatherer) map[string]*dto.Metric {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.Metric{}
	for _, f := range families {
		all[f.GetName()] = f.Metric[0]
	}
	return all
}
