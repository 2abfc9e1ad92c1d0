// Package stats has the statistics by which agents are compared. A run is a trial that is solved or not; runs of one
// problem are alike, so that a problem, not a run, is what is drawn from all there could be.
//
// Each formula has its source beside it, and a test against values that others have published.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Quantiles of the normal distribution: 95 % of it on both sides of the middle, and 80 % of it below.
const (
	z95 = 1.959963984540054
	z80 = 0.8416212335729143
)

// Interval is where a figure lies, with 95 % confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson is the interval of a share p of n trials. E. B. Wilson, "Probable inference, the law of succession, and
// statistical inference", 1927. Without a trial it is all there is.
func Wilson(p, n float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	middle := (p + z95*z95/(2*n)) / (1 + z95*z95/n)
	half := z95 / (1 + z95*z95/n) * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	return Interval{max(0, middle-half), min(1, middle+half)}
}

// Group is how often a problem was tried, and solved.
type Group struct{ Solved, Of int }

// Clustered is the share of solved trials and its interval where the trials of one group are alike: the standard error
// is that of clusters (E. Miller, "Adding error bars to evals", 2024, section 2.2), and the interval Wilson's for as
// many trials as have that error. Ten tries of one problem are then not worth ten problems. Where all or none are
// solved, there is no error to go by, and there are as many trials as groups.
func Clustered(groups []Group) (share float64, i Interval) {
	n, solved := 0, 0
	for _, g := range groups {
		n, solved = n+g.Of, solved+g.Solved
	}
	if n == 0 {
		return 0, Wilson(0, 0)
	}
	share = float64(solved) / float64(n)
	squares, clusters := 0.0, 0.0
	for _, g := range groups {
		if g.Of > 0 {
			clusters++
		}
		d := float64(g.Solved) - share*float64(g.Of)
		squares += d * d
	}
	worth := clusters
	if squares > 0 {
		worth = share * (1 - share) * float64(n) * float64(n) / squares
	}
	return share, Wilson(share, min(worth, float64(n)))
}

// PassAt is the chance that at least one of k tries is solved, if c of n were: the unbiased estimate of M. Chen et
// al., "Evaluating large language models trained on code", 2021. It is NaN for more tries than there were.
func PassAt(k, c, n int) float64 {
	if k > n {
		return math.NaN()
	}
	return 1 - draws(n-c, n, k)
}

// PassAll is the chance that all of k tries are solved, if c of n were: pass^k of S. Yao et al., "τ-bench", 2024. It
// is NaN for more tries than there were.
func PassAll(k, c, n int) float64 {
	if k > n {
		return math.NaN()
	}
	return draws(c, n, k)
}

// draws is the chance that k of n, drawn without putting any back, are all among c of them.
func draws(c, n, k int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(max(0, c-i)) / float64(n-i)
	}
	return p
}

// McNemar is the chance that pairs of which one alone was solved fall apart as unevenly as into b and c, or more so, if
// both sides were equally good: the exact test on both sides (Q. McNemar, 1947).
func McNemar(b, c int) float64 {
	n := b + c
	sum, term := 0.0, math.Pow(0.5, float64(n)) // term is the chance of i of n
	if term == 0 {
		return normalTail(b, c)
	}
	for i := range min(b, c) + 1 {
		sum += term
		term *= float64(n-i) / float64(i+1)
	}
	return min(1, 2*sum)
}

// normalTail is McNemar's test by the normal distribution, for more pairs than a float can count with.
func normalTail(b, c int) float64 {
	d := max(0, math.Abs(float64(b-c))-1)
	return math.Erfc(d / math.Sqrt(2*float64(b+c)))
}

// Pairs are trials of two sides on the same problems: how many both solved, the first alone, the second alone, and
// neither.
type Pairs struct {
	Both    int `json:"both"`
	First   int `json:"first_alone"`
	Second  int `json:"second_alone"`
	Neither int `json:"neither"`
}

// Of is how many pairs there are.
func (p Pairs) Of() int { return p.Both + p.First + p.Second + p.Neither }

// Difference is by how much the share of the second side is higher, and its interval: method 10 of R. G. Newcombe,
// "Improved confidence intervals for the difference between binomial proportions based on paired data", 1998.
func (p Pairs) Difference() (d float64, i Interval) {
	n := float64(p.Of())
	if n == 0 {
		return 0, Interval{-1, 1}
	}
	p2, p1 := float64(p.Both+p.Second)/n, float64(p.Both+p.First)/n
	w2, w1 := Wilson(p2, n), Wilson(p1, n)
	phi := p.correlation()
	side := func(a, b float64) float64 { return math.Sqrt(max(0, a*a-2*phi*a*b+b*b)) }
	d = p2 - p1
	return d, Interval{d - side(p2-w2.Low, w1.High-p1), d + side(w2.High-p2, p1-w1.Low)}
}

// correlation is how much both sides solve the same, corrected for continuity as Newcombe does.
func (p Pairs) correlation() float64 {
	e, f, g, h := float64(p.Both), float64(p.Second), float64(p.First), float64(p.Neither)
	margins := (e + f) * (g + h) * (e + g) * (f + h)
	if margins == 0 {
		return 0
	}
	top := e*h - f*g
	if top > 0 {
		top = max(0, top-(e+f+g+h)/2)
	}
	return top / math.Sqrt(margins)
}

// Detectable is the smallest difference of two shares that n pairs show with a chance of 80 %, if one alone is solved
// in a part of the pairs: from the sample size of R. J. Connor, "Sample size for testing differences in proportions for
// the paired-sample design", 1987. It is 1 if no difference would be seen.
func Detectable(n int, apart float64) float64 {
	low, high := 0.0, min(1, apart)
	if needed(high, apart) > float64(n) {
		return 1
	}
	for range 60 {
		if middle := (low + high) / 2; needed(middle, apart) > float64(n) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// needed is how many pairs it takes to see a difference.
func needed(difference, apart float64) float64 {
	if difference <= 0 {
		return math.Inf(1)
	}
	s := z95*math.Sqrt(apart) + z80*math.Sqrt(max(0, apart-difference*difference))
	return s * s / (difference * difference)
}

// resamples are how often Bootstrap draws.
const resamples = 10_000

// Bootstrap is the interval of the mean of values that come in groups: groups are drawn with putting them back, and the
// middle 95 % of the means taken (B. Efron, 1979; the percentile method). It is the same each time. A single group says
// nothing about others, and has no interval.
func Bootstrap(groups [][]float64) (mean float64, i Interval, ok bool) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g []float64) bool { return len(g) == 0 })
	type total struct{ sum, n float64 }
	totals := make([]total, len(groups))
	all := total{}
	for k, g := range groups {
		for _, v := range g {
			totals[k].sum += v
		}
		totals[k].n = float64(len(g))
		all.sum, all.n = all.sum+totals[k].sum, all.n+totals[k].n
	}
	if all.n == 0 {
		return 0, Interval{}, false
	}
	mean = all.sum / all.n
	if len(groups) < 2 {
		return mean, Interval{}, false
	}
	r := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, resamples)
	for k := range means {
		drawn := total{}
		for range totals {
			t := totals[r.IntN(len(totals))]
			drawn.sum, drawn.n = drawn.sum+t.sum, drawn.n+t.n
		}
		means[k] = drawn.sum / drawn.n
	}
	slices.Sort(means)
	return mean, Interval{means[resamples*25/1000], means[resamples*975/1000-1]}, true
}
