package cri

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// recollection is what a program does when it is told its past.
type recollection func(context.Context, *past.Past) error

// remember keeps what the main program does when it is told its past.
func (c *Container) remember(as kit.Telling, f func(context.Context, *past.Past) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recollections[as] = append(c.recollections[as], f)
}

// traffic is what a host had received and sent.
type traffic [4]uint64

func counters(c *vnet.Counters) [4]*atomic.Uint64 {
	return [4]*atomic.Uint64{&c.ReceivedBytes, &c.ReceivedPackets, &c.SentBytes, &c.SentPackets}
}

// Mark notes what all containers have used so far. What they use from now on is what they usually do.
func (r *Runtime) Mark() {
	for _, c := range r.containersOf("") {
		c.group.mu.Lock()
		c.group.marked = c.group.stats
		c.group.mu.Unlock()
		c.group.sampleFrom(r.cfg.Now())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		for i, n := range counters(s.host.Counters()) {
			s.marked[i] = n.Load()
		}
	}
}

// Age gives containers that are older than their programs what they would have used in all their time, had they
// always used as much as since Mark.
func (r *Runtime) Age(p *past.Past) {
	for _, c := range r.containersOf("") {
		c.mu.Lock()
		started := c.started
		c.mu.Unlock()
		c.group.age(timesOf(p, started))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		times := timesOf(p, s.created)
		if times == 0 || s.shared {
			continue
		}
		for i, n := range counters(s.host.Counters()) {
			now := n.Load()
			n.Add(uint64(more(float64(now), float64(s.marked[i]), times)))
		}
	}
}

// timesOf is how many times as much was done since a time as since there was load. It is 0 if there is
// no past to tell.
func timesOf(p *past.Past, since time.Time) float64 {
	took := p.Join.Sub(p.Loaded).Seconds()
	if took <= 0 || since.IsZero() || !since.Before(p.Loaded) {
		return 0
	}
	return p.Work(since, p.Join) / took
}

// more is what is missing to a number that has grown to what it would have become.
func more(now, marked, times float64) float64 { return max(0, (now-marked)*times-now) }

func (g *group) age(times float64) {
	if times == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s, m := g.stats, g.marked
	g.before = groupStats{
		used:      time.Duration(more(float64(s.used), float64(m.used), times)),
		throttled: time.Duration(more(float64(s.throttled), float64(m.throttled), times)),
		periods:   uint64(more(float64(s.periods), float64(m.periods), times)),
		throttledPeriods: uint64(more(float64(s.throttledPeriods), float64(m.throttledPeriods),
			times)),
	}
}

// lived is what the group has used, with what it is said to have used before. It is called with g.mu held.
func (g *group) lived() groupStats {
	s := g.stats
	s.used += g.before.used
	s.throttled += g.before.throttled
	s.periods += g.before.periods
	s.throttledPeriods += g.before.throttledPeriods
	return s
}

// Recall tells programs their past, as far as they want to know it. It is nil for those who are told that it begins.
func (r *Runtime) Recall(ctx context.Context, as kit.Telling, p *past.Past) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range r.containersOf("") {
		c.mu.Lock()
		list, started, name := c.recollections[as], c.started, c.config.GetMetadata().GetName()
		c.mu.Unlock()
		if p != nil && !started.Before(p.Loaded) {
			continue
		}
		for _, f := range list {
			g.Go(func() error {
				if err := f(ctx, p); err != nil {
					return fmt.Errorf("tell %s its past: %w", name, err)
				}
				return nil
			})
		}
	}
	return g.Wait()
}
