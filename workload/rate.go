package workload

import (
	"fmt"
	"math"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// forever is longer than any load.
const forever = 100 * 365 * 24 * time.Hour

// Rate is how many requests a second are wanted, over time: phases that follow one another, the
// last of which may be endless. In YAML it is a number, a phase, or a list of phases:
//
//	rate: 100
//	rate: {daily: {mean: 50, amplitude: 0.8, period: 10m}}
//	rate:
//	- constant: 10
//	  for: 1m
//	- ramp: {from: 10, to: 200}
//	  for: 5m
//	- constant: 10
type Rate []Phase

// Phase is a part of a rate: one of its shapes, for a while. Times within a shape are counted from
// the phase's beginning.
type Phase struct {
	For time.Duration `yaml:"for,omitempty"` // 0 is endless

	Constant *float64 `yaml:"constant,omitempty"` // requests/s
	Ramp     *Ramp    `yaml:"ramp,omitempty"`
	Step     *Step    `yaml:"step,omitempty"`
	Daily    *Daily   `yaml:"daily,omitempty"`
	Burst    *Burst   `yaml:"burst,omitempty"`
}

// Ramp goes from one rate to another in a straight line, over its phase.
type Ramp struct {
	From float64 `yaml:"from"`
	To   float64 `yaml:"to"`
}

// Step goes up, or down, by the same amount at regular times until it has reached To.
type Step struct {
	From  float64       `yaml:"from"`
	To    float64       `yaml:"to"`
	By    float64       `yaml:"by"` // positive; its direction is given by From and To
	Every time.Duration `yaml:"every"`
}

// Daily is a cosine with one peak a day.
type Daily struct {
	Mean      float64       `yaml:"mean"`
	Amplitude float64       `yaml:"amplitude"`        // a part of the mean, 0 to 1
	Peak      time.Duration `yaml:"peak,omitempty"`   // time of day, counted from the start
	Period    time.Duration `yaml:"period,omitempty"` // default 24h; a day can be made shorter
}

// Burst is a low rate with high ones in between.
type Burst struct {
	Base    float64       `yaml:"base"`
	Peak    float64       `yaml:"peak"`
	Every   time.Duration `yaml:"every"`           // from the start of a burst to the next one's
	Lasting time.Duration `yaml:"lasting"`         // of a burst
	After   time.Duration `yaml:"after,omitempty"` // before the first one
}

// Constant is a rate that does not change.
func Constant(perSecond float64) Rate { return Rate{{Constant: &perSecond}} }

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *Rate) UnmarshalYAML(n *yaml.Node) error { return strict.Softly(r.decode(n)) }

func (r *Rate) decode(n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		var c float64
		if n.Decode(&c) != nil {
			return strict.Errorf(n, "\"rate\": want a number, or a shape such as {ramp: {from: 10, to: 100}, "+
				"for: 2m}, not %q", n.Value)
		}
		*r = Constant(c)
	case yaml.MappingNode:
		*r = make(Rate, 1)
		return strict.Node(n, &(*r)[0])
	default:
		return strict.Node(n, (*[]Phase)(r))
	}
	return nil
}

// shape is a phase's rate and its integral, the requests expected until a time in seconds.
type shape interface {
	at(t float64) float64
	count(t float64) float64
	bounds() (low, high float64)
	problems() []Problem
}

func (p Phase) shape() shape {
	switch {
	case p.Constant != nil:
		return constant(*p.Constant)
	case p.Ramp != nil:
		return ramp{*p.Ramp, p.For.Seconds()}
	case p.Step != nil:
		return *p.Step
	case p.Daily != nil:
		return *p.Daily
	case p.Burst != nil:
		return *p.Burst
	}
	return nil
}

// Shape is the name of the phase's shape.
func (p Phase) Shape() string {
	switch {
	case p.Ramp != nil:
		return "ramp"
	case p.Step != nil:
		return "step"
	case p.Daily != nil:
		return "daily"
	case p.Burst != nil:
		return "burst"
	}
	return "constant"
}

// problems returns what is wrong with the rate.
func (r Rate) problems() (list []Problem) {
	if len(r) == 0 {
		return []Problem{{nil, "it is missing: requests a second, such as \"rate: 10\""}}
	}
	for i, p := range r {
		found := p.problems(i == len(r)-1)
		if len(r) > 1 {
			found = within(found, i)
		}
		list = append(list, found...)
	}
	return list
}

