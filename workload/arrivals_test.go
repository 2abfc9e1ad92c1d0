package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// take returns the arrivals until a time.
func take(a *Arrivals, seed uint64, until time.Duration) (list []time.Duration) {
	s := a.source(seed)
	for {
		x, ok := s.next()
		if !ok || x.At >= until {
			return list
		}
		list = append(list, x.At)
	}
}

// moments returns the mean of the gaps in seconds and their coefficient of variation.
func moments(list []time.Duration) (mean, variation float64) {
	var sum, squares float64
	last := time.Duration(0)
	for _, t := range list {
		g := (t - last).Seconds()
		last = t
		sum += g
		squares += g * g
	}
	n := float64(len(list))
	mean = sum / n
	return mean, math.Sqrt(squares/n-mean*mean) / mean
}

func TestEvenArrivals(t *testing.T) {
	got := take(&Arrivals{Process: Even, Rate: Constant(10)}, 1, 3*time.Hour)
	if len(got) != 3*36000-1 {
		t.Fatalf("%d arrivals", len(got))
	}
	for i, at := range got { // Exact, also after many.
		if want := time.Duration(i+1) * 100 * time.Millisecond; at != want {
			t.Fatalf("arrival %d at %v, want %v", i, at, want)
		}
	}
}

// The figures are for these seeds, and hold for any with a bound of four standard errors.
func TestDistributions(t *testing.T) {
	const n = 30_000.0
	tests := []struct {
		process   Process
		variation float64
	}{{Even, 0}, {Normal, deviation}, {Exponential, 1}, {"", 1}}
	for _, tt := range tests {
		for seed := range uint64(3) {
			list := take(&Arrivals{Process: tt.process, Rate: Constant(100)}, seed, 300*time.Second)
			mean, variation := moments(list)
			bound := 4 * max(tt.variation, 1e-3) / math.Sqrt(n)
			if !near(mean, 0.01, bound) || math.Abs(variation-tt.variation) > 4*bound {
				t.Errorf("%q, seed %d: gaps of mean %g, variation %g", tt.process, seed, mean, variation)
			}
		}
	}
}

// A Poisson process has as many arrivals in a time as the rate gives, with that as variance, however
// the rate changes. Kolmogorov and Smirnov's distance bounds the whole distribution of times.
func TestPoissonFollowsRate(t *testing.T) {
	docs := []string{
		"50", "{ramp: {from: 0, to: 100}, for: 1000s}", "{daily: {mean: 50, amplitude: 1, period: 100s}}",
		"{burst: {base: 10, peak: 500, every: 100s, lasting: 10s}}", "{step: {from: 100, to: 0, by: 10, every: 90s}}",
	}
	for _, doc := range docs {
		r := parseRate(t, doc)
		list := take(&Arrivals{Rate: r}, 7, 1000*time.Second)
		want := r.Count(1000 * time.Second)
		if math.Abs(float64(len(list))-want) > 4*math.Sqrt(want) {
			t.Errorf("%s: %d arrivals, want about %g", doc, len(list), want)
		}
		distance := 0.0
		for i, at := range list {
			distance = max(distance, math.Abs(r.Count(at)/want-float64(i)/float64(len(list))))
		}
		if bound := 1.63 / math.Sqrt(want); distance > bound { // 1 % level
			t.Errorf("%s: distance %g > %g", doc, distance, bound)
		}
	}
}

func TestSeeds(t *testing.T) {
	a := &Arrivals{Rate: Constant(100)}
	if !slices.Equal(take(a, 1, time.Minute), take(a, 1, time.Minute)) {
		t.Error("the same seed gives other times")
	}
	if slices.Equal(take(a, 1, time.Minute), take(a, 2, time.Minute)) {
		t.Error("another seed gives the same times")
	}
}

