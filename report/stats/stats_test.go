package stats

import (
	"cmp"
	"math"
	"math/bits"
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

// What the README of HumanEval, the card of Hugging Face's metric code_eval and the page of the package pass-at-k on PyPI
// print for samples of which so many are right.
func TestPassAt(t *testing.T) {
	for _, tt := range []struct {
		source  string
		k, c, n int
		want    float64
	}{
		{"HumanEval, example_samples.jsonl", 1, 3, 6, 0.4999999999999999},
		{"code_eval", 1, 1, 2, 0.5},
		{"code_eval", 2, 1, 2, 1},
		{"pass-at-k", 1, 3, 8, 0.375},
		{"pass-at-k", 5, 3, 8, 0.9821},
	} {
		near(t, tt.source, PassAt(tt.k, tt.c, tt.n), tt.want, 5e-5)
	}
	near(t, "more than were tried", PassAt(6, 2, 5), math.NaN(), 0)
}

// The leaderboard of tau-bench's README at commit 034a267: pass^1 to pass^4 of four agents. It does not print how many
// tasks were solved how often, but of 50 tasks with four tries each only one count gives the numbers of a row.
func TestPassAll(t *testing.T) {
	for _, tt := range []struct {
		agent  string
		tasks  [5]int // how many tasks were solved never, once, up to four times
		passes [4]float64
	}{
		{"tool calling, gpt-4o", [5]int{16, 13, 8, 5, 8}, [4]float64{0.380, 0.237, 0.185, 0.160}},
		{"tool calling, gpt-4o-mini", [5]int{30, 7, 6, 2, 5}, [4]float64{0.225, 0.140, 0.110, 0.100}},
		{"Act, gpt-4o", [5]int{17, 11, 11, 4, 7}, [4]float64{0.365, 0.217, 0.160, 0.140}},
		{"ReAct, gpt-4o", [5]int{26, 4, 7, 5, 8}, [4]float64{0.325, 0.233, 0.185, 0.160}},
	} {
		for i, want := range tt.passes {
			sum, tasks := 0.0, 0
			for solved, n := range tt.tasks {
				sum, tasks = sum+float64(n)*PassAll(i+1, solved, 4), tasks+n
			}
			near(t, tt.agent, sum/float64(tasks), want, 5e-4)
		}
	}
	near(t, "more than were tried", PassAll(6, 2, 5), math.NaN(), 0)
}

// Both are the share of all ways to choose k of n tries, counted one by one.
func TestPassesAgainstAllChoices(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for c := range n + 1 {
			some, all, ways := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
			solved := uint(1)<<c - 1
			for chosen := range uint(1) << n {
				k := bits.OnesCount(chosen)
				ways[k]++
				if chosen&solved != 0 {
					some[k]++
				}
				if chosen&^solved == 0 {
					all[k]++
				}
			}
			for k := 1; k <= n; k++ {
				near(t, "pass@k", PassAt(k, c, n), some[k]/ways[k], 1e-12)
				near(t, "pass^k", PassAll(k, c, n), all[k]/ways[k], 1e-12)
			}
		}
	}
}

