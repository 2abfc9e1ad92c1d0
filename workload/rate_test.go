package workload

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/internal/strict"
)

func parseRate(t testing.TB, doc string) Rate {
	t.Helper()
	var r Rate
	if err := strict.Decode("rate", []byte(doc), &r); err != nil {
		t.Fatal(err)
	}
	if p := r.problems(); p != nil {
		t.Fatal(p)
	}
	return r
}

func TestRates(t *testing.T) {
	type point struct {
		t         time.Duration
		at, count float64
	}
	tests := []struct {
		name, doc string
		points    []point
	}{
		{"constant", "100", []point{{0, 100, 0}, {time.Second, 100, 100}, {time.Hour, 100, 360000}}},
		{"ramp", "{ramp: {from: 0, to: 100}, for: 10s}", []point{{0, 0, 0}, {5 * time.Second, 50, 125}, {10 * time.Second, 0, 500}, {time.Hour, 0, 500}}},
		{"step", "{step: {from: 10, to: 25, by: 10, every: 1m}}", []point{
			{0, 10, 0}, {90 * time.Second, 20, 1200}, {2 * time.Minute, 25, 1800}, {5 * time.Minute, 25, 6300},
		}},
		{"step down", "{step: {from: 20, to: 0, by: 10, every: 1s}}", []point{{0, 20, 0}, {1500 * time.Millisecond, 10, 25}, {9 * time.Second, 0, 30}}},
		{"daily", "{daily: {mean: 10, amplitude: 0.5, peak: 12h}}", []point{{0, 5, 0}, {12 * time.Hour, 15, 432000}, {24 * time.Hour, 5, 864000}}},
		{"short days", "{daily: {mean: 10, amplitude: 1, peak: 5s, period: 10s}}", []point{{0, 0, 0}, {5 * time.Second, 20, 50}, {20 * time.Second, 0, 200}}},
		{"burst", "{burst: {base: 10, peak: 110, every: 1m, lasting: 10s, after: 30s}}", []point{
			{0, 10, 0}, {30 * time.Second, 110, 300}, {35 * time.Second, 110, 850}, {time.Minute, 10, 1600}, {95 * time.Second, 110, 2450},
		}},
		{"phases", "[{constant: 10, for: 10s}, {ramp: {from: 10, to: 30}, for: 10s}, {constant: 5}]", []point{
			{5 * time.Second, 10, 50}, {10 * time.Second, 10, 100}, {20 * time.Second, 5, 300}, {30 * time.Second, 5, 350},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := parseRate(t, tt.doc)
			for _, p := range tt.points {
				if at, count := r.At(p.t), r.Count(p.t); math.Abs(at-p.at) > 1e-6 || math.Abs(count-p.count) > 1e-6 {
					t.Errorf("%v: rate %g, count %g; want %g, %g", p.t, at, count, p.at, p.count)
				}
			}
		})
	}
}

// drawRate makes any valid rate.
func drawRate(t *rapid.T) Rate {
	perSecond := rapid.Float64Range(0, 1000)
	span := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "span"))
	})
	var r Rate
	for range rapid.IntRange(1, 4).Draw(t, "phases") {
		p := Phase{For: span.Draw(t, "for")}
		switch rapid.IntRange(0, 4).Draw(t, "shape") {
		case 0:
			c := perSecond.Draw(t, "constant")
			p.Constant = &c
		case 1:
			p.Ramp = &Ramp{From: perSecond.Draw(t, "from"), To: perSecond.Draw(t, "to")}
		case 2:
			p.Step = &Step{From: perSecond.Draw(t, "from"), To: perSecond.Draw(t, "to"), By: rapid.Float64Range(0.1, 500).Draw(t, "by"), Every: span.Draw(t, "every")}
		case 3:
			p.Daily = &Daily{Mean: perSecond.Draw(t, "mean"), Amplitude: rapid.Float64Range(0, 1).Draw(t, "amplitude"), Peak: span.Draw(t, "peak"), Period: span.Draw(t, "period")}
		case 4:
			every := span.Draw(t, "every")
			p.Burst = &Burst{Base: perSecond.Draw(t, "base"), Peak: perSecond.Draw(t, "peak"), Every: every, Lasting: max(every/3, 1), After: span.Draw(t, "after")}
		}
		r = append(r, p)
	}
	return r
}

