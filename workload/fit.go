package workload

import (
	"errors"
	"math"
	"slices"
	"time"
)

// Fit is a load that is like a trace: a cosine, or a constant where there is none to be seen, with noise and surges.
type Fit struct {
	Arrivals
	// Error is how far the curve is off in an interval of the trace (root mean square), as a part of the mean rate.
	// Noise, surges and the chance of single requests are in it: no curve is better than these.
	Error float64
	// Explained is the part of the changes from interval to interval that the curve explains (R²), without surges.
	Explained float64
	// Left is what of the error neither surges nor the chance of single requests explain: the noise, if it is no more
	// than a load can have.
	Left float64
}

const (
	// explainsEnough is how much of the changes a cosine must explain to be believed, whatever the chance is.
	explainsEnough = 0.1
	// surgeSigmas is how many standard deviations an interval must be above the curve to be a surge, and surgeFactor
	// how many times the curve.
	surgeSigmas, surgeFactor = 5, 1.5
	// periods is how many periods are tried, between four intervals and all of the trace.
	periods = 600
)

// FitCounts finds the load that is most like counts. Times are those of the trace; see [Fit.Scale].
func FitCounts(c *Counts) (*Fit, error) {
	if len(c.Requests) < leastIntervals {
		return nil, tooShort(len(c.Requests))
	}
	if c.Total() == 0 {
		return nil, errors.New("the trace has no requests")
	}
	seconds := c.Interval.Seconds()
	y, ordinary := make([]float64, len(c.Requests)), make([]bool, len(c.Requests))
	for i, n := range c.Requests {
		y[i], ordinary[i] = n/seconds, true
	}
	var w wave
	for range 3 { // What is far above the curve pulls it up, so it is left out, and the curve drawn again.
		w = bestWave(y, ordinary)
		markSurges(y, ordinary, w, seconds)
	}
	f := &Fit{Arrivals: Arrivals{Rate: w.rate(c.Interval)}, Explained: w.explained(y, ordinary)}
	f.Error = w.off(y)
	f.Left = math.Sqrt(max(0, w.spread(y, ordinary)-w.chance(ordinary, seconds)))
	f.Noise = min(MaxNoise, math.Round(f.Left*1000)/1000)
	f.Surges = findSurges(y, ordinary, w, c.Interval)
	return f, nil
}

// Scale makes times shorter and the rate another, in the mean: a day of a trace can be minutes of a run. Each is
// left as it is if 0. What would be shorter or longer than a load can have is as short or long as that.
func (f *Fit) Scale(speed, mean float64) {
	shorter := func(d time.Duration) time.Duration {
		return time.Duration(min(float64(d)/speed, float64(forever/2))).Round(time.Second)
	}
	p := &f.Rate[0]
	factor := 1.0
	if p.Daily != nil {
		if mean > 0 {
			factor = mean / p.Daily.Mean
		}
		p.Daily.Mean = figures(p.Daily.Mean * factor)
		if speed > 0 {
			p.Daily.Period, p.Daily.Peak = max(shorter(p.Daily.Period), time.Second), shorter(p.Daily.Peak)
		}
	} else if mean > 0 {
		p.Constant = &mean
	}
	if s := f.Surges; s != nil && speed > 0 {
		s.Lasting = max(shorter(s.Lasting), tick)
		s.Every = max(shorter(s.Every), 2*s.Lasting)
	}
}

// wave is a cosine over intervals: mean + cosine·cos(ωi) + sine·sin(ωi). A period of 0 is a constant.
type wave struct {
	mean, cosine, sine float64
	period             float64 // in intervals
}

func (w wave) at(i int) float64 {
	if w.period == 0 {
		return w.mean
	}
	s, c := math.Sincos(2 * math.Pi * (float64(i) + 0.5) / w.period)
	return max(0, w.mean+w.cosine*c+w.sine*s)
}

// bestWave is the cosine of any period that is nearest, or the mean if none is much nearer than that.
func bestWave(y []float64, ordinary []bool) wave {
	flat := wave{}
	n := 0.0
	for i, v := range y {
		if ordinary[i] {
			flat.mean, n = flat.mean+v, n+1
		}
	}
	flat.mean /= max(n, 1)
	best, least := flat, flat.rest(y, ordinary)
	all := least
	try := func(period float64) {
		if w, ok := leastSquares(y, ordinary, period); ok {
			if rest := w.rest(y, ordinary); rest < least {
				best, least = w, rest
			}
		}
	}
	const shortest = 4.0
	growth := math.Pow(float64(len(y))/shortest, 1.0/(periods-1))
	for k, period := 0, shortest; k < periods; k, period = k+1, period*growth {
		try(period)
	}
	for step := growth - 1; best.period > 0 && step > 1e-5; step /= 2 { // Finer around the best.
		at := best.period
		try(min(at*(1+step/2), float64(len(y))))
		try(at * (1 - step/2))
	}
	// A cosine has three numbers more than a constant, the period among them, and the best of many is taken: by chance
	// alone it explains a few parts in n.
	if need := max(explainsEnough, 12/n); all == 0 || 1-least/all < need {
		return flat
	}
	return best
}

