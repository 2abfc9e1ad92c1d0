package workload

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Arrival is a request that is wanted at a time.
type Arrival struct {
	At        time.Duration // since the start
	Operation string        // "" is for the mix to choose
}

// Arrivals says when requests are sent. The times are fixed in advance: no request waits for the answer to another
// one.
type Arrivals struct {
	// Rate is how many a second are wanted.
	Rate Rate `yaml:"rate,omitempty"`
	// Noise makes the rate higher and lower than its shape says, as drawn from the seed: the standard deviation,
	// as a part of the rate.
	Noise float64 `yaml:"noise,omitempty"`
	// Surges are times at which there is much more, whatever the shape.
	Surges *Surges `yaml:"surges,omitempty"`
	// Process is how the requests are spaced: see the constants. Default exponential.
	Process Process `yaml:"process,omitempty"`
	// Replay is a recorded trace instead of a process and a rate.
	Replay *Replay `yaml:"replay,omitempty"`
}

// Bounds are the least and the most requests a second that are wanted at any time.
func (a *Arrivals) Bounds() (low, high float64) {
	if a.Replay != nil {
		return a.Replay.bounds()
	}
	low, high = a.Rate.bounds()
	low, high = low*(1-noiseMost*a.Noise), high*(1+noiseMost*a.Noise)
	if a.Surges != nil {
		high *= a.Surges.Factor
	}
	return low, high
}

// steady reports whether the rate never changes.
func (a *Arrivals) steady() bool {
	low, high := a.Bounds()
	return a.Replay == nil && low == high
}

// Process is a distribution of the gaps between requests.
type Process string

const (
	// Even leaves the same gap between any two requests.
	Even Process = "constant"
	// Exponential is a Poisson process: each request comes by itself, as independent users do.
	Exponential Process = "exponential"
	// Normal has gaps around the mean, with a standard deviation of a quarter of it.
	Normal Process = "normal"
)

const deviation = 0.25

func (a *Arrivals) problems() []Problem {
	if a.Replay != nil {
		if a.Rate != nil || a.Process != "" || a.Noise != 0 || a.Surges != nil {
			return []Problem{{at("replay"), "it has its own times; leave out process, rate, noise and surges"}}
		}
		return within(a.Replay.problems(), "replay")
	}
	var list []Problem
	processes := []string{string(Even), string(Exponential), string(Normal)}
	if a.Process != "" && !slices.Contains(processes, string(a.Process)) {
		list = append(list, Problem{at("process"), strict.Unknown("process", string(a.Process), processes)})
	}
	list = append(list, noiseProblems(a.Noise)...)
	if a.Surges != nil {
		list = append(list, a.Surges.problems()...)
	}
	return append(list, within(a.Rate.problems(), "rate")...)
}

// source yields arrivals in order, until there are no more.
type source interface {
	next() (Arrival, bool)
}

func (a *Arrivals) source(seed uint64) source {
	if a.Replay != nil {
		return &replaySource{Replay: a.Replay}
	}
	rng := rand.New(rand.NewPCG(seed, arrivalStream))
	s := &process{rate: a.Rate}
	if a.Noise > 0 || a.Surges != nil {
		s.rate = &livelyRate{Rate: a.Rate, chanceOf: chanceOf{seed, a.Noise, a.Surges}}
	}
	switch a.Process {
	case Even:
		s.gap = func() float64 { return 1 }
	case Normal:
		s.gap = func() float64 {
			for {
				if g := 1 + deviation*rng.NormFloat64(); g > 0 {
					return g
				}
			}
		}
	default:
		s.gap = rng.ExpFloat64
	}
	return s
}

// process makes arrivals by rescaling time: requests with gaps of mean 1 are laid out along the
// number of requests expected, and the rate says when that number is reached. For exponential gaps
// this is exactly the Poisson process with that rate, however the rate changes.
type process struct {
	rate interface {
		when(n float64, from time.Duration) (time.Duration, bool)
	}
	gap  func() float64
	n    float64       // expected until the last arrival
	last time.Duration // the last arrival
}

func (p *process) next() (Arrival, bool) {
	p.n += p.gap()
	at, ok := p.rate.when(p.n, p.last)
	p.last = at
	return Arrival{At: at}, ok
}