// The count is the integral of the rate, and when is its inverse.
func TestRateProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		if p := r.problems(); p != nil {
			t.Fatal(p)
		}
		at := time.Duration(rapid.Int64Range(0, int64(r.End())).Draw(t, "t"))
		n := r.Count(at)
		later := at + time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "dt"))
		if r.Count(later) < n-1e-6 {
			t.Fatalf("count goes down: %g at %v, %g at %v", n, at, r.Count(later), later)
		}
		if low, high := r.bounds(); at < r.End() && (r.At(at) < low-1e-6 || r.At(at) > high+1e-6) {
			t.Fatalf("the rate at %v is %g, the bounds are %g and %g", at, r.At(at), low, high)
		}
		const h = time.Microsecond // A difference quotient, unless a shape jumps in between.
		if at < r.End()-h && r.At(at) == r.At(at+h) {
			if d := (r.Count(at+h) - n) / h.Seconds(); math.Abs(d-r.At(at)) > 1e-2*(1+n) {
				t.Fatalf("the count's slope at %v is %g, the rate %g", at, d, r.At(at))
			}
		}
		back, ok := r.when(n, 0)
		// It is the first such time, but where requests are so rare that rounding is more than a nanosecond brings.
		late := back > at && r.Count(back)-n > 1e-9*(1+n)
		if !ok || late || math.Abs(r.Count(back)-n) > 1e-5 {
			t.Fatalf("%g requests are expected at %v, when says %v, %v", n, at, back, ok)
		}
		if _, ok := r.when(r.Count(r.End())+1, 0); ok {
			t.Fatal("more requests than the rate gives")
		}
	})
}

// While a burst is as good as no requests, their count stays: it is not told by a difference that rounding changes.
func TestCountOfLull(t *testing.T) {
	r := Rate{{For: 4294967296, Burst: &Burst{
		Base: 2.047430420636772, Peak: 4.440892098500626e-16, Every: 3239641200, Lasting: 1079880400, After: 1000004,
	}}}
	n := r.Count(1073741838)
	if at, ok := r.when(n, 0); !ok || at > 1073741838 {
		t.Errorf("%g requests are expected at %v", n, at)
	}
}

func TestRateErrors(t *testing.T) {
	tests := []struct{ doc, want string }{
		{"{}", "give exactly one of constant, ramp, step, daily, burst"},
		{"{constant: 1, ramp: {from: 1, to: 2}}", "give exactly one of constant, ramp, step, daily, burst"},
		{"-1", "-1: want a number of requests a second, not negative"},
		{".nan", "NaN: want a number of requests a second, not negative"},
		{"{ramp: {from: 1, to: 2}}", "ramp: it needs \"for\" beside it, the time it takes"},
		{"[{constant: 1}, {constant: 2}]", "[0]: only the last phase may be endless; say \"for\" how long this one lasts"},
		{"[{constant: 1, for: 2s}, {constant: -2}]", "[1]: -2: want a number of requests a second, not negative"},
		{"{burst: {base: 1, peak: 2, every: 1s, lasting: 2s}}", "burst: it needs \"every\" and a \"lasting\" that is not longer"},
		{"{daily: {mean: 1, amplitude: 2}}", "daily.amplitude: it must be between 0 and 1"},
		{"{step: {from: 1, to: 2, by: 1}}", "step.every: it must be positive"},
		{"{step: {from: 1, to: 2, by: .nan, every: 1s}}", "step.by: it must be positive"},
		{"[]", "it is missing: requests a second, such as \"rate: 10\""},
	}
	for _, tt := range tests {
		var r Rate
		if err := strict.Decode("rate", []byte(tt.doc), &r); err != nil {
			t.Errorf("%s: %v", tt.doc, err)
			continue
		}
		if p := r.problems(); len(p) != 1 || strings.TrimPrefix(p[0].String(), ": ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.doc, p, tt.want)
		}
	}
	var r Rate
	if err := strict.Decode("rate", []byte("{rmap: {from: 1}}"), &r); err == nil || err.Error() != `rate:1: unknown field "rmap"; did you mean "ramp"?` {
		t.Error(err)
	}
}
