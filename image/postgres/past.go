package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// remember has the server go on from a past, if it is told one: what it has counted, and who has come and gone.
func (s *server) remember() {
	var tally past.Tally
	for _, e := range s.engines {
		tally = append(tally, past.NewTally(&e.commits, &e.rollbacks, &e.returned, &e.written)...)
	}
	s.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		tally.Mark()
		return nil
	})
	s.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		tally.Age(p, s.started)
		s.recallSessions(p)
		return nil
	})
}

// toConnect is how long after a server was started its first client was there.
const toConnect = 2 * time.Second

// recallSessions has sessions have come and gone since the server was started: each took a number. Those that are there
// have the first numbers, so they came soon after the start, one after another as they did, and stayed.
func (s *server) recallSessions(p *past.Past) {
	if p.Times(s.started) == 0 {
		return
	}
	open := s.list()
	s.mu.Lock()
	s.nextPID += int32(len(p.Comings(s.env.Hostname, len(open), s.started)))
	s.mu.Unlock()
	var came []time.Time
	for _, n := range open {
		came = append(came, n.since)
	}
	slices.SortFunc(came, time.Time.Compare)
	for i, n := range open {
		at := s.started.Add(toConnect + came[i].Sub(came[0]))
		if at.After(p.Loaded) {
			at = p.Loaded
		}
		n.watch.Lock()
		n.since = at
		n.watch.Unlock()
	}
}
