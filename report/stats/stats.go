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
	squares, clusters := 0.0, 0
	for _, g := range groups {
		if g.Of > 0 {
			clusters++
		}
		d := float64(g.Solved) - share*float64(g.Of)
		squares += d * d
	}
	return share, Wilson(share, worth(share*(1-share), n, squares, clusters))
}

// worth is how many trials of which none are alike have the same standard error as n trials of one variance in
// clusters; squares is the sum, over the clusters, of the square by which one is off the mean in all.
func worth(variance float64, n int, squares float64, clusters int) float64 {
	if squares <= 0 {
		return float64(clusters)
	}
	return min(variance*float64(n)*float64(n)/squares, float64(n))
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

// SignFlip is the chance that differences of groups are in all as far from nothing as these, or farther, if each were
// as likely to be for the one side as for the other: the exact permutation test for pairs (R. A. Fisher, "The design of
// experiments", 1935, section 21). A group is a problem, its difference by how many of its tries the second side solved
// more. Of problems that were tried once it is McNemar's exact test (Q. McNemar, 1947).
func SignFlip(differences []int) float64 {
	most, seen := 0, 0
	for _, d := range differences {
		most, seen = most+max(d, -d), seen+d
	}
	// chances[i] is that of a sum of i-most. So far sums are no farther than reach from nothing.
	chances, next, reach := make([]float64, 2*most+1), make([]float64, 2*most+1), 0
	chances[most] = 1
	for _, d := range differences {
		if d == 0 {
			continue
		}
		clear(next)
		for i := most - reach; i <= most+reach; i++ {
			next[i+d] += chances[i] / 2
			next[i-d] += chances[i] / 2
		}
		chances, next, reach = next, chances, reach+max(d, -d)
	}
	sum := 0.0
	for i, c := range chances {
		if max(i-most, most-i) >= max(seen, -seen) {
			sum += c
		}
	}
	return min(1, sum)
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
// "Improved confidence intervals for the difference between binomial proportions based on paired data", 1998. The
// differences are those of the pairs, by groups of which the pairs are alike; they count for as many pairs as have the
// standard error of clusters, as trials do in [Clustered].
func (p Pairs) Difference(groups [][]float64) (d float64, i Interval) {
	n := float64(p.Of())
	if n == 0 {
		return 0, Interval{-1, 1}
	}
	p2, p1 := float64(p.Both+p.Second)/n, float64(p.Both+p.First)/n
	d = p2 - p1
	squares := 0.0
	for _, g := range groups {
		off := -d * float64(len(g))
		for _, v := range g {
			off += v
		}
		squares += off * off
	}
	worth := worth(float64(p.First+p.Second)/n-d*d, p.Of(), squares, len(groups))
	w2, w1 := Wilson(p2, worth), Wilson(p1, worth)
	phi := p.correlation(worth / n)
	side := func(a, b float64) float64 { return math.Sqrt(max(0, a*a-2*phi*a*b+b*b)) }
	return d, Interval{d - side(p2-w2.Low, w1.High-p1), d + side(w2.High-p2, p1-w1.Low)}
}

// correlation is how much both sides solve the same, corrected for continuity as Newcombe does, if each pair counts for
// a part of one.
func (p Pairs) correlation(part float64) float64 {
	e, f, g, h := part*float64(p.Both), part*float64(p.Second), part*float64(p.First), part*float64(p.Neither)
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

const (
	resamples = 10_000 // how often Bootstrap draws
	// fewest is how many groups it takes to tell anything with 95 % confidence: of five, all are on one side by chance
	// in 6 % of cases.
	fewest = 6
)

// Bootstrap is the interval of the mean of values that come in groups: groups are drawn with putting them back, and the
// middle 95 % of the means taken (B. Efron, 1979; the percentile method). It is the same each time. Fewer than six
// groups say too little about others, and have no interval.
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
	if len(groups) < fewest {
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