// rest is the sum of squares that a wave leaves.
func (w wave) rest(y []float64, ordinary []bool) (sum float64) {
	for i, v := range y {
		if ordinary[i] {
			sum += (v - w.at(i)) * (v - w.at(i))
		}
	}
	return sum
}

// leastSquares is the nearest cosine of a period: the normal equations of three unknowns, by Cramer's rule.
func leastSquares(y []float64, ordinary []bool, period float64) (wave, bool) {
	var m [3][3]float64
	var b [3]float64
	for i, v := range y {
		if !ordinary[i] {
			continue
		}
		s, c := math.Sincos(2 * math.Pi * (float64(i) + 0.5) / period)
		x := [3]float64{1, c, s}
		for j := range x {
			b[j] += x[j] * v
			for k := range x {
				m[j][k] += x[j] * x[k]
			}
		}
	}
	d := determinant(m)
	if math.Abs(d) < 1e-9*m[0][0]*m[0][0]*m[0][0] {
		return wave{}, false
	}
	var solution [3]float64
	for j := range solution {
		replaced := m
		for k := range replaced {
			replaced[k][j] = b[k]
		}
		solution[j] = determinant(replaced) / d
	}
	w := wave{solution[0], solution[1], solution[2], period}
	return w, w.mean > 0 && math.Hypot(w.cosine, w.sine) <= w.mean*1.2 // It is no request less than none.
}

func determinant(m [3][3]float64) float64 {
	return m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) - m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) +
		m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
}

// rate is the wave as a load has it.
func (w wave) rate(interval time.Duration) Rate {
	if w.period == 0 {
		return Constant(figures(w.mean))
	}
	peak := math.Mod(math.Atan2(w.sine, w.cosine)/(2*math.Pi)+1, 1) // a part of the period
	period := time.Duration(w.period * float64(interval)).Round(time.Second)
	return Rate{{Daily: &Daily{
		Mean: figures(w.mean), Amplitude: min(1, figures(math.Hypot(w.cosine, w.sine)/w.mean)), Period: period,
		Peak: time.Duration(peak * float64(period)).Round(time.Second),
	}}}
}

// figures is a number with three figures that count.
func figures(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2)
	return math.Round(v/unit) * unit
}

// explained is the part of the changes that the wave explains.
func (w wave) explained(y []float64, ordinary []bool) float64 {
	flat := wave{}
	n := 0.0
	for i, v := range y {
		if ordinary[i] {
			flat.mean, n = flat.mean+v, n+1
		}
	}
	flat.mean /= max(n, 1)
	if all := flat.rest(y, ordinary); all > 0 {
		return max(0, 1-w.rest(y, ordinary)/all)
	}
	return 0
}

// off is how far all of y is off, as a part of its mean.
func (w wave) off(y []float64) float64 {
	sum, squares := 0.0, 0.0
	for i, v := range y {
		sum, squares = sum+v, squares+(v-w.at(i))*(v-w.at(i))
	}
	return math.Sqrt(squares*float64(len(y))) / sum
}

// spread is the variance around the wave, as a part of it squared.
func (w wave) spread(y []float64, ordinary []bool) float64 {
	sum, n := 0.0, 0.0
	for i, v := range y {
		if at := w.at(i); ordinary[i] && at > 0 {
			sum, n = sum+(v/at-1)*(v/at-1), n+1
		}
	}
	return sum / max(n, 1)
}

// chance is the part of the spread that single requests have when each comes by itself.
func (w wave) chance(ordinary []bool, seconds float64) float64 {
	sum, n := 0.0, 0.0
	for i := range ordinary {
		if at := w.at(i); ordinary[i] && at > 0 {
			sum, n = sum+1/(at*seconds), n+1
		}
	}
	return sum / max(n, 1)
}

// markSurges marks what is far above the curve: beyond what is usual, which is the median of how far others are
// off, and beyond what chance allows.
func markSurges(y []float64, ordinary []bool, w wave, seconds float64) {
	offs := make([]float64, 0, len(y))
	for i, v := range y {
		offs = append(offs, math.Abs(v-w.at(i)))
	}
	slices.Sort(offs)
	usual := 1.4826 * offs[len(offs)/2] // of a normal distribution, the standard deviation
	for i, v := range y {
		at := w.at(i)
		sigma := max(usual, math.Sqrt(max(at, 1e-9)/seconds))
		ordinary[i] = v-at < surgeSigmas*sigma || v < surgeFactor*at
	}
}

// findSurges are those that were marked, as a load has them: as often, as long and as high as they are in the mean.
func findSurges(y []float64, ordinary []bool, w wave, interval time.Duration) *Surges {
	groups, crowded, factor := 0, 0, 0.0
	for i, v := range y {
		if ordinary[i] {
			continue
		}
		if i == 0 || ordinary[i-1] {
			groups++
		}
		crowded++
		factor += v / max(w.at(i), 1e-9)
	}
	if groups == 0 || crowded*2 > len(y) {
		return nil
	}
	round := func(d time.Duration) time.Duration { return max(d.Round(time.Second), tick) }
	s := &Surges{
		Factor:  min(maxFactor, figures(factor/float64(crowded))),
		Lasting: round(interval * time.Duration(crowded) / time.Duration(groups)),
	}
	s.Every = max(round(interval*time.Duration(len(y))/time.Duration(groups)), 2*s.Lasting)
	return s
}
