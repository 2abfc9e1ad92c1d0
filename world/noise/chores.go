package noise

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
)

// chore is something that is done now and then while an agent works. Each time between so much and twice that passes,
// drawn, before it is done for the first time and from then on. One that fails is not done: nobody depends on it.
type chore struct {
	purpose           uint64 // what it draws for
	first, calm, busy time.Duration
	do                func(ctx context.Context, r *rand.Rand)
}

// chores are all that are done.
func (l *Life) chores() []chore {
	list := []chore{
		{4, 6 * time.Second, 3 * time.Minute, 40 * time.Second, l.renew},
		{5, 8 * time.Second, time.Minute, 15 * time.Second, l.query},
		{6, 10 * time.Second, time.Minute, 20 * time.Second, l.surge},
	}
	if cloud.Refusal(l.Env.Chaos, cloud.Disturbance{Pod: killContainers}) == "" {
		list = append(list, chore{7, 12 * time.Second, 4 * time.Minute, 40 * time.Second, l.restart})
	}
	if l.Level == Busy { // An alert is something wrong, if only with a pod of no use: not where it is calm.
		list = append(list, chore{8, 4 * time.Second, 0, time.Minute, l.check})
	}
	return list
}

// run does it until the context ends.
func (c chore) run(ctx context.Context, l *Life) {
	r, pause := l.draw(c.purpose), c.calm
	if l.Level == Busy {
		pause = c.busy
	}
	for wait := c.first; ; wait = pause {
		if until(ctx, time.Now().Add(wait+time.Duration(r.Int64N(int64(wait))))) != nil {
			return
		}
		c.do(ctx, r)
	}
}

// begin begins all chores.
func (l *Life) begin(ctx context.Context, done *sync.WaitGroup) {
	if s := l.certificate(ctx); s != nil {
		l.certified = s.ResourceVersion
	}
	for _, c := range l.chores() {
		done.Go(func() { c.run(ctx, l) })
	}
}
