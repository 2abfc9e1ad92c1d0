package past

import "time"

// Counter is a number that a program counts up.
type Counter interface {
	Load() int64
	Add(int64) int64
}

// Number is a Counter that somebody else guards.
type Number int64

// Load implements Counter.
func (n *Number) Load() int64 { return int64(*n) }

// Add implements Counter.
func (n *Number) Add(by int64) int64 {
	*n += Number(by)
	return int64(*n)
}

// Tally is what a program has counted, and had counted before there was the usual load.
type Tally []tallied

type tallied struct {
	Counter
	marked int64
}

// NewTally returns the tally of counters.
func NewTally(counters ...Counter) Tally {
	t := make(Tally, len(counters))
	for i, c := range counters {
		t[i].Counter = c
	}
	return t
}

// Mark says that from now on there is the usual load.
func (t Tally) Mark() {
	for i := range t {
		t[i].marked = t[i].Load()
	}
}

// Age adds what would have been counted since a time, had it always been as much as since Mark.
func (t Tally) Age(p *Past, since time.Time) {
	times := p.Times(since)
	for _, c := range t {
		if now := c.Load(); times > 0 {
			c.Add(int64(More(float64(now), float64(c.marked), times)))
		}
	}
}

// Times is how many times as much was done since a time as since there was the usual load. It is 0 if there is no
// past to tell.
func (p *Past) Times(since time.Time) float64 {
	took := p.Join.Sub(p.Loaded).Seconds()
	if took <= 0 || since.IsZero() || !since.Before(p.Loaded) {
		return 0
	}
	return p.Work(since, p.Join) / took
}

// More is what is missing to a number that has grown to what it would have become.
func More(now, marked, times float64) float64 { return max(0, (now-marked)*times-now) }
