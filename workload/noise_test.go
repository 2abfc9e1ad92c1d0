package workload

import (
	"math"
	"testing"
	"time"
)

// Any shape can have noise. It comes from the seed alone, stays within the bounds, and is off by as much as it says.
func TestNoise(t *testing.T) {
	ten := 10.0
	shapes := map[string]Rate{
		"constant": {{Constant: &ten}},
		"ramp":     {{Ramp: &Ramp{From: 10, To: 60}, For: 5 * time.Minute}, {Constant: &ten}},
		"step":     {{Step: &Step{From: 10, To: 60, By: 10, Every: 20 * time.Second}}},
		"daily":    {{Daily: &Daily{Mean: 50, Amplitude: 0.5, Period: 3 * time.Minute}}},
		"burst":    {{Burst: &Burst{Base: 10, Peak: 60, Every: time.Minute, Lasting: 10 * time.Second}}},
	}
	for name, rate := range shapes {
		a := &Arrivals{Rate: rate, Process: Even, Noise: 0.2}
		if p := a.problems(); len(p) > 0 {
			t.Fatal(p)
		}
		low, high := a.Bounds()
		const intervals = 120
		count := func(a *Arrivals, seed uint64) (list [intervals]float64) {
			src := a.source(seed)
			last := time.Duration(-1)
			for {
				next, ok := src.next()
				if !ok || next.At >= intervals*noiseEvery {
					return list
				}
				if next.At < last {
					t.Fatalf("%s: %v after %v", name, next.At, last)
				}
				last = next.At
				list[next.At/noiseEvery]++
			}
		}
		plain, noisy := count(&Arrivals{Rate: rate, Process: Even}, 1), count(a, 1)
		if again := count(a, 1); again != noisy {
			t.Errorf("%s: one seed gives two loads", name)
		}
		if other := count(a, 2); other == noisy {
			t.Errorf("%s: two seeds give one load", name)
		}
		var sum, squares float64
		for i := range noisy {
			perSecond := noisy[i] / noiseEvery.Seconds()
			if slack := 2 / noiseEvery.Seconds(); perSecond < low-slack || perSecond > high+slack {
				t.Errorf("%s: %g requests/s, not within %g and %g", name, perSecond, low, high)
			}
			off := noisy[i]/plain[i] - 1
			sum, squares = sum+off, squares+off*off
		}
		mean := sum / intervals
		if sigma := math.Sqrt(squares/intervals - mean*mean); math.Abs(mean) > 0.06 || sigma < 0.14 || sigma > 0.26 {
			t.Errorf("%s: off by %g in the mean, with a standard deviation of %g", name, mean, sigma)
		}
	}
}

// A load that ends does so with noise, too.
func TestNoiseEnds(t *testing.T) {
	ten := 10.0
	src := (&Arrivals{Rate: Rate{{Constant: &ten, For: 12 * time.Second}}, Noise: 0.3}).source(3)
	n := 0
	for a, ok := src.next(); ok; a, ok = src.next() {
		if n++; a.At > 12*time.Second || n > 1000 {
			t.Fatalf("request %d at %v", n, a.At)
		}
	}
	if n < 60 {
		t.Errorf("%d requests", n)
	}
}

// What stays zero is not looked through for a hundred years.
func TestNoiseOfNothing(t *testing.T) {
	ten, none := 10.0, 0.0
	for _, rate := range []Rate{Constant(0), {{Constant: &ten, For: 7 * time.Second}, {Constant: &none}}} {
		src := (&Arrivals{Rate: rate, Noise: 0.3}).source(3)
		for n := 0; ; n++ {
			if _, ok := src.next(); !ok {
				break
			} else if n > 1000 {
				t.Fatal("it does not end")
			}
		}
	}
}

// Surges come once in each of their times, at moments that are the seed's, on top of any shape.
func TestSurges(t *testing.T) {
	a := &Arrivals{Rate: Constant(20), Process: Even, Surges: &Surges{Factor: 5, Every: time.Minute, Lasting: 6 * time.Second}}
	if _, high := a.Bounds(); high != 100 {
		t.Errorf("at most %g", high)
	}
	moments := map[int]bool{}
	src := a.source(7)
	var perSecond [600]int
	for next, _ := src.next(); next.At < 10*time.Minute; next, _ = src.next() {
		perSecond[next.At/time.Second]++
	}
	for minute := range 10 {
		crowded := 0
		for s, n := range perSecond[60*minute : 60*minute+60] {
			if n > 50 {
				if crowded == 0 {
					moments[s] = true
				}
				crowded++
			}
		}
		if crowded < 5 || crowded > 7 {
			t.Errorf("minute %d: %d crowded seconds", minute, crowded)
		}
	}
	if len(moments) < 4 {
		t.Errorf("they always come at %v", moments)
	}
	for _, s := range []Surges{{0.5, time.Minute, time.Second}, {3, time.Second, time.Second}, {3, time.Minute, time.Millisecond}, {math.NaN(), time.Minute, time.Second}} {
		if p := (&Arrivals{Rate: Constant(10), Surges: &s}).problems(); len(p) != 1 {
			t.Errorf("%+v: %v", s, p)
		}
	}
}

func TestNoiseProblems(t *testing.T) {
	for _, sigma := range []float64{-0.1, 0.5, math.NaN(), math.Inf(1)} {
		if p := (&Arrivals{Rate: Constant(10), Noise: sigma}).problems(); len(p) != 1 || p[0].Path[0] != "noise" {
			t.Errorf("%g: %v", sigma, p)
		}
	}
	if p := (&Arrivals{Replay: &Replay{Trace: "time\n0\n1\n"}, Noise: 0.1}).problems(); len(p) != 1 {
		t.Errorf("%v", p)
	}
}
