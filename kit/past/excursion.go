package past

import (
	"math/rand/v2"
	"strings"
	"time"
)

// Kind is what was unusual.
type Kind int

// What there can have been.
const (
	Surge Kind = iota // more load
	Slow              // HTTP requests took longer
)

const (
	// slowMetric is what tells how long HTTP requests took.
	slowMetric = "http_request_duration_seconds"
	// slowSum is how many times longer HTTP requests took when they were slow.
	slowSum = 12
	// slowPart is the part of HTTP requests that were.
	slowPart = 0.26
	// edge is how long an excursion takes to begin, and to end.
	edge = 20 * time.Second
)

// Excursion is a time when something was unusual.
type Excursion struct {
	Kind     Kind
	From, To time.Time
	Times    float64 // by how much, of a surge
}

// slots are when there were excursions: one in each, this long ago.
var slots = []struct {
	from, to time.Duration
	kinds    []Kind
}{
	{25 * time.Minute, 100 * time.Minute, []Kind{Surge, Slow}},
	{2 * time.Hour, 3 * time.Hour, []Kind{Slow}},
	{4 * time.Hour, 5 * time.Hour, []Kind{Surge}},
	{7 * time.Hour, 12 * time.Hour, []Kind{Surge, Slow}},
	{13 * time.Hour, 22 * time.Hour, []Kind{Surge, Slow}},
}

func drawExcursions(r *rand.Rand, join time.Time) (list []Excursion) {
	for _, s := range slots {
		from := join.Add(-s.from - time.Duration(r.Int64N(int64(s.to-s.from))))
		e := Excursion{
			Kind: s.kinds[r.IntN(len(s.kinds))], From: from, Times: 6 + 3*r.Float64(),
			To: from.Add(150*time.Second + time.Duration(r.Int64N(int64(150*time.Second)))),
		}
		list = append(list, e)
	}
	return list
}

// share is how much of an excursion there is at a time, from 0 to 1.
func (e Excursion) share(t time.Time) float64 {
	in := min(t.Sub(e.From), e.To.Sub(t)).Seconds() / edge.Seconds()
	return max(0, min(1, in))
}

// Counted is what a counter has counted from one time to another, as the time that it would have taken at the
// rate of the join. Le is the upper bound of a bucket of a histogram.
func (p *Past) Counted(metric string, le float64, from, to time.Time) float64 {
	x := p.Work(from, to)
	times := slowness(metric, le)
	if times == 1 {
		return x
	}
	for _, e := range p.Excursions {
		if e.Kind != Slow {
			continue
		}
		a, b := e.From, e.To
		if a.Before(from) {
			a = from
		}
		if b.After(to) {
			b = to
		}
		if b.After(a) {
			x += (times - 1) * p.Work(a, b)
		}
	}
	return x
}

// Slow is the part of HTTP requests that took much longer than usual at a time: a second and a half on average.
func (p *Past) Slow(t time.Time) (part float64) {
	for _, e := range p.Excursions {
		if e.Kind == Slow {
			part = max(part, slowPart*e.share(t))
		}
	}
	return part
}

// slowness is by how much a counter is faster when HTTP requests are slow: some are not in the buckets
// in which they usually are.
func slowness(metric string, le float64) float64 {
	rest, ok := strings.CutPrefix(metric, slowMetric)
	switch {
	case !ok:
		return 1
	case rest == "_sum":
		return slowSum
	case rest != "_bucket" || le >= 10:
		return 1
	case le >= 5:
		return 0.995
	case le >= 2.5:
		return 0.97
	case le >= 1:
		return 0.82
	}
	return 1 - slowPart
}
