package kafka

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// How much there may be of what clients make.
const (
	maxTopics     = 200
	maxPartitions = 500 // of all topics
	maxGroups     = 200
	maxOffsets    = 5000

	partitionBytes = 4 << 10
	memberBytes    = 4 << 10
	maxSession     = 5 * time.Minute // kfake's limit
)

const (
	houseEvery = 2 * time.Second
	// maxFresh is how many bytes of messages may come before the log is looked at.
	maxFresh = 4 << 20
	// settled is how old a topic is before it is missed: it is noted before it is made.
	settled = time.Minute
)

// traffic counts bytes of messages.
type traffic struct{ in, out atomic.Int64 }

// offset is where a group keeps how far it is.
type offset struct {
	group, topic, id string
	partition        int32
}

// topic is one that was asked for.
type topic struct {
	partitions int
	since      time.Time
}

// loan is memory that is given back at a time.
type loan struct {
	bytes int
	until time.Time
}

// state is what the gates know of the broker: enough to bound it.
type state struct {
	mu      sync.Mutex
	topics  map[string]topic
	groups  map[string]struct{}
	offsets map[offset]struct{}
	loans   []loan // in the order of their ends, since all last equally long

	stated atomic.Int64 // bytes of the log that the container knows of
	fresh  atomic.Int64 // bytes that came since the log was looked at
}

func newState() state {
	return state{topics: map[string]topic{}, groups: map[string]struct{}{}, offsets: map[offset]struct{}{}}
}

// addTopics notes topics with their partitions, all or none. It returns those that are new.
func (s *state) addTopics(add map[string]int) (made []string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range s.topics {
		n += t.partitions
	}
	for name, partitions := range add {
		if _, found := s.topics[name]; !found {
			made = append(made, name)
			n += partitions
		}
	}
	if len(made) > 0 && (len(s.topics)+len(made) > maxTopics || n > maxPartitions) {
		return nil, false
	}
	for _, name := range made {
		s.topics[name] = topic{add[name], time.Now()}
	}
	slices.Sort(made)
	return made, true
}

// growTopics notes that topics have more partitions, all or none.
func (s *state) growTopics(to map[string]int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for name, t := range s.topics {
		n += max(t.partitions, to[name])
	}
	if n > maxPartitions {
		return false
	}
	for name, partitions := range to {
		if t, found := s.topics[name]; found {
			t.partitions = max(t.partitions, partitions)
			s.topics[name] = t
		}
	}
	return true
}

func (s *state) addGroup(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.groups[name]; !found && (len(s.groups) >= maxGroups || len(name) > 1024) {
		return false
	}
	s.groups[name] = struct{}{}
	return true
}

func (s *state) forgetGroups(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.groups, name)
		for o := range s.offsets {
			if o.group == name {
				delete(s.offsets, o)
			}
		}
	}
}

func (s *state) addOffset(o offset) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.offsets[o]; !found && len(s.offsets) >= maxOffsets {
		return false
	}
	s.offsets[o] = struct{}{}
	return true
}

// names are the topics that there are, sorted.
func (s *state) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]string, 0, len(s.topics))
	for name := range s.topics {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// borrow takes memory for a time.
func (b *broker) borrow(n int, d time.Duration) error {
	if err := b.holder.Add(n); err != nil {
		return err
	}
	b.state.mu.Lock()
	defer b.state.mu.Unlock()
	b.state.loans = append(b.state.loans, loan{n, time.Now().Add(d)})
	return nil
}

// repay gives back what was borrowed for long enough.
func (b *broker) repay(now time.Time) {
	b.state.mu.Lock()
	n, bytes := 0, 0
	for n < len(b.state.loans) && now.After(b.state.loans[n].until) {
		bytes += b.state.loans[n].bytes
		n++
	}
	b.state.loans = slices.Delete(b.state.loans, 0, n)
	b.state.mu.Unlock()
	_ = b.holder.Add(-bytes)
}

// makeRoom states messages that come. If many came, old ones have to go first.
func (b *broker) makeRoom(n int) error {
	b.state.stated.Add(int64(n))
	if err := b.holder.Add(n); err != nil {
		return err
	}
	if b.state.fresh.Add(int64(n)) > maxFresh {
		return b.sweep()
	}
	return nil
}

// sweep drops what is old or too much, and states what is left.
func (b *broker) sweep() error {
	b.state.fresh.Store(0)
	before := b.state.stated.Load()
	b.cluster.ApplyRetention()
	var bytes int64
	for _, name := range b.state.names() {
		infos := b.cluster.PartitionInfos(name)
		if infos == nil {
			b.state.mu.Lock()
			if t := b.state.topics[name]; time.Since(t.since) > settled {
				delete(b.state.topics, name)
			}
			b.state.mu.Unlock()
		}
		for _, p := range infos {
			bytes += p.NumBytes + partitionBytes
		}
	}
	if d := bytes - before; d != 0 && b.state.stated.CompareAndSwap(before, bytes) {
		return b.holder.Add(int(d))
	}
	return nil
}

// keepHouse does what is to be done now and then.
func (b *broker) keepHouse(ctx context.Context) {
	t := time.NewTicker(houseEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			_ = b.sweep() // If it fails, the container ends.
			b.repay(now)
		}
	}
}
