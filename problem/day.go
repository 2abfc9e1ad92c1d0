package problem

import (
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

// This file is about shifts over which a whole day of users passes. Time is real: only how many users come goes through
// a day while the shift lasts.

// night is the part of the users of the busiest time who come in the night.
const night = 0.25

// OverADay is a shift in which as many users come as on a whole day, from one afternoon to the next. The most are as
// many as the document's load has at most.
func (p *Problem) OverADay() (*Problem, error) {
	if p.Shift() == nil {
		return nil, fmt.Errorf("%s is no shift", p.ID)
	}
	if err := p.Document.Load.dayless(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.ID, err)
	}
	q := *p
	q.day = true
	return &q, nil
}

// Day reports whether a whole day of users passes over a shift.
func (p *Problem) Day() bool { return p.Shift() != nil && (p.day || p.Shift().Day) }

// Load is the load that runs.
func (p *Problem) Load() *Load {
	if !p.Day() {
		return &p.Document.Load
	}
	l := p.Document.Load
	high := l.highest()
	l.Rate = workload.Rate{{Daily: &workload.Daily{
		Mean: high * (1 + night) / 2, Amplitude: (1 - night) / (1 + night), Period: p.Length(),
	}}}
	return &l
}

// highest is the highest rate, without what noise and surges add.
func (l Load) highest() float64 {
	l.Noise, l.Surges = 0, nil
	return l.most()
}

// dayless says why no day can be made of a load.
func (l *Load) dayless() error {
	switch {
	case l.Users != nil || l.Replay != nil:
		return errors.New("a day is made of a rate, and its load is of users or a trace")
	case l.highest()*night < minRate:
		return fmt.Errorf("in the night, when a quarter of the users come, there must be %d request a second", minRate)
	}
	return nil
}

// hour is how long an hour of the day takes.
func (p *Problem) hour() time.Duration { return p.Length() / 24 }

// dayTold is what whoever is on call is told of the day.
func (p *Problem) dayTold() string {
	if !p.Day() {
		return ""
	}
	return fmt.Sprintf(" Users come as on a whole day meanwhile, an hour of it in %v: it is early afternoon now, "+
		"when most come, night in the middle of the shift, and afternoon again at its end. Everything else goes at "+
		"its usual pace.",
		spelled(p.hour().Round(time.Second)))
}
