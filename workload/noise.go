package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// noiseEvery is how long a rate stays off by the same factor.
	noiseEvery = 5 * time.Second
	// noiseMost is how many standard deviations it may be off, so that a load has bounds.
	noiseMost = 2
	// MaxNoise leaves a fifth of the rate at least.
	MaxNoise = 0.4
)

// Surges are times at which users come in a crowd, on any shape: one begins in each Every, at a moment that is drawn
// from the seed.
type Surges struct {
	Factor  float64       `yaml:"factor"` // of the rate
	Every   time.Duration `yaml:"every"`
	Lasting time.Duration `yaml:"lasting"`
}

// begin is when the nth surge begins.
func (s *Surges) begin(seed uint64, n int) time.Duration {
	draw := rand.New(rand.NewPCG(seed, surgeStream+uint64(n)))
	return time.Duration(n)*s.Every + time.Duration(draw.Int64N(int64(s.Every-s.Lasting)+1)).Truncate(tick)
}

// at reports whether there is a surge at a time.
func (s *Surges) at(seed uint64, t time.Duration) bool {
	began := s.begin(seed, int(t/s.Every))
	return t >= began && t < began+s.Lasting
}

func (s *Surges) problems() (list []Problem) {
	if !(s.Factor >= 1 && s.Factor <= maxFactor) {
		list = append(list, Problem{at("surges", "factor"), fmt.Sprintf("%g: want 1 to %d", s.Factor, maxFactor)})
	}
	if s.Lasting < tick || s.Every < 2*s.Lasting || s.Every > forever {
		list = append(list, Problem{at("surges"), fmt.Sprintf(
			"it needs a \"lasting\" of at least %v, and an \"every\" that is twice as long or longer", tick)})
	}
	return list
}

const (
	// tick is how long a rate that is not its shape's stays the same.
	tick = time.Second
	// maxFactor is how many times as many users come in a surge, at most.
	maxFactor = 100
)

// chanceOf is what makes a rate higher and lower than its shape says: a factor that is drawn anew every few seconds,
// and surges. The factor of a time depends on the seed alone, not on how many requests there were before.
type chanceOf struct {
	seed   uint64
	sigma  float64
	surges *Surges
}

// factor is that of the nth tick: but for surges, 1 in the mean.
func (c chanceOf) factor(n int) float64 {
	t := time.Duration(n) * tick
	draw := rand.New(rand.NewPCG(c.seed, noiseStream+uint64(t/noiseEvery)))
	factor := 1 + c.sigma*max(-noiseMost, min(noiseMost, draw.NormFloat64()))
	if c.surges != nil && c.surges.at(c.seed, t) {
		factor *= c.surges.Factor
	}
	return factor
}

// livelyRate is a rate with noise and surges. Its times are asked for in order.
type livelyRate struct {
	Rate
	chanceOf
	tick   int     // the one that was asked for last
	before float64 // requests expected until it begins
}

// when returns the earliest time at which n requests are expected, which is not before from.
func (r *livelyRate) when(n float64, from time.Duration) (time.Duration, bool) {
	for {
		begin := time.Duration(r.tick) * tick
		base, factor := r.Count(begin), r.factor(r.tick)
		end := r.before + factor*(r.Count(begin+tick)-base)
		if n <= end {
			return r.Rate.when(base+(n-r.before)/factor, max(from, begin))
		}
		limit := cmp.Or(r.End(), forever)
		if begin+tick >= limit || r.Count(limit) <= r.Count(begin+tick) { // There is nothing to come.
			return 0, false
		}
		r.tick, r.before = r.tick+1, end
	}
}

// noiseProblems returns what is wrong with a noise.
func noiseProblems(sigma float64) []Problem {
	if sigma >= 0 && sigma <= MaxNoise {
		return nil
	}
	return []Problem{{at("noise"), fmt.Sprintf("%g: want a part of the rate, 0 to %g; 0.05 is 5 %%", sigma, MaxNoise)}}
}
