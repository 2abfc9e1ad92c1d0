package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Arrival is a request that is wanted at a time.
type Arrival struct {
	At        time.Duration // since the start
	Operation string        // "" is for the mix to choose
}

// Arrivals says when requests are sent. The times are fixed in advance: no request waits for the answer to
// another.
type Arrivals struct {
	// Process is how the requests are spaced: see the constants. Default exponential.
	Process Process `yaml:"process,omitempty"`
	// Deviation is the standard deviation of Normal, as a part of the mean. Default 0.25, at most
	// 1/3, past which gaps would be negative too often.
	Deviation float64 `yaml:"deviation,omitempty"`
	// Rate is how many a second are wanted.
	Rate Rate `yaml:"rate,omitempty"`
	// Replay is a recorded trace instead of a process and a rate.
	Replay *Replay `yaml:"replay,omitempty"`
}

// Process is a distribution of the gaps between requests.
type Process string

const (
	// Even leaves the same gap between any two requests.
	Even Process = "constant"
	// Exponential is a Poisson process: each request comes by itself, as independent users do.
	Exponential Process = "exponential"
	// Normal has gaps around the mean.
	Normal Process = "normal"
)

// aliases are what wrk2 calls them.
var aliases = map[Process]Process{"": Exponential, "exp": Exponential, "norm": Normal, "fixed": Even}

const defaultDeviation = 0.25

func (a *Arrivals) problems() []string {
	if a.Replay != nil {
		if a.Rate != nil || a.Process != "" {
			return []string{"arrivals: replay has its own times; leave out process and rate"}
		}
		return a.Replay.problems()
	}
	var list []string
	if !slices.Contains([]Process{Even, Exponential, Normal}, a.process()) {
		list = append(list, fmt.Sprintf("arrivals: unknown process %q; known are %s", a.Process,
			strings.Join([]string{string(Even), string(Exponential), string(Normal)}, ", ")))
	}
	if a.Deviation < 0 || a.Deviation > 1.0/3 {
		list = append(list, "arrivals: deviation must be between 0 and 1/3")
	}
	for _, p := range a.Rate.problems() {
		list = append(list, "arrivals: "+p)
	}
	return list
}

func (a *Arrivals) process() Process {
	if p, ok := aliases[a.Process]; ok {
		return p
	}
	return a.Process
}

// source yields arrivals in order. The scale multiplies the rate from here on.
type source interface {
	next(scale float64) (Arrival, bool)
}

func (a *Arrivals) source(seed uint64) source {
	if a.Replay != nil {
		return &replaySource{Replay: a.Replay}
	}
	rng := rand.New(rand.NewPCG(seed, arrivalStream))
	s := &process{rate: a.Rate}
	switch a.process() {
	case Even:
		s.gap = func() float64 { return 1 }
	case Normal:
		deviation := a.Deviation
		if deviation == 0 {
			deviation = defaultDeviation
		}
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
	rate Rate
	gap  func() float64
	n    float64       // expected until the last arrival
	last time.Duration // the last arrival
}

func (p *process) next(scale float64) (Arrival, bool) {
	if scale <= 0 {
		scale = minScale
	}
	p.n += p.gap() / scale
	at, ok := p.rate.when(p.n, p.last)
	p.last = at
	return Arrival{At: at}, ok
}

// minScale is as good as none: a request in hours.
const minScale = 1e-6
