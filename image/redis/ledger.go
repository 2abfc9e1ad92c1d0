package redis

import (
	"strings"
	"time"
)

// What keys and elements take besides their own bytes, as in a real one on a 64-bit machine.
const (
	keyOverhead = 64
	compact     = 128 // elements up to which hashes, sets and sorted sets are packed
)

// overheads are bytes an element, packed and not.
var overheads = map[string][2]int64{
	"list": {10, 10}, "hash": {12, 80}, "set": {12, 64}, "zset": {20, 110}, "stream": {30, 30}, "hll": {0, 0},
}

// name is a key in a database.
type name struct {
	db  int
	key string
}

// entry is what is known of a key.
type entry struct {
	kind    string
	n       int64   // elements; bytes of a string
	average float64 // bytes of an element
	bytes   int64
	used    time.Time
	expires time.Time     // zero is never
	ttl     time.Duration // what miniredis has been told
}

func (e *entry) size(key string) int64 {
	size := keyOverhead + int64(len(key))
	if e.kind == "string" {
		return size + e.n
	}
	over := overheads[e.kind][0]
	if e.n > compact {
		over = overheads[e.kind][1]
	}
	return size + int64(float64(e.n)*(e.average+float64(over)))
}

// ledger knows all keys: how large they are, when they were used, when they expire. Sizes of
// collections are estimated from what was put into them, since adding an element must not cost a
// look at all of them.
type ledger struct {
	entries  map[name]*entry
	volatile map[name]*entry // those that expire
	soonest  time.Time       // no key expires before
	total    int64           // bytes
	perDB    map[int]int
}

func newLedger() *ledger {
	return &ledger{entries: map[name]*entry{}, volatile: map[name]*entry{}, perDB: map[int]int{}}
}

func (l *ledger) remove(n name) {
	e := l.entries[n]
	if e == nil {
		return
	}
	l.total -= e.bytes
	delete(l.entries, n)
	delete(l.volatile, n)
	if l.perDB[n.db]--; l.perDB[n.db] == 0 {
		delete(l.perDB, n.db)
	}
}

// put notes the state of a key after a change by a command with some bytes of arguments for some
// elements.
func (l *ledger) put(n name, kind string, count int64, payload, elements int64, now time.Time) *entry {
	e := l.entries[n]
	if e == nil {
		e = &entry{}
		l.entries[n] = e
		l.perDB[n.db]++
	}
	if e.kind != kind {
		e.kind, e.n, e.average = kind, 0, 0
	}
	if kind != "string" && elements > 0 {
		each := float64(payload) / float64(elements)
		switch {
		case count > e.n:
			e.average = (e.average*float64(e.n) + each*float64(count-e.n)) / float64(count)
		case count == e.n && count > 0: // Elements were replaced.
			part := min(1, float64(elements)/float64(count))
			e.average += (each - e.average) * part
		}
	}
	e.n, e.used = count, now
	size := e.size(n.key)
	l.total += size - e.bytes
	e.bytes = size
	return e
}

// expire notes when a key expires, or that it does not.
func (l *ledger) expire(n name, e *entry, at time.Time) {
	e.expires = at
	if at.IsZero() {
		delete(l.volatile, n)
		return
	}
	l.volatile[n] = e
	if l.soonest.IsZero() || at.Before(l.soonest) {
		l.soonest = at
	}
}

// due returns the keys that have expired.
func (l *ledger) due(now time.Time) (list []name) {
	if l.soonest.IsZero() || now.Before(l.soonest) {
		return nil
	}
	l.soonest = time.Time{}
	for n, e := range l.volatile {
		if !now.Before(e.expires) {
			list = append(list, n)
		} else if l.soonest.IsZero() || e.expires.Before(l.soonest) {
			l.soonest = e.expires
		}
	}
	return list
}

// victim returns a key to evict under a policy, or false. Like a real one it takes the best of a few.
func (l *ledger) victim(policy string, samples int64) (best name, ok bool) {
	from := l.entries
	if strings.HasPrefix(policy, "volatile") {
		from = l.volatile
	}
	var b *entry
	for n, e := range from { // The order of a map is random.
		better := b == nil
		switch {
		case better || strings.HasSuffix(policy, "random"):
		case policy == "volatile-ttl":
			better = e.expires.Before(b.expires)
		default:
			better = e.used.Before(b.used)
		}
		if better {
			best, b, ok = n, e, true
		}
		if samples--; samples <= 0 {
			break
		}
	}
	return best, ok
}
