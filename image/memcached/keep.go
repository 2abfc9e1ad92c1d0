package memcached

import (
	"context"
	"time"
)

// kept is what a cache has.
type kept struct {
	items   []item // of each class, the one that was not used for longest first
	cas     uint64
	flushAt time.Time
}

// keep hands over the items.
func (s *store) keep(context.Context) (any, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &kept{cas: s.cas, flushAt: s.flushAt}
	for i := range s.slabs.classes {
		for it := s.slabs.classes[i].list.tail; it != nil; it = it.prev {
			k.items = append(k.items, *it) // A value is not changed once it is stored.
		}
	}
	return k, s.bytes, nil
}

// takeOver has an empty cache have what was kept.
func (s *store) takeOver(k *kept) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range k.items {
		was := it
		it.prev, it.next = nil, nil
		if err := s.link(&it, was.stored); err != nil {
			return err
		}
		it.cas, it.accessed = was.cas, was.accessed
	}
	s.cas, s.flushAt = k.cas, k.flushAt
	s.stats.totalItems = 0 // It counts what clients have stored.
	return nil
}
