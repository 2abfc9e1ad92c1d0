package classic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// With one variable the threshold is K; with many, chance evens out, and less is an anomaly.
func TestMonteCarlo(t *testing.T) {
	for _, tt := range []struct {
		variables int
		low, high float64
	}{
		{1, 2.8, 3.2},
		{10, 1.3, 1.6},
		{100, 0.9, 1.1},
	} {
		if got := monteCarlo(rand.New(rand.NewPCG(seed, 0)), tt.variables); got < tt.low || got > tt.high {
			t.Errorf("%d variables: %.2f, want %.1f to %.1f", tt.variables, got, tt.low, tt.high)
		}
	}
}

// span makes a span of a trace that begins at a second.
func aSpan(second int64, id, parent, service string, seconds float64, failed bool) span {
	return span{second, fmt.Sprint(second, id), fmt.Sprint(second, parent), service, "call", seconds, failed}
}

// Who waits for a slow service, or passes a failure on, has no part in it.
func TestOwnSignals(t *testing.T) {
	healthy := &telemetry{from: time.Unix(0, 0), to: time.Unix(5, 0)}
	for s := range int64(5) {
		healthy.spans = append(healthy.spans, aSpan(s, "a", "", "front", 1.1, true), aSpan(s, "b", "a", "back", 1, true))
	}
	want := map[signal][]float64{
		{"front", ownTail}: {0.1}, {"front", ownFailures}: {0},
		{"back", ownTail}: {1}, {"back", ownFailures}: {1},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, healthy.ownSignals().values, near); diff != "" {
		t.Error(diff)
	}
}

// The tail is what users wait for: one slow request in ten is seen, although the mean hardly moves.
func TestOwnTail(t *testing.T) {
	tel := &telemetry{from: time.Unix(0, 0), to: time.Unix(5, 0)}
	for i := range 10 {
		tel.spans = append(tel.spans, aSpan(1, fmt.Sprint(i), "", "s", []float64{2, 0.01}[min(i, 1)], false))
	}
	if got := tel.ownSignals().of("s", ownTail)[0]; got != 2 {
		t.Errorf("the tail is %v", got)
	}
}

func TestDetectors(t *testing.T) {
	metric := signal{"s", "container_threads"}
	twoModes := []float64{10, 10, 11, 10, 90, 91, 90, 90}
	for _, tt := range []struct {
		name    string
		p       pair
		x       float64
		density bool
		average bool
	}{
		{"as usual", pair{signal: metric, healthy: []float64{10, 10, 11, 10}}, 10, false, false},
		{"far out", pair{signal: metric, healthy: []float64{10, 10, 11, 10}}, 30, true, true},
		{"far below", pair{signal: metric, healthy: []float64{30, 30, 31, 30}}, 1, true, false},
		{"one of two modes", pair{signal: metric, healthy: twoModes}, 91, false, false},
		{"beyond both modes", pair{signal: metric, healthy: twoModes}, 300, true, true},
		// Four a second is usual of late, though not in the mean of the minute.
		{"growing", pair{signal: signal{"s", alarmRate}, healthy: []float64{0, 0, 0, 0, 4, 4, 4, 4}}, 5, true, false},
		{"a tenth of a second", pair{signal: signal{"s", ownTail}, healthy: []float64{0.01, 0.01}}, 0.1, false, true},
	} {
		if got := density(tt.p, tt.x) < tail; got != tt.density && isMetric(tt.p.name) {
			t.Errorf("%s: by density: %v", tt.name, got)
		}
		if got := aboveAverage(tt.p, tt.x); got != tt.average {
			t.Errorf("%s: above the average: %v", tt.name, got)
		}
	}
	if got := weightedAverage([]float64{0, 0, 6}); got != 3 {
		t.Errorf("the average of 0, 0, 6 is %v; the last of three weighs half", got)
	}
}

