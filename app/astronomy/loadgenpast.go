package astronomy

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// remember has the load generator go on from a past, if it is told one. The requests of a few seconds, of which there
// are none of some names, say little about weeks: so it is told by what users do how many there were.
func (g *loadgen) remember(users int, browsers bool) {
	g.s.Env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		clear(g.stats) // What failed while everything was started was weeks ago.
		return nil
	})
	g.s.Env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		if p.Times(g.began) > 0 {
			g.recallVisits(users, browsers, p.Loaded.Sub(g.began), rand.New(rand.NewPCG(p.Seed, 0x10c5)))
		}
		return nil
	})
}

// recallVisits counts what users have asked for in a time. All of it went well, and took as long as it does now.
func (g *loadgen) recallVisits(users int, browsers bool, lasting time.Duration, r *rand.Rand) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var seen visits
	for _, v := range g.stats {
		seen.requests += v.requests
		seen.spent += v.spent
	}
	asked := map[string]float64{}
	for i := range users {
		tasks := tasksOf(i, browsers)
		each := lasting.Seconds() / ((leastThought + mostThought) / 2).Seconds() / float64(weights(tasks))
		for _, t := range tasks {
			done := each * float64(t.weight)
			done = math.Round(max(0, done+math.Sqrt(done)*r.NormFloat64())) // It is by chance.
			for name, n := range t.asks {
				asked[name] += done * n
			}
		}
	}
	for name, n := range asked {
		v := g.stats[name]
		if v == nil {
			v = &visits{}
			g.stats[name] = v
		}
		took := v.mean()
		if took == 0 {
			took = seen.mean()
		}
		v.requests += int64(n)
		v.spent += time.Duration(n * float64(took))
	}
}

// mean is how long requests have taken.
func (v *visits) mean() time.Duration {
	if v.requests == 0 {
		return 0
	}
	return v.spent / time.Duration(v.requests)
}
