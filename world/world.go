// Package world gives an application a past: it makes a cluster that was just started look as if it had
// run for weeks.
//
//	base, err := historian.Snapshot(ctx)
//	lived, err := historian.Rewrite(base, world.Past{Seed: 7, Now: time.Now()}.Write)
//	err = historian.Reset(ctx, lived)
//
// Who is asked to find what is wrong in a system could otherwise look for what is young in it, or for
// what was ever changed: in a world that is eleven seconds old that is the fault.
//
// A past is drawn from a seed. It has an age for everything (objects, nodes, pods, containers, lines of
// logs), workloads that were released several times, each time with a harmless difference, with the
// ReplicaSets that are left of it, containers that were restarted, a job that is run once a day, and the events of the
// last hour.
package world

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// minAge is how long ago a cluster was made, at least.
	minAge = 21 * 24 * time.Hour
	// ageSpread is by how much it may be older.
	ageSpread = 10 * 24 * time.Hour
)

// Past is a past to be written.
type Past struct {
	Seed uint64
	Now  time.Time
	// Steady are namespaces in which nothing has changed since they were made.
	Steady []string
	// Released are the Deployments, as "namespace/name", that are released in the present, too. If it is nil, these are
	// those that keep nothing.
	Released []string
	// Telling is told who was there in the past, if it is not nil.
	Telling func(past.Cast)
}

// Age is how old a cluster is made to look by the past of a seed.
func Age(seed uint64) time.Duration {
	return minAge + time.Duration(Past{Seed: seed}.draw("birth").Int64N(int64(ageSpread)))
}

// steady reports whether nothing in a namespace has changed since it was made.
func (p Past) steady(namespace string) bool {
	return isSystem(namespace) || slices.Contains(p.Steady, namespace)
}

// Write makes a history that of a cluster with this past. It is to be what a cluster tells of itself
// whose applications were just deployed and are ready.
func (p Past) Write(h *cloud.History) error {
	c := newChronicle(p, h)
	c.date()
	for _, d := range c.deployments {
		if err := c.release(d); err != nil {
			return err
		}
	}
	if err := c.reviseAll(); err != nil {
		return err
	}
	c.settle()
	c.schedule()
	if err := c.certify(); err != nil {
		return err
	}
	c.tell()
	c.renewLeases()
	if p.Telling != nil {
		p.Telling(c.cast())
	}
	return nil
}

// draw returns the random numbers of a name. They depend on the seed and the name alone.
func (p Past) draw(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "\x00" + strconv.FormatUint(p.Seed, 16))) // It never fails.
	return rand.New(rand.NewPCG(p.Seed, h.Sum64()))
}

// between returns a time between two, drawn evenly. If there is none, it is the earlier.
func between(r *rand.Rand, from, to time.Time) time.Time {
	if !to.After(from) {
		return from
	}
	return from.Add(time.Duration(r.Int64N(int64(to.Sub(from))))).Truncate(time.Second)
}