func TestElect(t *testing.T) {
	votes := func(n int, from source, service string, names ...string) (list []vote) {
		for _, name := range names {
			for i := range n {
				list = append(list, vote{i, from, signal{service, name}})
			}
		}
		return list
	}
	for _, tt := range []struct {
		name  string
		queue []vote
		want  []string
	}{
		{"nobody", nil, nil},
		{"the most votes", slices.Concat(votes(6, fromTraces, "a", "x"), votes(4, fromTraces, "b", "x")), []string{"a", "b"}},
		{"a series of few votes is not heard", votes(2, fromLogs, "a", "x"), nil},
		{"two metrics are none", votes(6, fromMetrics, "a", "x", "y"), nil},
		{"three are", votes(6, fromMetrics, "a", "x", "y", "z"), []string{"a"}},
		{
			"many metrics weigh as much as one log",
			slices.Concat(votes(6, fromMetrics, "a", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
				votes(3, fromLogs, "b", "x"), votes(3, fromTraces, "b", "x")),
			[]string{"b", "a"},
		},
	} {
		if diff := cmp.Diff(tt.want, elect(tt.queue)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Votes are in the order of time, whatever they are of.
func TestVoteQueue(t *testing.T) {
	healthy, now := system{3, "geo", "failing"}.telemetry(t)
	queue := voteQueue(healthy, now)
	sources := map[source]bool{}
	for i, v := range queue {
		sources[v.source] = true
		if i > 0 && v.tick < queue[i-1].tick {
			t.Fatalf("a vote of tick %d after one of %d", v.tick, queue[i-1].tick)
		}
	}
	if !sources[fromLogs] || !sources[fromTraces] {
		t.Errorf("votes are of %v", sources)
	}
	// What is gone is an anomaly of its metrics, which fell.
	healthy, now = system{4, "mongodb-geo", "gone"}.telemetry(t)
	if !slices.ContainsFunc(voteQueue(healthy, now), func(v vote) bool { return v.source == fromMetrics && v.service == "mongodb-geo" }) {
		t.Error("no metric votes for what is gone")
	}
}

func TestDrain(t *testing.T) {
	d := &drain{}
	lines := []string{
		"request 17 served in 200 us",
		"request 18 served in 5000 us",     // other numbers
		"user alice logged in from berlin", // a new one
		"user bob logged in from paris",    // other names: most words are the same, the second is not
		"request 17: error: not authorized",
		"cache miss for key red of user bob",
		"cache miss for key blue of user eve",
	}
	var got []int
	for _, l := range lines {
		got = append(got, d.key("s", l))
	}
	if diff := cmp.Diff([]int{0, 0, 1, 2, 3, 4, 4}, got); diff != "" {
		t.Error(diff)
	}
	if d.key("other", lines[0]) == 0 {
		t.Error("the templates of two services are one")
	}
	for i := range 10 * drainTemplates { // Words at random do not fill memory.
		d.key("s", fmt.Sprintf("a b %s %s %s", word(i), word(i+1), word(i+2)))
	}
	if n := d.n; n > drainTemplates+6 {
		t.Errorf("%d templates", n)
	}
}

// word is a word without digits.
func word(n int) string {
	return string(rune('a'+n%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n/676))
}

// logs are lines of a service, one a second.
func logs(from int64, lines ...string) *telemetry {
	t := &telemetry{from: time.Unix(from, 0), to: time.Unix(from+int64(len(lines)), 0)}
	for i, l := range lines {
		t.lines = append(t.lines, line{from + int64(i), "s", l})
	}
	return t
}

func repeat(n int, lines ...string) []string { return slices.Repeat(lines, n) }

func TestLogScores(t *testing.T) {
	healthy := logs(0, repeat(12, "begin", "read", "write", "end", "idle")...)
	for _, tt := range []struct {
		name    string
		now     *telemetry
		unusual bool
	}{
		{"as before", logs(60, repeat(6, "begin", "read", "write", "end", "idle")...), false},
		// Only the sequence tells: each tick has one line of each kind.
		{"another order", logs(60, repeat(6, "end", "write", "idle", "read", "begin")...), true},
		// Only the numbers tell: every line follows one that it may follow.
		{"silence", &telemetry{from: time.Unix(60, 0), to: time.Unix(90, 0)}, true},
		{"a new kind", logs(60, repeat(6, "begin", "read", "disk full", "end", "idle")...), true},
	} {
		before, after := logScores(healthy, tt.now)
		if len(before) != 12 || len(after) != 6 || math.Abs(median(before)) > 1 {
			t.Fatalf("%s: %v, %v", tt.name, before, after)
		}
		limit := unusual * math.Hypot(sequenceWeight, 1-sequenceWeight)
		if got := median(after) > limit; got != tt.unusual {
			t.Errorf("%s: %v, the limit is %.2f", tt.name, after, limit)
		}
	}
}

func TestInformation(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var x, linear, square, other []float64
	for range 200 {
		v := r.NormFloat64()
		x, linear = append(x, v), append(linear, 3-2*v+0.01*r.NormFloat64())
		square, other = append(square, v*v), append(other, r.NormFloat64())
	}
	for _, tt := range []struct {
		name      string
		y         []float64
		low, high float64
	}{
		{"linear", linear, 3, 10},
		{"a square, which has no correlation", square, 1.5, 10},
		{"independent", other, 0, 0.15},
		{"constant", make([]float64, 200), 0, 0},
	} {
		if got := information(x, tt.y); got < tt.low || got > tt.high {
			t.Errorf("%s: %.2f bits, want %.1f to %.1f", tt.name, got, tt.low, tt.high)
		}
	}
	if got := information([]float64{1, 2}, []float64{1, 2}); got != 0 {
		t.Errorf("two points tell %v bits", got)
	}
}

// Without augmentation, a few points of a metric that has nothing to do with the score seem to tell about it.
func TestAugment(t *testing.T) {
	score := []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 5}
	with := make([]float64, len(score))
	for i, s := range score {
		with[i] = 100 + 3*s
	}
	without := []float64{9, 1, 8, 2, 7, 3, 6, 4, 9, 1, 8, 2, 7, 3, 6, 4, 9, 1}
	if a, b := lagged(score, with, 0), lagged(score, without, 0); a < b+0.3 {
		t.Errorf("%.2f bits of one that goes with it, %.2f of one that does not", a, b)
	}
	if later := append([]float64{100, 100}, with[:16]...); lagged(score, later, 2) < lagged(score, later, 0) {
		t.Error("a metric that is late tells less if that is known")
	}
	if got := augment(rand.New(rand.NewPCG(1, 1)), score); len(got) != copies*len(score) || math.Abs(mean(got)-mean(score)) > 0.5 {
		t.Errorf("%d points with the mean %.2f", len(got), mean(got))
	}
}

// Of metrics, those that did not change are none. The one that changed along with the logs comes before one that changed
// more at other times, and of two that did so equally the one that changed more.
func TestRootMetric(t *testing.T) {
	healthy := logs(0, repeat(12, "begin", "read", "write", "end", "idle")...)
	now := logs(60, repeat(6, "begin", "disk full", "disk full", "disk full", "idle")...)
	for service, values := range map[string][2][]float64{
		"same":      {{10}, {10}},
		"at random": {{10}, {10, 300}},
		"along":     {{10}, {40}},
		"most":      {{10}, {60}},
	} {
		for i, tel := range []*telemetry{healthy, now} {
			for tick := range tel.ticks() + 1 {
				at := tel.from.Unix() + 5*int64(tick)
				tel.samples = append(tel.samples, sample{at, service + "-0", service, "container_threads", values[i][tick%len(values[i])]})
			}
		}
	}
	if diff := cmp.Diff([]string{"most", "along", "at random"}, rmlad(healthy, now)); diff != "" {
		t.Error(diff)
	}
}