func TestReadTrace(t *testing.T) {
	want := []Arrival{{0, "a"}, {250 * time.Millisecond, "b"}, {250 * time.Millisecond, ""}, {90 * time.Second, "a"}}
	docs := []string{
		"time,operation\n10,a\n10.25,b\n10.25,\n100,a\n",
		"status,Operation,Time\n200,a,0s\n200,b,250ms\n200,,0.25s\n200,a,1m30s\n",
		"time,operation\n2026-01-02T15:04:05Z,a\n2026-01-02T15:04:05.25Z,b\n2026-01-02T16:04:05.25+01:00,\n2026-01-02 15:05:35,a\n",
		"\n{\"time\":5,\"operation\":\"a\"}\n{\"time\":5.25,\"operation\":\"b\",\"x\":1}\n\n{\"time\":\"5.25s\"}\n{\"time\":95,\"operation\":\"a\"}",
	}
	for _, doc := range docs {
		got, err := ReadTrace(strings.NewReader(doc))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", doc, got, err)
		}
	}
	for doc, want := range map[string]string{
		"when,what\n1,a":               `the header "when,what" has no column "time"`,
		"time\n2\n1":                   "line 3: time 1 is before the one above; sort the trace",
		"time\nsoon":                   `line 2: time "soon" is neither seconds, nor a duration, nor a date`,
		"{\"time\":1}\n{\"tim\":2}":    `line 2: "time" is missing`,
		"{\"time\":1e300}":             "line 1: time 1e300 is out of range",
		"time,operation\n1,a\n2,b,c\n": "record on line 3: wrong number of fields",
	} {
		if _, err := ReadTrace(strings.NewReader(doc)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", doc, err, want)
		}
	}
}

func TestReplay(t *testing.T) {
	r := &Replay{Trace: "time,operation\n1,a\n2,b\n4,c\n", Speed: 2}
	if p := r.problems(); p != nil {
		t.Fatal(p)
	}
	s := (&Arrivals{Replay: r}).source(1)
	var got []Arrival
	for range 5 {
		a, _ := s.next()
		got = append(got, a)
	}
	ms := time.Millisecond
	// The gap before the next round is that of an average request: 1.5 s of the trace.
	want := []Arrival{{0, "a"}, {500 * ms, "b"}, {1500 * ms, "c"}, {2250 * ms, "a"}, {2750 * ms, "b"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReplayBounds(t *testing.T) {
	for _, tt := range []struct {
		name      string
		times     string
		speed     float64
		low, high float64 // in 5 s
	}{
		{"even", "0 1 2 3 4 5 6 7 8 9", 0, 5, 5},
		{"even, twice as fast", "0 1 2 3 4 5 6 7 8 9", 2, 10, 10},
		{"a round is shorter than the window", "0 0.5", 0, 10, 10},
		{"quiet in the middle", "0 1 2 3 4 20 21 22 23 24", 0, 0, 5},
		{"quiet over the end", "0 0.1 0.2 0.3 30", 0, 0, 4},
		{"many at once", "0 1 1 1 1 1 1 2 3 4 5 6", 0, 5, 11},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Replay{Trace: "time\n" + strings.ReplaceAll(tt.times, " ", "\n"), Speed: tt.speed}
			if p := r.problems(); p != nil {
				t.Fatal(p)
			}
			low, high := r.bounds()
			if math.Abs(low*5-tt.low) > 1e-9 || math.Abs(high*5-tt.high) > 1e-9 {
				t.Errorf("%g to %g requests in 5 s, want %g to %g", low*5, high*5, tt.low, tt.high)
			}
			// Whatever the trace is, nothing lies outside the bounds.
			s := (&Arrivals{Replay: r}).source(1)
			var times []time.Duration
			for range 200 {
				a, _ := s.next()
				times = append(times, a.At)
			}
			for from := time.Duration(0); from < times[len(times)-1]-2*boundWindow; from += 37 * time.Millisecond {
				n := 0.0
				for _, at := range times {
					if at >= from && at < from+boundWindow {
						n++
					}
				}
				if n < tt.low || n > tt.high {
					t.Fatalf("%g requests in 5 s from %v", n, from)
				}
			}
		})
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("time,operation\n10,a\n10.25,b\n")
	f.Add("{\"time\":5,\"operation\":\"a\"}\n")
	f.Add("time\n2026-01-02T15:04:05Z\n")
	f.Fuzz(func(t *testing.T, doc string) {
		list, err := ReadTrace(strings.NewReader(doc))
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(list, func(a, b Arrival) int { return int(a.At - b.At) }) {
			t.Errorf("not sorted: %v", list)
		}
	})
}
