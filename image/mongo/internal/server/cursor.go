package server

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// cursor is a result the client has not got all of yet.
type cursor struct {
	ns    string
	docs  []value.Doc
	owner string // the user, by name and database
	used  time.Time
}

const (
	firstBatch    = 101 // documents
	maxBatchBytes = value.MaxSize
	cursorTimeout = 10 * time.Minute
)

// cursors are those that are open. The zero value is empty and usable.
type cursors struct {
	mu   sync.Mutex
	open map[int64]*cursor
}

func (cs *cursors) add(c *cursor) int64 {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open = map[int64]*cursor{}
	}
	id := rand.Int64N(1<<62) + 1
	c.used = time.Now()
	cs.open[id] = c
	return id
}

// next returns the next batch of a cursor and whether that was the last.
func (cs *cursors) next(id int64, ns, owner string, n int) ([]value.Doc, bool, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c := cs.open[id]
	switch {
	case c == nil:
		return nil, false, code.Errorf(code.CursorNotFound, "cursor id %d not found", id)
	case c.ns != ns:
		return nil, false, code.Errorf(code.Unauthorized,
			"Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", ns, c.ns)
	case c.owner != owner:
		return nil, false, code.Errorf(code.Unauthorized, "cursor id %d was not created by the authenticated user", id)
	}
	batch := take(&c.docs, n)
	c.used = time.Now()
	if len(c.docs) == 0 {
		delete(cs.open, id)
		return batch, true, nil
	}
	return batch, false, nil
}

// kill closes a cursor and reports whether there was one.
func (cs *cursors) kill(id int64) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	_, ok := cs.open[id]
	delete(cs.open, id)
	return ok
}

func (cs *cursors) expire(now time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for id, c := range cs.open {
		if now.Sub(c.used) > cursorTimeout {
			delete(cs.open, id)
		}
	}
}

func (cs *cursors) len() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// take removes the first n documents of a list, or less if they would not fit into a reply. A
// negative n is no limit.
func take(docs *[]value.Doc, n int) []value.Doc {
	bytes := 0
	for i, d := range *docs {
		bytes += len(d) + 16
		if i == n || i > 0 && bytes > maxBatchBytes {
			batch := (*docs)[:i:i]
			*docs = (*docs)[i:]
			return batch
		}
	}
	batch := *docs
	*docs = nil
	return batch
}

func (c *conn) owner() string {
	if len(c.users) == 0 {
		return ""
	}
	return c.users[0].name + "@" + c.users[0].db
}

// cursorReply answers with the first batch of a result, and a cursor if there is more.
func (k *call) cursorReply(ns string, docs []value.Doc, batch int, single bool) bson.D {
	first := take(&docs, batch)
	k.hits += len(first)
	id := int64(0)
	if len(docs) > 0 && !single {
		id = k.srv.cursors.add(&cursor{ns: ns, docs: slices.Clip(docs), owner: k.conn.owner()})
	}
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "firstBatch", Value: first},
		{Key: "id", Value: id},
		{Key: "ns", Value: ns},
	}}}
}

func runGetMore(k *call) (bson.D, error) {
	id, ok := value.Get(k.body, "getMore").Int64OK()
	if !ok {
		return nil, code.Errorf(code.TypeMismatch, "Field 'getMore' must be of type long in: %s", value.Text(k.body))
	}
	coll, err := k.str("collection")
	if err != nil {
		return nil, err
	}
	n, err := k.count("batchSize", -1)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		n = -1
	}
	ns := k.db + "." + coll
	docs, last, err := k.srv.cursors.next(id, ns, k.conn.owner(), int(n))
	if err != nil {
		return nil, err
	}
	if last {
		id = 0
	}
	k.hits += len(docs)
	return bson.D{{Key: "cursor", Value: bson.D{
		{Key: "nextBatch", Value: docs},
		{Key: "id", Value: id},
		{Key: "ns", Value: ns},
	}}}, nil
}

func runKillCursors(k *call) (bson.D, error) {
	killed, missing := bson.A{}, bson.A{}
	for _, v := range value.Items(value.Inner(value.Get(k.body, "cursors"))) {
		id, ok := v.Int64OK()
		if ok && k.srv.cursors.kill(id) {
			killed = append(killed, id)
		} else {
			missing = append(missing, id)
		}
	}
	return bson.D{
		{Key: "cursorsKilled", Value: killed},
		{Key: "cursorsNotFound", Value: missing},
		{Key: "cursorsAlive", Value: bson.A{}},
		{Key: "cursorsUnknown", Value: bson.A{}},
	}, nil
}
