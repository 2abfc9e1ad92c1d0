package past

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// Window is how far back a past is told in detail. Before it, everything was as it is on average.
	Window = 24 * time.Hour
	// step is how finely the curve is known.
	step = 5 * time.Second

	daily, halfDaily = 0.22, 0.06 // how much load changes in a day
	settling         = time.Minute
)

// Past is what was before a moment, the join.
type Past struct {
	Seed uint64
	// Began is since when there has been load, and Loaded since when it has been as it was all the time.
	Began, Loaded time.Time
	// Join is until when the past goes.
	Join time.Time
	Cast
	// Excursions are when something was unusual, the last one first.
	Excursions []Excursion
	// Log adds a line to the log of the program that is told its past, if it has one: lines are given from the last one
	// backwards, each with the time at which it was written. It reports whether the log reaches back further.
	Log func(at time.Time, line string) (further bool)

	phase, half float64   // of the day
	now         float64   // the daily curve at the join
	work        []float64 // the load of the last i steps, in seconds of the load at the join
}

// Cast is who was there in the past.
type Cast struct {
	// Gone are the pods that were there before those of the present.
	Gone []Gone
	// Sets are when the ReplicaSets were made, by namespace/name.
	Sets map[string]time.Time
}

// Gone is a pod that another one has taken the place of. Its owners are ReplicaSets.
type Gone struct {
	Namespace, Pod, Owner string
	Successor, Heir       string // the pod that is there now, and its owner
	From, To              time.Time
}

// New draws a past.
func New(seed uint64, loaded, join time.Time, cast Cast) *Past {
	r := rand.New(rand.NewPCG(seed, 0x9a57))
	p := &Past{
		Seed: seed, Began: loaded, Loaded: loaded, Join: join, Cast: cast,
		phase: 2 * math.Pi * r.Float64(), half: 2 * math.Pi * r.Float64(),
	}
	p.Excursions = drawExcursions(r, join)
	p.now = p.day(0)
	p.work = make([]float64, 1+Window/step)
	for i := 1; i < len(p.work); i++ {
		p.work[i] = p.work[i-1] + step.Seconds()*p.load(time.Duration(i)*step-step/2)
	}
	return p
}

// day is the daily curve some time ago.
func (p *Past) day(ago time.Duration) float64 {
	x := 2 * math.Pi * ago.Hours() / 24
	return 1 + daily*math.Cos(x+p.phase) + halfDaily*math.Cos(2*x+p.half)
}

// load is how much there was to do some time ago; at the join it is 1.
func (p *Past) load(ago time.Duration) float64 {
	noise := 0.04*Noise(p.Seed, ago, 23*time.Minute) + 0.03*Noise(p.Seed+1, ago, 4*time.Minute)
	x := p.day(ago) / p.now * (1 + noise*min(1, ago.Seconds()/settling.Seconds()))
	for _, e := range p.Excursions {
		if e.Kind == Surge {
			x *= 1 + (e.Times-1)*e.share(p.Join.Add(-ago))
		}
	}
	return x
}

// Work is what there was to do from one time to another, as the time that it would have taken to come at the
// rate of the join.
func (p *Past) Work(from, to time.Time) float64 {
	return p.since(p.Join.Sub(from)) - p.since(p.Join.Sub(to))
}

// since is the work of the time since a while ago. The load after the join is as at the join.
func (p *Past) since(ago time.Duration) float64 {
	switch {
	case ago <= 0:
		return ago.Seconds()
	case ago >= Window:
		return p.work[len(p.work)-1] + (ago-Window).Seconds()/p.now
	}
	i, rest := ago/step, (ago%step).Seconds()/step.Seconds()
	return p.work[i] + rest*(p.work[i+1]-p.work[i])
}

// Noise is a smooth curve between -1 and 1 that is drawn from a seed. It changes in times of the given length.
func Noise(seed uint64, ago, length time.Duration) float64 {
	n := int64(math.Floor(float64(ago) / float64(length)))
	x := float64(ago)/float64(length) - float64(n)
	a, b := lattice(seed, n), lattice(seed, n+1)
	return a + (b-a)*x*x*(3-2*x)
}

func lattice(seed uint64, n int64) float64 {
	return 2*Uniform(seed, uint64(n)) - 1
}

// Uniform is a number from 0 to 1 that is drawn from a seed, the nth one.
func Uniform(seed, n uint64) float64 {
	x := seed + n*0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// GoneBefore are the pods that a pod has taken the place of, the last one first.
func (p *Past) GoneBefore(namespace, pod string) (list []Gone) {
	for _, g := range p.Gone {
		if g.Namespace == namespace && g.Successor == pod {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b Gone) int { return b.To.Compare(a.To) })
	return list
}
