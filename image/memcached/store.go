package memcached

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Errors of storing.
var (
	errTooLarge = errors.New("object too large for cache")
	errNoMemory = errors.New("out of memory storing object")
)

// store is the cache. It may be used concurrently.
type store struct {
	maxItem int
	noEvict bool
	grow    func(int64) error // states memory

	mu      sync.Mutex
	items   map[string]*item
	slabs   *slabs
	cas     uint64
	flushAt time.Time // items stored before this are gone once it has come
	bytes   int64
	stats   stats
}

func newStore(limit int64, maxItem int, grow func(int64) error) *store {
	return &store{maxItem: maxItem, grow: grow, items: map[string]*item{}, slabs: newSlabs(limit)}
}

// lookup returns a living item. A dead one is removed.
func (s *store) lookup(key string, now time.Time) *item {
	it := s.items[key]
	if it == nil || !s.dead(it, now) {
		return it
	}
	if s.expired(it, now) {
		s.stats.getExpired++
	} else {
		s.stats.getFlushed++
	}
	s.reclaim(it)
	return nil
}

// use notes that an item was read.
func (s *store) use(it *item, now time.Time) {
	it.accessed, it.fetched = now, true
	c := &s.slabs.classes[it.class]
	c.counted.getHits++
	c.list.remove(it)
	c.list.push(it)
}

func (s *store) unlink(it *item) {
	delete(s.items, it.key)
	s.slabs.classes[it.class].list.remove(it)
	s.slabs.give(it.class, it.chunks)
	s.bytes -= int64(it.size())
}

// reclaim removes a dead item.
func (s *store) reclaim(it *item) {
	c := &s.slabs.classes[it.class].counted
	c.reclaimed++
	if !it.fetched {
		c.expiredUnfetched++
	}
	s.unlink(it)
}

// link stores an item in place of the one that has its key.
func (s *store) link(it *item, now time.Time) error {
	size := it.size()
	if size > s.maxItem {
		s.stats.storeTooLarge++
		return errTooLarge
	}
	id, chunks := s.slabs.fit(size)
	c := &s.slabs.classes[id]
	before := s.slabs.touched
	for !s.slabs.take(id, chunks) {
		if c.list.tail == nil || s.noEvict {
			s.stats.storeNoMemory++
			c.counted.outOfMemory++
			return errNoMemory
		}
		s.evict(c.list.tail, now)
	}
	if more := s.slabs.touched - before; more > 0 {
		if err := s.grow(more); err != nil {
			return err
		}
	}
	if old := s.items[it.key]; old != nil {
		s.unlink(old)
	}
	s.cas++
	it.cas, it.stored, it.accessed = s.cas, now, now
	it.class, it.chunks = id, chunks
	s.items[it.key] = it
	c.list.push(it)
	s.bytes += int64(size)
	s.stats.totalItems++
	return nil
}

// evict removes a living item for want of memory, or a dead one.
func (s *store) evict(it *item, now time.Time) {
	if s.dead(it, now) {
		s.reclaim(it)
		return
	}
	c := &s.slabs.classes[it.class].counted
	c.evicted++
	if !it.expires.IsZero() {
		c.evictedNonzero++
	}
	if !it.fetched {
		c.evictedUnfetched++
	}
	c.evictedTime = int64(now.Sub(it.accessed) / time.Second)
	s.unlink(it)
}

// result is the outcome of a command that changes an item.
type result string

const (
	stored    result = "STORED"
	notStored result = "NOT_STORED"
	exists    result = "EXISTS"
	notFound  result = "NOT_FOUND"
)

// put executes a storage command. For "cas", unique is what the item must have.
func (s *store) put(command string, it *item, unique uint64) (result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.stats.cmdSet++
	old := s.lookup(it.key, now)
	switch {
	case command == "add" && old != nil:
		s.use(old, now)
		return notStored, nil
	case command == "cas" && old == nil:
		s.stats.casMisses++
		return notFound, nil
	case command == "cas" && old.cas != unique:
		s.stats.casBadval++
		s.slabs.classes[old.class].counted.casBadval++
		return exists, nil
	case old == nil && (command == "replace" || command == "append" || command == "prepend"):
		return notStored, nil
	case command == "append":
		it.value = append(bytes.Clone(old.value), it.value...)
		it.flags, it.expires = old.flags, old.expires
	case command == "prepend":
		it.value = append(bytes.Clone(it.value), old.value...)
		it.flags, it.expires = old.flags, old.expires
	}
	if err := s.link(it, now); err != nil {
		if errors.Is(err, errTooLarge) && (command == "append" || command == "prepend") {
			return notStored, nil
		}
		if old := s.items[it.key]; old != nil {
			s.unlink(old) // Better nothing than something stale.
		}
		return "", err
	}
	c := &s.slabs.classes[it.class].counted
	c.cmdSet++
	if command == "cas" {
		s.stats.casHits++
		c.casHits++
	}
	return stored, nil
}

