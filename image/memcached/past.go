package memcached

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// remember has the counters go on from a past, if the server is told one.
func (s *server) remember() {
	c := &s.store.stats
	var counters []past.Counter
	for _, n := range []*int64{
		&c.cmdGet, &c.cmdTouch, &c.getExpired, &c.deleteMisses, &c.deleteHits,
		&c.incrMisses, &c.incrHits, &c.decrMisses, &c.decrHits, &c.casMisses, &c.casHits, &c.casBadval,
		&c.touchHits, &c.touchMisses,
	} {
		counters = append(counters, (*past.Number)(n))
	}
	counters = append(counters, &s.stats.bytesRead, &s.stats.bytesWritten, &s.stats.cmdMeta)
	tally := past.NewTally(counters...)
	s.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		tally.Mark()
		return nil
	})
	s.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		before := c.cmdGet
		tally.Age(p, s.started)
		// A cache that was just started has next to nothing; one that was not has most of what is asked for.
		h := fnv.New64a()
		_, _ = h.Write([]byte(s.env.Hostname)) // It never fails.
		missed := int64(float64(c.cmdGet-before) * (0.02 + 0.06*past.Uniform(p.Seed, h.Sum64())))
		c.getMisses += missed
		c.getHits += c.cmdGet - before - missed
		c.cmdSet += missed
		c.totalItems += missed
		s.recallConnections(p)
		return nil
	})
}

// recallConnections has clients have come and gone since the server was started. Those that are there came long ago.
func (s *server) recallConnections(p *past.Past) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Times(s.started) == 0 {
		return
	}
	s.stats.total.Add(int64(len(p.Comings(s.env.Hostname, len(s.conns), s.started))))
	open := slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return a.id - b.id })
	for i, at := range p.Came(s.env.Hostname, len(open), s.started) {
		open[i].since = at
	}
}
