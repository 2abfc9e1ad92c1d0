package cri

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// recollection is what a program does when it is told its past.
type recollection func(context.Context, *past.Past) error

// tell tells the program of a container its past. A program that panics ends nothing but the telling.
func (f recollection) tell(ctx context.Context, name string, p *past.Past) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("tell %s its past: panic: %v\n%s", name, r, debug.Stack())
		}
	}()
	if err := f(ctx, p); err != nil {
		return fmt.Errorf("tell %s its past: %w", name, err)
	}
	return nil
}

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
		c.group.age(p.Times(started))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		times := p.Times(s.created)
		if times == 0 || s.shared {
			continue
		}
		for i, n := range counters(s.host.Counters()) {
			now := n.Load()
			n.Add(uint64(past.More(float64(now), float64(s.marked[i]), times)))
		}
	}
}

func (g *group) age(times float64) {
	if times == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s, m := g.stats, g.marked
	g.before = groupStats{
		used:      time.Duration(past.More(float64(s.used), float64(m.used), times)),
		throttled: time.Duration(past.More(float64(s.throttled), float64(m.throttled), times)),
		periods:   uint64(past.More(float64(s.periods), float64(m.periods), times)),
		throttledPeriods: uint64(past.More(float64(s.throttledPeriods), float64(m.throttledPeriods),
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
		told := p
		if p != nil && !started.Before(p.Loaded) {
			continue
		}
		if p != nil {
			own := *p
			own.Log, told = c.recollect(started), &own
		}
		for _, f := range list {
			g.Go(func() error {
				return f.tell(ctx, name, told)
			})
		}
	}
	if err := g.Wait(); err != nil || as != kit.Keeper {
		return err
	}
	for _, c := range r.containersOf("") {
		c.mu.Lock()
		started, running := c.started, c.state == runtimeapi.ContainerState_CONTAINER_RUNNING
		c.mu.Unlock()
		if !running || !started.Before(p.Loaded) {
			continue
		}
		name := c.config.GetMetadata().GetName()
		said := c.log.age(p, started, name)
		if err := c.addRotated(); err != nil {
			return err
		}
		before := c.predecessor()
		if before == nil {
			continue
		}
		before.log.ageEnded(p, said, before.started, before.finished, name)
		if err := before.addRotated(); err != nil {
			return err
		}
	}
	return nil
}

// recollect returns what takes lines that the main program would have written, and those of the one before it.
func (c *Container) recollect(started time.Time) func(at time.Time, line string) bool {
	before := c.predecessor()
	return func(at time.Time, line string) bool {
		switch {
		case !at.Before(started):
			return c.log.recollect(at, line)
		case before == nil:
			return false
		}
		return before.log.recollect(at, line)
	}
}

// predecessor is the container that ended before this one was started in its place, or nil.
func (c *Container) predecessor() (last *Container) {
	for _, o := range c.runtime.containersOf(c.sandbox.id) {
		if o.config.GetMetadata().GetName() != c.config.GetMetadata().GetName() || o == c {
			continue
		}
		o.mu.Lock()
		ended := o.state == runtimeapi.ContainerState_CONTAINER_EXITED
		o.mu.Unlock()
		if ended && (last == nil || o.finished.After(last.finished)) { // Nothing changes in one that has ended.
			last = o
		}
	}
	return last
}