// How many pairs others print for McNemar's test at 5 %, both sides, with a chance of 80 %: a difference is seen by that
// many, and not by one less. The last one is Miller's of 3 points with a variance of a ninth, by a formula that is
// Connor's where the difference is small beside the variance.
func TestDetectable(t *testing.T) {
	for _, tt := range []struct {
		source        string
		first, second float64 // share of the pairs that one alone solves
		pairs         int
	}{
		{"S.-C. Chow, J. Shao and H. Wang, Sample size calculations in clinical research, 2003, example 6.4.3", 0.2, 0.5, 59},
		{"powerandsamplesize.com, McNemar's test, two-sided, after Connor, page 209", 0.05, 0.45, 23},
		{"clinicaltrials-tools.vercel.app, McNemar's test, after Connor", 0.15, 0.30, 155},
	} {
		apart, difference := tt.first+tt.second, tt.second-tt.first
		if d := Detectable(tt.pairs, apart); d > difference {
			t.Errorf("%s: %d pairs show %v, want %v or less", tt.source, tt.pairs, d, difference)
		}
		if d := Detectable(tt.pairs-1, apart); d <= difference {
			t.Errorf("%s: %d pairs show %v, want more than %v", tt.source, tt.pairs-1, d, difference)
		}
	}
	near(t, "Miller's difference", Detectable(969, 1./9), 0.03, 2e-4)
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

// weil are how many pups of each of 16 litters lived: table 1 of J. N. K. Rao and A. J. Scott, "A simple method for the
// analysis of clustered binary data", 1992, from C. S. Weil, 1970. The error of clusters makes each pup worth less by the
// design effect, of which the R package PF prints these digits (its function rsb). Rao and Scott divide by one litter
// less, Miller does not.
var weil = []struct {
	name    string
	litters []Group
	effect  float64
}{
	{"control", []Group{
		{13, 13},
		{12, 12},
		{9, 9},
		{9, 9},
		{8, 8},
		{8, 8},
		{12, 13},
		{11, 12},
		{9, 10},
		{9, 10},
		{8, 9},
		{11, 13},
		{4, 5},
		{5, 7},
		{7, 10},
		{7, 10},
	}, 1.232495},
	{"treated", []Group{
		{12, 12},
		{11, 11},
		{10, 10},
		{9, 9},
		{10, 11},
		{9, 10},
		{9, 10},
		{8, 9},
		{8, 9},
		{4, 5},
		{7, 9},
		{4, 7},
		{5, 10},
		{3, 6},
		{3, 10},
		{0, 7},
	}, 3.952861},
}

func TestClusteredOfLitters(t *testing.T) {
	for _, tt := range weil {
		pups, lived := 0, 0
		for _, l := range tt.litters {
			pups, lived = pups+l.Of, lived+l.Solved
		}
		share, got := Clustered(tt.litters)
		near(t, tt.name, share, float64(lived)/float64(pups), 1e-12)
		want := Wilson(share, float64(pups)/(tt.effect*15/16))
		near(t, tt.name+", low", got.Low, want.Low, 1e-7)
		near(t, tt.name+", high", got.High, want.High, 1e-7)
	}
}

// Beside a side that solves nothing, a difference is a share. So its pairs are worth less by the same published effect:
// Newcombe's interval is then that of a share and of none, side by side, since nothing correlates with none.
func TestDifferenceOfLitters(t *testing.T) {
	for _, tt := range weil {
		var p Pairs
		var groups [][]float64
		for _, l := range tt.litters {
			p.Second, p.Neither = p.Second+l.Solved, p.Neither+l.Of-l.Solved
			groups = append(groups, slices.Concat(slices.Repeat([]float64{1}, l.Solved), make([]float64, l.Of-l.Solved)))
		}
		share, worth := float64(p.Second)/float64(p.Of()), float64(p.Of())/(tt.effect*15/16)
		lived, none := Wilson(share, worth), Wilson(0, worth)
		d, i := p.Difference(groups)
		near(t, tt.name, d, share, 1e-12)
		near(t, tt.name+", low", i.Low, share-math.Hypot(share-lived.Low, none.High), 1e-7)
		near(t, tt.name+", high", i.High, lived.High, 1e-7)
	}
}

// By hand: ten pairs of four problems, of which the second side alone solves 5, the first alone 1, both 2 and nobody 2. So
// d is 0.4, and a pair varies by 0.6 - 0.16 = 0.44. The problems are off d by 2 - 1.2 = 0.8, 2 - 0.8 = 1.2,
// -1 - 0.8 = -1.8 and 1 - 1.2 = -0.2: squares 0.64, 1.44, 3.24 and 0.04, together 5.36. So the pairs are worth
// 0.44 * 100 / 5.36 = 8.2089552 ones. Wilson's intervals of 0.7 and 0.3 of so many are 0.3697681 to 0.9027190 and
// 0.0972810 to 0.6302319. Of the table, 2*2 - 5*1 is below zero, so nothing is corrected, and phi is that over
// sqrt(7*3*3*7): -1/21.
func TestDifferenceOfUnevenProblems(t *testing.T) {
	p := Pairs{Both: 2, Second: 5, First: 1, Neither: 2}
	d, i := p.Difference([][]float64{{1, 1, 0}, {1, 1}, {-1, 0}, {1, 0, 0}})
	near(t, "the difference", d, 0.4, 1e-12)
	// Both sides of the difference are as far off: 0.7 - 0.3697681 and 0.6302319 - 0.3, and so above.
	near(t, "low", i.Low, 0.4-0.3302319*math.Sqrt(2+2./21), 1e-6)
	near(t, "high", i.High, 0.4+0.2027190*math.Sqrt(2+2./21), 1e-6)
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

// possible is a mean of a bootstrap, and how likely it is.
type possible struct{ mean, chance float64 }

// ideal are all means that a bootstrap of groups can draw, the least first: every way to draw as many groups as there are,
// counted one by one.
func ideal(groups [][]float64) (list []possible) {
	var draw func(from, left int, chance, sum, n float64)
	draw = func(from, left int, chance, sum, n float64) {
		if from == len(groups) {
			if left == 0 {
				list = append(list, possible{sum / n, chance})
			}
			return
		}
		one, of := 0., float64(len(groups[from]))
		for _, v := range groups[from] {
			one += v
		}
		for times := range left + 1 {
			draw(from+1, left-times, chance, sum+float64(times)*one, n+float64(times)*of)
			// Of n draws so many are this group: a multinomial, times n! and over n to the power of n.
			chance /= float64(times + 1)
		}
	}
	all := 1.
	for i := range groups {
		all *= float64(i+1) / float64(len(groups))
	}
	draw(0, len(groups), all, 0, 0)
	slices.SortFunc(list, func(a, b possible) int { return cmp.Compare(a.mean, b.mean) })
	return list
}

// checkIdeal checks an interval by the distribution that it is drawn from: below it, and above it, are 2.5 % of that, as
// far as 10,000 draws tell.
func checkIdeal(t *testing.T, what string, groups [][]float64, i Interval) {
	t.Helper()
	below, notAbove, all := [2]float64{}, [2]float64{}, 0.
	for _, p := range ideal(groups) {
		all += p.chance
		for end, at := range []float64{i.Low, i.High} {
			if p.mean < at-1e-9 {
				below[end] += p.chance
			}
			if p.mean < at+1e-9 {
				notAbove[end] += p.chance
			}
		}
	}
	near(t, what+", all chances", all, 1, 1e-9)
	luck := 3 * math.Sqrt(0.025*0.975/resamples)
	for end, want := range []float64{0.025, 0.975} {
		if below[end] > want+luck || notAbove[end] < want-luck {
			t.Errorf("%s: %v has %v below it, and %v with it; want %v", what, i, below[end], notAbove[end], want)
		}
	}
}

// Efron and Tibshirani, "An introduction to the bootstrap", 1993, table 2.1: the survival of seven treated mice has a mean
// of 86.86, whose standard error is 25.24, and 23.36 by a bootstrap that draws without end.
func TestBootstrap(t *testing.T) {
	var mice [][]float64
	for _, v := range []float64{94, 197, 16, 38, 99, 141, 23} {
		mice = append(mice, []float64{v})
	}
	mean, i, ok := Bootstrap(mice)
	near(t, "the mean", mean, 86.86, 5e-3)
	variance := 0.
	for _, p := range ideal(mice) {
		variance += p.chance * (p.mean - mean) * (p.mean - mean)
	}
	near(t, "the standard error of the ideal bootstrap", math.Sqrt(variance), 23.36, 5e-3)
	checkIdeal(t, "mice", mice, i)
	if again, j, _ := Bootstrap(mice); !ok || again != mean || i != j {
		t.Errorf("the second time: %v, %v", again, j)
	}
	// Groups are drawn, not values: one of three values is drawn with all of them, or not at all.
	litters := [][]float64{{1, 2, 6}, {10}, {4, 4}, {0}, {3, 9}, {5}, {7, 7, 7, 2}}
	mean, i, _ = Bootstrap(litters)
	near(t, "the mean of litters", mean, 67./14, 1e-9)
	checkIdeal(t, "litters", litters, i)
	if mean, _, ok := Bootstrap(append([][]float64{{}}, mice[:5]...)); mean != 88.8 || ok {
		t.Errorf("of five groups: %v, %v", mean, ok)
	}
	if _, _, ok := Bootstrap(nil); ok {
		t.Error("of nothing there is an interval")
	}
}
