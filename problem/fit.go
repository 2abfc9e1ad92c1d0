package problem

import (
	"errors"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

const (
	// fittedDay is how long a day of a trace is made if it is longer than a load may have.
	fittedDay = 10 * time.Minute
	// fittedRate is how many requests a second a load has whose trace has more or less than a load may have.
	fittedRate = 50
)

// Fitted is a load that was fitted to a trace.
type Fitted struct {
	Load Load
	Fit  *workload.Fit
	// Notes say what is not as in the trace, a line each.
	Notes []string
}

// FitLoad returns the load that is most like a trace and that a problem can have. Period is how long its period is to
// be, mean how many requests a second there are to be; 0 leaves them as they are, as far as a load can have them.
func FitLoad(c *workload.Counts, period time.Duration, mean float64) (*Fitted, error) {
	if period < 0 || period > maxDay {
		return nil, fmt.Errorf("a period of %v: want at most %v, a run takes minutes", period, maxDay)
	}
	if mean != 0 && !(mean >= minRate && mean <= maxRate) {
		return nil, fmt.Errorf("%g requests a second: want %d to %d", mean, minRate, maxRate)
	}
	fit, err := workload.FitCounts(c)
	if err != nil {
		return nil, err
	}
	f := &Fitted{Fit: fit}
	f.scale(period, mean)
	f.Load.Arrivals = fit.Arrivals
	f.bound()
	if wrong := f.Load.senseless(); len(wrong) > 0 {
		return nil, errors.New(wrong[0].String() + "; choose another mean")
	}
	return f, nil
}

func (f *Fitted) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// scale makes the trace's times and rate those of a run.
func (f *Fitted) scale(period time.Duration, mean float64) {
	d := f.Fit.Rate[0].Daily
	speed, was := 0.0, 0.0
	if d != nil {
		was = d.Mean
		if period == 0 && d.Period > maxDay {
			period = fittedDay
		}
		if period > 0 {
			speed = float64(d.Period) / float64(period)
			f.note("%v of the trace are %v here", d.Period, period)
		}
	} else {
		was = *f.Fit.Rate[0].Constant
	}
	most := *f.Fit
	most.Surges = nil // They can be made lower.
	if _, high := most.Bounds(); mean == 0 && (was < minRate || high > maxRate) {
		mean = fittedRate
	}
	if mean > 0 {
		f.note("%.3g requests/s of the trace are %.3g here", was, mean)
	}
	f.Fit.Scale(speed, mean)
}

// bound keeps the load within what a run can be judged by: requests at any time, and not more than can be served.
func (f *Fitted) bound() {
	l := &f.Load
	if _, high := l.Bounds(); l.Surges != nil && high > maxRate {
		l.Surges.Factor = max(1, 0.99*l.Surges.Factor*maxRate/high)
		f.note("surges are lower than in the trace: %d requests/s are the most", maxRate)
	}
	d := l.Rate[0].Daily
	if low, _ := l.Bounds(); d != nil && low < minRate {
		flat := *l
		flat.Rate = workload.Constant(d.Mean)
		lowest, _ := flat.Bounds() // with the noise alone
		d.Amplitude = max(0, min(d.Amplitude, 1-1.01*minRate/lowest))
		f.note("the curve is flatter than in the trace: there must be %d request a second at any time", minRate)
	}
	if low, _ := l.Bounds(); low < minRate && l.Noise > 0 {
		l.Noise = 0
		f.note("there is no noise: there must be %d request a second at any time", minRate)
	}
}
