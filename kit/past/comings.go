package past

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Life is how long a client keeps a connection before it takes another one.
const Life = 4 * time.Hour

// Comings draws when clients have connected to a server that was started at a time and has some connections, the last
// time first: they have always kept as many, each for Life or so. Who draws for the same server draws the same.
func (p *Past) Comings(server string, connections int, started time.Time) (list []time.Time) {
	if connections == 0 || p.Times(started) == 0 {
		return nil
	}
	r := p.draw(server)
	for at := p.Loaded; ; {
		at = at.Add(-time.Duration(r.ExpFloat64() * float64(Life) / float64(connections)))
		if at.Before(started) {
			return list
		}
		list = append(list, at)
	}
}

// Came draws when the connections that a server has were made: not before it was started.
func (p *Past) Came(server string, connections int, started time.Time) (list []time.Time) {
	r := p.draw("came to " + server)
	long := min(Life, p.Loaded.Sub(started))
	for range connections {
		list = append(list, p.Loaded.Add(-time.Duration(r.Float64()*float64(long))))
	}
	return list
}

// draw returns the numbers that are drawn for somebody.
func (p *Past) draw(who string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(who)) // It never fails.
	return rand.New(rand.NewPCG(p.Seed, h.Sum64()))
}
