package server

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// checkpointEvery is how often there is a checkpoint of which the log tells.
const checkpointEvery = time.Minute

// remember has the server go on from a past, if it is told one: what it has counted, and what it has logged.
func (s *Server) remember() {
	c := &s.counts
	// What was inserted is in the store: whoever writes the data of the past inserts it.
	tally := past.NewTally(&c.query, &c.update, &c.remove, &c.getMore, &c.other)
	s.Env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		tally.Mark()
		return nil
	})
	s.Env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		tally.Age(p, s.started)
		s.Log.Age(p.Loaded, s.started.Sub(s.began))
		visits := s.recallVisits(p)
		if p.Log != nil {
			s.recallLines(p, visits)
		}
		return nil
	})
}

// writes is how many documents were written.
func (s *Server) writes() float64 {
	return float64(s.counts.insert.Load() + s.counts.update.Load() + s.counts.remove.Load())
}

// recallLines tells of the checkpoints of the past, and of who came and left between them, the last one first.
func (s *Server) recallLines(p *past.Past, visits []event) {
	rate := s.writes() / max(1, p.Work(s.started, p.Join))
	seed := p.Seed ^ s.thread()
	last := s.checkpointAfter(p.Loaded).Add(-checkpointEvery)
	for at := last; at.After(s.started); at = at.Add(-checkpointEvery) {
		then := at.Add(time.Duration(past.Uniform(seed, uint64(at.Unix())) * float64(9*time.Millisecond)))
		for ; len(visits) > 0 && visits[0].at.After(then); visits = visits[1:] {
			if v := visits[0]; !p.Log(v.at, s.Log.At(v.at, mlog.Network, v.id, v.thread, v.message, v.attr)) {
				return
			}
		}
		attr := s.checkpoint(then, rate*p.Work(s.started, then))
		if !p.Log(then, s.Log.At(then, mlog.Storage, 22430, checkpointThread, checkpointMessage, attr)) {
			return
		}
	}
}

const checkpointThread, checkpointMessage = "WTCheckpointThread", "WiredTiger message"

// checkpointAfter is when the next checkpoint is due after a time. There is one every minute since the start.
func (s *Server) checkpointAfter(t time.Time) time.Time {
	return s.started.Add(t.Sub(s.started).Truncate(checkpointEvery) + checkpointEvery)
}

// checkpoint is what the storage engine says of a checkpoint at a time when so much was written.
func (s *Server) checkpoint(at time.Time, writes float64) bson.D {
	n := 3 + 2*int64(at.Sub(s.started)/checkpointEvery) + int64(writes)
	return bson.D{{Key: "message", Value: fmt.Sprintf("[%d:%06d][%d:%#x], WT_SESSION.checkpoint: "+
		"[WT_VERB_CHECKPOINT_PROGRESS] saving checkpoint snapshot min: %d, snapshot max: %d snapshot count: 0, "+
		"oldest timestamp: (0, 0) , meta checkpoint timestamp: (0, 0)",
		at.Unix(), at.Nanosecond()/1000, s.Env.PID, 0x7f0000000700|s.thread()&0xfffffff000, n, n)}}
}

// thread tells the server's threads from those of others.
func (s *Server) thread() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Env.Hostname)) // It never fails.
	return h.Sum64()
}

// logCheckpoint logs that there was a checkpoint.
func (s *Server) logCheckpoint() {
	s.Log.Info(mlog.Storage, 22430, checkpointThread, checkpointMessage, s.checkpoint(time.Now(), s.writes()))
}
