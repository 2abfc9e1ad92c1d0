package redis

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// remember has the server go on from a past, if it is told one: what it has counted, and when it saved.
func (s *instance) remember() {
	c := &s.stats
	tally := past.NewTally((*past.Number)(&c.processed), (*past.Number)(&c.hits), (*past.Number)(&c.misses),
		(*past.Number)(&c.expired), &c.input, &c.output)
	var dirty int64
	commands := map[string]commandStats{}
	s.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		tally.Mark()
		dirty = s.dirty
		for name, c := range s.stats.commands {
			commands[name] = *c
		}
		return nil
	})
	s.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		tally.Age(p, s.started)
		s.recallClients(p)
		s.stats.sampled = time.Time{} // What was added did not come in the last second.
		times := p.Times(s.started)
		for name, c := range s.stats.commands {
			if m := commands[name]; times > 0 {
				c.calls += int64(past.More(float64(c.calls), float64(m.calls), times))
				c.took += time.Duration(past.More(float64(c.took), float64(m.took), times))
			}
		}
		if changes := float64(s.dirty-dirty) / p.Join.Sub(p.Loaded).Seconds(); times > 0 && changes > 0 {
			return s.recallSaves(p, changes)
		}
		return nil
	})
}

// recallClients has clients have come and gone since the server was started. Those that are there came long ago.
func (s *instance) recallClients(p *past.Past) {
	if p.Times(s.started) == 0 {
		return
	}
	gone := int64(len(p.Comings(s.env.Hostname, len(s.clients), s.started)))
	s.stats.connections += gone
	s.nextID += gone
	open := slices.SortedFunc(maps.Keys(s.clients), func(a, b *client) int { return cmp.Compare(a.id, b.id) })
	for i, at := range p.Came(s.env.Hostname, len(open), s.started) {
		open[i].since = at
	}
}

// due is when a snapshot is due if there are so many changes a second.
func (s *instance) due(changes float64) (soonest savePoint, after time.Duration) {
	for _, p := range s.config.savePoints() {
		d := max(p.after, time.Duration(float64(p.changes)/changes*float64(time.Second)))
		if after == 0 || d < after {
			soonest, after = p, d
		}
	}
	return soonest, after + s.beat()
}

// beat is how often it is looked whether a snapshot is due.
func (s *instance) beat() time.Duration {
	return time.Second / time.Duration(max(1, s.config.int("hz")))
}

// recallSaves tells of the snapshots that were written in the past, and leaves the last of them on the disk.
func (s *instance) recallSaves(p *past.Past, changes float64) error {
	_, every := s.due(changes)
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.env.Hostname)) // It never fails.
	r := rand.New(rand.NewPCG(p.Seed, h.Sum64()))
	last := p.Loaded.Add(-time.Duration(r.Float64() * float64(every)))
	if every <= s.beat() || last.Sub(s.started) < every { // It saves never, or has not yet.
		return nil
	}
	write := func(w io.Writer) error { return s.data.writeRDB(w, last) }
	if s.writeFile(s.path("dbfilename"), write) != nil {
		return nil // It could not be written before, either. The next time tells why.
	}
	if err := s.env.FS.Chtimes(s.path("dbfilename"), last); err != nil {
		return fmt.Errorf("date the snapshot: %w", err)
	}
	s.lastSave, s.dirty = last, int64(changes*p.Join.Sub(last).Seconds())
	s.saves += int64(last.Sub(s.started) / every)
	s.lastPID = max(s.lastPID, s.env.PID+14) + int(s.saves)
	if p.Log == nil || s.config.values["loglevel"] == "warning" {
		return nil
	}
	at, pid := last, s.lastPID
	for further := true; further && at.Sub(s.started) > every; pid-- {
		point, after := s.due(changes * p.Work(at.Add(-time.Second), at))
		took := time.Duration(2+r.IntN(9)) * time.Millisecond
		p.Log(at.Add(took+time.Millisecond), s.line(at.Add(took+time.Millisecond), s.env.PID, 'M', notice,
			"Background saving terminated with success"))
		p.Log(at.Add(took), s.line(at.Add(took), pid, 'C', notice, "DB saved on disk"))
		p.Log(at.Add(time.Millisecond), s.line(at.Add(time.Millisecond), s.env.PID, 'M', notice,
			"Background saving started by pid %d", pid))
		further = p.Log(at, s.line(at, s.env.PID, 'M', notice, "%d changes in %d seconds. Saving...", point.changes,
			int64(point.after/time.Second)))
		at = at.Add(-after - time.Duration(r.Int64N(int64(s.beat()))))
	}
	return nil
}