func (p Phase) problems(last bool) (list []Problem) {
	set := 0
	for _, has := range []bool{p.Constant != nil, p.Ramp != nil, p.Step != nil, p.Daily != nil, p.Burst != nil} {
		if has {
			set++
		}
	}
	if set != 1 {
		return []Problem{{nil, "give exactly one of constant, ramp, step, daily, burst"}}
	}
	if p.For < 0 || p.For > forever {
		list = append(list, Problem{at("for"), "it must be positive"})
	}
	if p.For == 0 && !last {
		list = append(list, Problem{nil, "only the last phase may be endless; say \"for\" how long this one lasts"})
	}
	return append(list, p.shape().problems()...)
}

// bounds are the least and the most of the rate, before it ends.
func (r Rate) bounds() (low, high float64) {
	low = math.Inf(1)
	for _, p := range r {
		l, h := p.shape().bounds()
		low, high = min(low, l), max(high, h)
	}
	return low, high
}

// At returns the rate at a time after the start, in requests/s. It is 0 after the last phase.
func (r Rate) At(t time.Duration) float64 {
	for _, p := range r {
		if p.For == 0 || t < p.For {
			return p.shape().at(t.Seconds())
		}
		t -= p.For
	}
	return 0
}

// Count returns how many requests are expected until a time after the start.
func (r Rate) Count(t time.Duration) float64 {
	n := 0.0
	for _, p := range r {
		if p.For == 0 || t < p.For {
			return n + p.shape().count(t.Seconds())
		}
		n += p.shape().count(p.For.Seconds())
		t -= p.For
	}
	return n
}

// End returns when the last phase ends, or 0 if it is endless.
func (r Rate) End() (end time.Duration) {
	for _, p := range r {
		if p.For == 0 {
			return 0
		}
		end += p.For
	}
	return end
}

// tolerance hides that floating-point numbers are not exact, so that request 100 of a constant 10/s
// is wanted at 10 s and not a nanosecond off. It is a part of the number.
const tolerance = 4e-15

