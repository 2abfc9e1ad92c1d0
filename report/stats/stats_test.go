package stats

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > by {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Newcombe's "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
func TestWilson(t *testing.T) {
	for _, tt := range []struct{ n, of, low, high float64 }{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718},
	} {
		i := Wilson(tt.n/tt.of, tt.of)
		near(t, "low", i.Low, tt.low, 5e-5)
		near(t, "high", i.High, tt.high, 5e-5)
	}
}

// Newcombe's paper on paired data (1998), table II, method 10.
func TestDifference(t *testing.T) {
	for _, tt := range []struct {
		p         Pairs
		low, high float64
	}{
		{Pairs{Both: 36, Second: 12, First: 2, Neither: 0}, 0.0569, 0.3404},
		{Pairs{Both: 20, Second: 12, First: 2, Neither: 16}, 0.0562, 0.3292},
		{Pairs{Both: 0, Second: 12, First: 2, Neither: 36}, 0.0569, 0.3404},
		{Pairs{Both: 54}, -0.0664, 0.0664},
	} {
		_, i := tt.p.Difference()
		near(t, "low", i.Low, tt.low, 5e-4)
		near(t, "high", i.High, tt.high, 5e-4)
	}
	if d, i := (Pairs{}).Difference(); d != 0 || i != (Interval{-1, 1}) {
		t.Errorf("of no pairs: %v, %v", d, i)
	}
}

func TestMcNemar(t *testing.T) {
	for _, tt := range []struct {
		b, c int
		want float64
	}{
		// By hand: twice the sum of the first binomials over a power of two.
		{0, 0, 1},
		{1, 0, 1},
		{5, 0, 2. / 32},
		{2, 8, 2 * 56. / 1024},
		{5, 5, 1},
		// Agresti, "Categorical data analysis", approval of a prime minister: 86 and 150 of 1600.
		{86, 150, 3.7e-5},
	} {
		got := McNemar(tt.b, tt.c)
		near(t, "p", got, tt.want, 0.03*tt.want+1e-12)
		near(t, "the mirror", McNemar(tt.c, tt.b), got, 1e-12)
	}
	if p := McNemar(3000, 3200); p < 0.005 || p > 0.02 {
		t.Errorf("of many pairs: %v", p)
	}
}

// Of five tries two were solved: a pair of tries has one solved in 7 of 10 cases, and both in 1 of 10.
func TestPasses(t *testing.T) {
	near(t, "pass@1", PassAt(1, 2, 5), 0.4, 1e-12)
	near(t, "pass@2", PassAt(2, 2, 5), 0.7, 1e-12)
	near(t, "pass@4", PassAt(4, 2, 5), 1, 1e-12)
	near(t, "pass^2", PassAll(2, 2, 5), 0.1, 1e-12)
	near(t, "pass^3", PassAll(3, 2, 5), 0, 1e-12)
	near(t, "too many", PassAt(6, 2, 5), math.NaN(), 0)
	near(t, "too many", PassAll(6, 2, 5), math.NaN(), 0)
}

// Miller's example: a variance of a ninth and a difference of 3 points take 969 questions. Connor's formula is that one
// where the difference is small beside the variance.
func TestDetectable(t *testing.T) {
	near(t, "the difference", Detectable(969, 1./9), 0.03, 2e-4)
	near(t, "of few pairs", Detectable(3, 0.2), 1, 0)
	near(t, "of none", Detectable(0, 0.5), 1, 0)
	rapid.Check(t, func(t *rapid.T) {
		n, apart := rapid.IntRange(1, 5000).Draw(t, "n"), rapid.Float64Range(0.01, 1).Draw(t, "apart")
		d := Detectable(n, apart)
		if d < 1 && math.Abs(needed(d, apart)-float64(n)) > 1e-3*float64(n) {
			t.Errorf("%v takes %v pairs, not %d", d, needed(d, apart), n)
		}
		if more := Detectable(2*n, apart); more > d {
			t.Errorf("twice the pairs show %v, not %v", more, d)
		}
	})
}

// Alike tries add nothing, unlike ones all they can; what is between is between.
func TestClustered(t *testing.T) {
	one := []Group{{1, 1}, {0, 1}, {1, 1}, {1, 1}, {0, 1}}
	alike := []Group{{10, 10}, {0, 10}, {10, 10}, {10, 10}, {0, 10}}
	mixed := []Group{{9, 10}, {2, 10}, {8, 10}, {8, 10}, {3, 10}}
	even := []Group{{6, 10}, {6, 10}, {6, 10}, {6, 10}, {6, 10}}
	for _, tt := range []struct {
		name   string
		groups []Group
		worth  float64
	}{
		{"single", one, 5},
		{"alike", alike, 5},
		{"even", even, 5}, // Nothing tells them apart: no error to go by.
		// By hand: the shares are 3, -4, 2, 2 and -3 from 6 of 10: squares 42; 0.24 * 2500 / 42.
		{"mixed", mixed, 0.24 * 2500 / 42},
		{"all", []Group{{10, 10}, {10, 10}}, 2},
	} {
		share, i := Clustered(tt.groups)
		if want := Wilson(share, tt.worth); math.Abs(i.Low-want.Low) > 1e-9 || math.Abs(i.High-want.High) > 1e-9 {
			t.Errorf("%s: %v of %v, want %v", tt.name, i, share, want)
		}
	}
	if share, i := Clustered(nil); share != 0 || i != (Interval{0, 1}) {
		t.Errorf("of nothing: %v, %v", share, i)
	}
}

// Efron and Tibshirani, "An introduction to the bootstrap", table 2.1: the survival of seven treated mice has a standard
// error of 25.24, and the bootstrap's one is 23.36 for many draws. The middle 95 % are about four of those wide.
func TestBootstrap(t *testing.T) {
	var mice [][]float64
	for _, v := range []float64{94, 197, 16, 38, 99, 141, 23} {
		mice = append(mice, []float64{v})
	}
	mean, i, ok := Bootstrap(mice)
	near(t, "the mean", mean, 86.857, 1e-3)
	near(t, "the width", i.High-i.Low, 2*z95*23.36, 6)
	if again, j, _ := Bootstrap(mice); !ok || again != mean || i != j {
		t.Errorf("the second time: %v, %v", again, j)
	}
	if mean, _, ok := Bootstrap([][]float64{{1, 3}, {}}); mean != 2 || ok {
		t.Errorf("of one group: %v, %v", mean, ok)
	}
	if _, _, ok := Bootstrap(nil); ok {
		t.Error("of nothing there is an interval")
	}
}
