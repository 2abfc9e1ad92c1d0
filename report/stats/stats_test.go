package stats

import (
	"math"
	"slices"
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
		_, i := tt.p.Difference(tt.p.each())
		near(t, "low", i.Low, tt.low, 5e-4)
		near(t, "high", i.High, tt.high, 5e-4)
	}
	if d, i := (Pairs{}).Difference(nil); d != 0 || i != (Interval{-1, 1}) {
		t.Errorf("of no pairs: %v, %v", d, i)
	}
}

// each are the differences of pairs that are all of other problems.
func (p Pairs) each() (groups [][]float64) {
	for v, n := range map[float64]int{0: p.Both + p.Neither, 1: p.Second, -1: p.First} {
		for range n {
			groups = append(groups, []float64{v})
		}
	}
	return groups
}

// Tries of one problem that end alike add nothing, in whichever way they end.
func TestDifferenceOfAlikeTries(t *testing.T) {
	once := Pairs{Both: 20, Second: 12, First: 2, Neither: 16}
	_, want := once.Difference(once.each())
	thrice := Pairs{Both: 60, Second: 36, First: 6, Neither: 48}
	groups := once.each()
	for i, g := range groups {
		groups[i] = []float64{g[0], g[0], g[0]}
	}
	_, got := thrice.Difference(groups)
	near(t, "low", got.Low, want.Low, 1e-9)
	near(t, "high", got.High, want.High, 1e-9)
	_, all := Pairs{Second: 4}.Difference([][]float64{{1, 1}, {1, 1}})
	_, two := Pairs{Second: 2}.Difference([][]float64{{1}, {1}})
	if all != two {
		t.Errorf("two problems with two tries each: %v; with one: %v", all, two)
	}
}

func TestSignFlip(t *testing.T) {
	ones := func(b, c int) []int { return append(slices.Repeat([]int{-1}, b), slices.Repeat([]int{1}, c)...) }
	for _, tt := range []struct {
		name        string
		differences []int
		want        float64
	}{
		// McNemar's, by hand: twice the sum of the first binomials over a power of two.
		{"none", nil, 1},
		{"one", ones(1, 0), 1},
		{"five", ones(5, 0), 2. / 32},
		{"two and eight", ones(2, 8), 2 * 56. / 1024},
		{"even", ones(5, 5), 1},
		// Agresti, "Categorical data analysis", approval of a prime minister: 86 and 150 of 1600.
		{"Agresti", ones(86, 150), 3.7e-5},
		// Fisher's example of Darwin's plants, in eighths of an inch: 1726 of the 32768 ways are as far apart.
		{"Darwin", []int{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48}, 1726. / 32768},
		{"nothing between them", []int{0, 0, 3}, 1},
	} {
		got := SignFlip(tt.differences)
		near(t, tt.name, got, tt.want, 0.03*tt.want+1e-12)
		mirror := slices.Clone(tt.differences)
		for i := range mirror {
			mirror[i] = -mirror[i]
		}
		near(t, "the mirror of "+tt.name, SignFlip(mirror), got, 1e-12)
	}
	if p := SignFlip(ones(3000, 3200)); p < 0.005 || p > 0.02 {
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
	if mean, _, ok := Bootstrap(append([][]float64{{}}, mice[:5]...)); mean != 88.8 || ok {
		t.Errorf("of five groups: %v, %v", mean, ok)
	}
	if _, _, ok := Bootstrap(nil); ok {
		t.Error("of nothing there is an interval")
	}
}
