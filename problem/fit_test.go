package problem

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/workload"
)

// Days of a web site become minutes of a run that a problem can have.
func TestFitLoad(t *testing.T) {
	c := &workload.Counts{Interval: 10 * time.Minute}
	for i := range 432 { // three days
		c.Requests = append(c.Requests, 600*3000*(1+0.9*math.Cos(2*math.Pi*float64(i)/144)))
	}
	f, err := FitLoad(c, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := f.Load.Rate[0].Daily
	if d == nil || d.Mean != 50 || d.Period < 9*time.Minute || d.Period > 11*time.Minute || math.Abs(d.Amplitude-0.9) > 0.05 {
		t.Errorf("%+v", d)
	}
	if text := strings.Join(f.Notes, "\n"); !strings.Contains(text, "of the trace are 10m0s here") || !strings.Contains(text, "requests/s of the trace are 50 here") {
		t.Error(text)
	}
	if f, err = FitLoad(c, 3*time.Minute, 2); err != nil || f.Load.Rate[0].Daily.Amplitude > 0.5 {
		t.Errorf("%+v, %v", f.Load.Rate[0].Daily, err)
	}
	for _, wrong := range []struct {
		period time.Duration
		mean   float64
	}{{2 * time.Hour, 0}, {-1, 0}, {0, -3}, {0, 5000}, {0, math.NaN()}} {
		if _, err := FitLoad(c, wrong.period, wrong.mean); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// Whatever the trace, what is fitted to it can be the load of a problem.
func TestFittedMakesSense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &workload.Counts{
			Interval: time.Duration(rapid.Int64Range(1e8, 1e13).Draw(t, "interval")),
			Requests: rapid.SliceOfN(rapid.Float64Range(0, 1e5), 8, 60).Draw(t, "requests"),
		}
		f, err := FitLoad(c, 0, 0)
		if err != nil {
			if !strings.Contains(err.Error(), "no requests") {
				t.Fatal(err)
			}
			return
		}
		s := f.Load.Spec(nil)
		if wrong := append(workload.Problems(s.Arrivals, s.Users, nil), f.Load.senseless()...); len(wrong) > 0 {
			t.Fatalf("%+v: %v", f.Load.Rate[0], wrong)
		}
	})
}
