package past

import (
	"math"
	"math/rand/v2"
	"time"
)

// Fading is how many of many things there still are: all of the last ones, ever fewer of those before.
type Fading struct {
	Dense  time.Duration // since when there are all
	Most   float64       // how many these are at most
	Older  float64       // how many of the others there are, about
	Oldest time.Duration // how old one can be
}

// Fade draws when things were that come at a rate per second at the join, from a time backwards.
func (p *Past) Fade(r *rand.Rand, from time.Time, rate float64, f Fading) (list []time.Time) {
	full := min(f.Dense.Seconds(), f.Most/rate)
	tail := f.Older / math.Log(f.Oldest.Seconds()/full)
	for ago := p.Join.Sub(from).Seconds(); ; {
		density := rate
		if ago > full {
			density = min(rate, rate*math.Pow(full/ago, 3)+tail/ago)
		}
		at := p.Join.Add(-time.Duration(ago * float64(time.Second)))
		density *= max(p.Work(at.Add(-time.Second), at), 0.01)
		if ago += r.ExpFloat64() / density; ago > f.Oldest.Seconds() {
			return list
		}
		list = append(list, p.Join.Add(-time.Duration(ago*float64(time.Second))))
	}
}