// when returns the earliest time at which n requests are expected, which is not before from. There
// is none if the rate ends, or stays zero, before that.
func (r Rate) when(n float64, from time.Duration) (time.Duration, bool) {
	reached := func(t time.Duration) bool { return r.Count(t) >= n*(1-tolerance) }
	limit := r.End()
	if limit == 0 {
		limit = forever
	}
	if reached(from) {
		return from, true
	}
	// The first guess assumes that the rate does not change.
	low, step := from, time.Second
	if at := r.At(from); at > 0 {
		step = time.Duration(min((n-r.Count(from))/at, 3600)*float64(time.Second)) + 1
	}
	high := low + step
	for !reached(high) {
		if high >= limit {
			return 0, false
		}
		low, step = high, 2*step
		high = min(low+step, limit)
	}
	for high-low > 1 {
		if mid := low + (high-low)/2; reached(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high, true
}

type constant float64

func (c constant) at(float64) float64      { return float64(c) }
func (c constant) count(t float64) float64 { return float64(c) * t }
func (c constant) problems() []Problem     { return notNegative(float64(c)) }

func (c constant) bounds() (low, high float64) { return float64(c), float64(c) }

type ramp struct {
	Ramp
	over float64 // seconds
}

func (r ramp) at(t float64) float64    { return r.From + (r.To-r.From)*t/r.over }
func (r ramp) count(t float64) float64 { return r.From*t + (r.To-r.From)*t*t/(2*r.over) }

func (r ramp) bounds() (low, high float64) { return min(r.From, r.To), max(r.From, r.To) }

func (r ramp) problems() (list []Problem) {
	if r.over == 0 {
		list = append(list, Problem{at("ramp"), "it needs \"for\" beside it, the time it takes"})
	}
	return append(append(list, notNegative(r.From, "ramp", "from")...), notNegative(r.To, "ramp", "to")...)
}

func (s Step) at(t float64) float64 {
	n := math.Floor(t / s.Every.Seconds())
	if s.To < s.From {
		return max(s.From-n*s.By, s.To)
	}
	return min(s.From+n*s.By, s.To)
}

func (s Step) count(t float64) float64 {
	every := s.Every.Seconds()
	direction := 1.0
	if s.To < s.From {
		direction = -1
	}
	steps := math.Ceil(math.Abs(s.To-s.From) / s.By) // until To is reached
	done := math.Floor(t / every)                    // whole steps
	rising := min(done, steps)
	// Steps 0, 1, ... of the rising part are an arithmetic series.
	n := every * (rising*s.From + direction*s.By*rising*(rising-1)/2)
	if done > rising {
		n += every * (done - rising) * s.To
	}
	return n + (t-done*every)*s.at(t)
}

func (s Step) bounds() (low, high float64) { return min(s.From, s.To), max(s.From, s.To) }

func (s Step) problems() (list []Problem) {
	if s.Every <= 0 {
		list = append(list, Problem{at("step", "every"), "it must be positive"})
	}
	if !(s.By > 0) {
		list = append(list, Problem{at("step", "by"), "it must be positive"})
	}
	return append(append(list, notNegative(s.From, "step", "from")...), notNegative(s.To, "step", "to")...)
}

func (d Daily) omega() float64 {
	if d.Period == 0 {
		return 2 * math.Pi / (24 * time.Hour).Seconds()
	}
	return 2 * math.Pi / d.Period.Seconds()
}

func (d Daily) at(t float64) float64 {
	return d.Mean * (1 + d.Amplitude*math.Cos(d.omega()*(t-d.Peak.Seconds())))
}

func (d Daily) count(t float64) float64 {
	w, peak := d.omega(), d.Peak.Seconds()
	return d.Mean * (t + d.Amplitude/w*(math.Sin(w*(t-peak))+math.Sin(w*peak)))
}

func (d Daily) bounds() (low, high float64) {
	return d.Mean * (1 - d.Amplitude), d.Mean * (1 + d.Amplitude)
}

func (d Daily) problems() (list []Problem) {
	if !(d.Amplitude >= 0 && d.Amplitude <= 1) {
		list = append(list, Problem{at("daily", "amplitude"), "it must be between 0 and 1"})
	}
	if d.Period < 0 {
		list = append(list, Problem{at("daily", "period"), "it must be positive"})
	}
	return append(list, notNegative(d.Mean, "daily", "mean")...)
}

// into returns how many bursts are over at a time, and how far it is in the current cycle, which
// begins with a burst.
func (b Burst) into(t float64) (over, cycle float64) {
	t -= b.After.Seconds()
	over = math.Floor(t / b.Every.Seconds())
	return over, t - over*b.Every.Seconds()
}

func (b Burst) at(t float64) float64 {
	if t >= b.After.Seconds() {
		if _, cycle := b.into(t); cycle < b.Lasting.Seconds() {
			return b.Peak
		}
	}
	return b.Base
}

// count adds up what comes before, in and between bursts. It subtracts nothing of the size of the sum, so it never
// goes down by rounding.
func (b Burst) count(t float64) float64 {
	before := b.After.Seconds()
	if t < before {
		return b.Base * t
	}
	over, cycle := b.into(t)
	lasting, every := b.Lasting.Seconds(), b.Every.Seconds()
	return b.Base*(before+over*(every-lasting)+max(0, cycle-lasting)) + b.Peak*(over*lasting+min(cycle, lasting))
}

func (b Burst) bounds() (low, high float64) { return min(b.Base, b.Peak), max(b.Base, b.Peak) }

func (b Burst) problems() (list []Problem) {
	if b.Every <= 0 || b.Lasting <= 0 || b.Lasting > b.Every {
		list = append(list, Problem{at("burst"), "it needs \"every\" and a \"lasting\" that is not longer"})
	}
	if b.After < 0 {
		list = append(list, Problem{at("burst", "after"), "it must not be negative"})
	}
	return append(append(list, notNegative(b.Base, "burst", "base")...), notNegative(b.Peak, "burst", "peak")...)
}

// MaxRate is the highest rate, in requests a second, that a load may have. No machine sends more.
const MaxRate = 10_000

func notNegative(v float64, path ...any) []Problem {
	if !(v >= 0) {
		return []Problem{{path, fmt.Sprintf("%g: want a number of requests a second, not negative", v)}}
	}
	return nil
}