// tooLarge tells whether no item of that size can be stored. If so it forgets the one there is.
func (s *store) tooLarge(key string, flags uint32, value int) bool {
	if itemSize(len(key), flags, value) <= s.maxItem {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.storeTooLarge++
	if old := s.items[key]; old != nil {
		s.unlink(old)
	}
	return true
}

// get returns a copy of an item, or false. The exptime, if any, becomes its new one.
func (s *store) get(key string, exptime *int64) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	it := s.lookup(key, now)
	if exptime != nil {
		s.stats.cmdTouch++
	}
	s.stats.cmdGet++
	if it == nil {
		s.stats.getMisses++
		if exptime != nil {
			s.stats.touchMisses++
		}
		return item{}, false
	}
	s.stats.getHits++
	if exptime != nil {
		s.stats.touchHits++
		s.slabs.classes[it.class].counted.touchHits++
		it.expires = expiry(*exptime, now)
	}
	found := *it // As it was before this.
	s.use(it, now)
	return found, true
}

// setExpiry is the command touch.
func (s *store) setExpiry(key string, exptime int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.stats.cmdTouch++
	it := s.lookup(key, now)
	if it == nil {
		s.stats.touchMisses++
		return false
	}
	s.stats.touchHits++
	s.slabs.classes[it.class].counted.touchHits++
	it.expires = expiry(exptime, now)
	s.use(it, now)
	return true
}

// remove is the command delete. If unique is not 0, the item must have it.
func (s *store) remove(key string, unique uint64) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.lookup(key, time.Now())
	if it == nil {
		s.stats.deleteMisses++
		return notFound
	}
	if unique != 0 && it.cas != unique {
		return exists
	}
	s.stats.deleteHits++
	s.slabs.classes[it.class].counted.deleteHits++
	s.unlink(it)
	return "DELETED"
}

// errNotNumeric is the error of incr and decr on other values than numbers.
var errNotNumeric = errors.New("cannot increment or decrement non-numeric value")

// add is the commands incr and decr. Numbers wrap around at the top and stay at 0 at the bottom. A
// number that gets shorter is followed by spaces, as in the original, which writes it in place.
func (s *store) add(key string, decr bool, delta uint64) (item, uint64, result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	it := s.lookup(key, now)
	if it == nil {
		if decr {
			s.stats.decrMisses++
		} else {
			s.stats.incrMisses++
		}
		return item{}, 0, notFound, nil
	}
	n, ok := number(it.value)
	if !ok {
		return item{}, 0, "", errNotNumeric
	}
	c := &s.slabs.classes[it.class].counted
	if decr {
		s.stats.decrHits++
		c.decrHits++
		n -= min(n, delta)
	} else {
		s.stats.incrHits++
		c.incrHits++
		n += delta
	}
	text := strconv.AppendUint(nil, n, 10)
	if len(text) <= len(it.value) {
		for len(text) < len(it.value) {
			text = append(text, ' ')
		}
		s.cas++
		it.value, it.cas = text, s.cas
		s.use(it, now)
		return *it, n, stored, nil
	}
	longer := &item{key: key, value: text, flags: it.flags, expires: it.expires}
	if err := s.link(longer, now); err != nil {
		return item{}, 0, "", err
	}
	return *longer, n, stored, nil
}

// number reads a value as C's strtoull does: spaces and a plus may go before it, and anything may
// follow after a space.
func number(value []byte) (uint64, bool) {
	fields := bytes.Fields(value)
	if len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(string(fields[0]), "+"), 10, 64)
	return n, err == nil
}

// flush makes everything stored so far go, now or at a later time.
func (s *store) flush(exptime int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.stats.cmdFlush++
	s.cas++
	if exptime > 0 {
		s.flushAt = expiry(exptime, now)
		return
	}
	s.flushAt = time.Time{}
	for _, it := range s.items {
		s.unlink(it)
	}
}

// crawl removes dead items that nobody asks for.
func (s *store) crawl() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.stats.crawlerStarts++
	for _, it := range s.items {
		s.stats.crawlerChecked++
		if s.dead(it, now) {
			s.slabs.classes[it.class].counted.crawlerReclaimed++
			s.reclaim(it)
		}
	}
}
