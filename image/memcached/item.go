package memcached

import (
	"time"
)

// item is a value under a key.
type item struct {
	key      string
	value    []byte // not changed once it is stored
	flags    uint32
	expires  time.Time // zero is never
	stored   time.Time
	accessed time.Time
	cas      uint64
	fetched  bool
	empty    bool // made by a get, and to be filled by whoever asked first

	class      int
	chunks     int64
	prev, next *item
}

// size is what the original calls the total size of an item.
func (it *item) size() int { return itemSize(len(it.key), it.flags, len(it.value)) }

func itemSize(key int, flags uint32, value int) int {
	n := itemHeader + key + 1 + value + 2
	if flags != 0 {
		n += 4
	}
	return n
}

// monthSeconds is the longest time that counts from now; larger numbers are dates.
const monthSeconds = 60 * 60 * 24 * 30

// expiry turns an exptime of the protocol into a time.
func expiry(exptime int64, now time.Time) time.Time {
	switch {
	case exptime == 0:
		return time.Time{}
	case exptime < 0:
		return now.Add(-time.Second)
	case exptime > monthSeconds:
		return time.Unix(exptime, 0)
	}
	return now.Add(time.Duration(exptime) * time.Second)
}

// dead tells whether an item is there only because nobody has looked.
func (s *store) dead(it *item, now time.Time) bool {
	return s.expired(it, now) || s.flushed(it, now)
}

func (s *store) expired(it *item, now time.Time) bool {
	return !it.expires.IsZero() && !now.Before(it.expires)
}

func (s *store) flushed(it *item, now time.Time) bool {
	return !s.flushAt.IsZero() && !now.Before(s.flushAt) && it.stored.Before(s.flushAt)
}
