package server

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit/past"
)

// Ports from which clients connect.
const firstPort, ports = 32768, 28232

// event is something that the log told.
type event struct {
	at      time.Time
	id      int
	thread  string
	message string
	attr    bson.D
}

// recallVisits has clients have come and gone since the server was started, and returns what was logged of it, the
// last one first. They were like those that are connected now.
func (s *Server) recallVisits(p *past.Past) (list []event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.SortedFunc(maps.Keys(s.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
	comings := p.Comings(s.Env.Hostname, len(open), s.started)
	seen := s.nextConn.Load()
	s.nextConn.Add(int64(len(comings)))
	r := rand.New(rand.NewPCG(p.Seed, s.thread()))
	for i, at := range comings {
		like := open[r.IntN(len(open))]
		host, _, err := net.SplitHostPort(like.remote())
		if err != nil {
			continue
		}
		v := visit{
			id: seen + int64(len(comings)-i), remote: net.JoinHostPort(host, strconv.Itoa(firstPort+r.IntN(ports))),
			doc: like.said(), others: len(open) - 1,
		}
		list = append(list, v.events(at, past.Life*3/4+time.Duration(r.Int64N(int64(past.Life)/2)), p.Loaded)...)
	}
	slices.SortFunc(list, func(a, b event) int { return b.at.Compare(a.at) })
	return list
}

// visit is a connection that was.
type visit struct {
	id     int64
	remote string
	doc    value.Doc // what the client said of itself
	others int
}

// events are what the log told of a connection that was made at a time and kept for a while. It is told until the end.
func (v visit) events(at time.Time, kept time.Duration, end time.Time) []event {
	count := func(n int) bson.D {
		return bson.D{
			{Key: "remote", Value: v.remote}, {Key: "connectionId", Value: v.id}, {Key: "connectionCount", Value: n},
		}
	}
	name := "conn" + strconv.FormatInt(v.id, 10)
	list := []event{{at, 22943, "listener", "Connection accepted", count(v.others + 1)}}
	if v.doc != nil {
		list = append(list, event{at.Add(time.Millisecond), 51800, name, "client metadata", bson.D{
			{Key: "remote", Value: v.remote}, {Key: "client", Value: name}, {Key: "doc", Value: v.doc},
		}})
	}
	if gone := at.Add(kept); gone.Before(end) {
		list = append(list, event{gone, 22944, name, "Connection ended", count(v.others)})
	}
	return list
}
