package pd

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

const (
	// aliveFor is how long a member counts as healthy after it was heard.
	aliveFor = 3 * time.Second
	// connectedFor is how long a store counts as up after its last report.
	connectedFor = 8 * time.Second
	// maxKnown bounds what strangers can make a server remember.
	maxKnown = 1000
)

// The states of a store that somebody wants to go. They never go back.
const (
	storeOffline   = "Offline"
	storeTombstone = "Tombstone"
)

// The states of the others.
const (
	storeUp           = "Up"
	storeDisconnected = "Disconnected"
	storeDown         = "Down"
)

// shared is what servers tell each other, and keep.
type shared struct {
	Cluster      uint64               `json:"cluster_id"`
	Founded      int64                `json:"founded"`
	Bootstrapped int64                `json:"bootstrapped,omitempty"`
	Members      map[string]kv.Member `json:"members"`
	Removed      map[uint64]string    `json:"removed,omitempty"` // members by ID
	Leaving      map[uint64]string    `json:"leaving,omitempty"` // states of stores by ID
	Evicted      map[uint64]eviction  `json:"evicted,omitempty"` // stores by ID
}

// eviction says whether a store is to lead no region, and since when. Of two servers, who heard later knows better.
type eviction struct {
	On bool  `json:"on"`
	At int64 `json:"at"` // nanoseconds
}

// state is what a server knows. Its methods may be called concurrently.
type state struct {
	mu     sync.Mutex
	me     kv.Member
	shared shared
	heard  map[string]time.Time // members, by name
	stores map[uint64]*store
	change bool // there is something to keep
	now    func() time.Time
	down   time.Duration // after how long a store that was not heard of is down
}

type store struct {
	kv.StoreReport
	last time.Time
}

func newState(me kv.Member, kept *shared, now func() time.Time) *state {
	s := &state{
		me: me, heard: map[string]time.Time{}, stores: map[uint64]*store{}, now: now, change: true,
		down: maxStoreDownTime,
	}
	if kept != nil {
		s.shared = *kept
		if old, ok := kept.Members[me.Name]; ok {
			s.me.MemberID = old.MemberID
		}
	}
	if s.shared.Members == nil {
		s.shared.Members = map[string]kv.Member{}
	}
	if s.shared.Removed == nil {
		s.shared.Removed = map[uint64]string{}
	}
	if s.shared.Leaving == nil {
		s.shared.Leaving = map[uint64]string{}
	}
	if s.shared.Evicted == nil {
		s.shared.Evicted = map[uint64]eviction{}
	}
	if s.shared.Cluster == 0 {
		s.shared.Cluster, s.shared.Founded = draw(), now().UnixNano()
	}
	if s.me.MemberID == 0 {
		s.me.MemberID = draw()
	}
	s.shared.Members[me.Name] = s.me
	return s
}

func draw() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) >> 1
}

// tell is what others are told.
func (s *state) tell() shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.shared
	c.Members, c.Removed, c.Leaving = maps.Clone(c.Members), maps.Clone(c.Removed), maps.Clone(c.Leaving)
	c.Evicted = maps.Clone(c.Evicted)
	return c
}

// learn takes in what another member knows. The cluster that was founded first is the one there is.
func (s *state) learn(from string, other shared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other.Cluster != 0 && (other.Founded < s.shared.Founded ||
		other.Founded == s.shared.Founded && other.Cluster < s.shared.Cluster) {
		s.shared.Cluster, s.shared.Founded, s.change = other.Cluster, other.Founded, true
	}
	s.bootstrap(other.Bootstrapped)
	for id, name := range other.Removed {
		if _, ok := s.shared.Removed[id]; !ok && len(s.shared.Removed) < maxKnown {
			s.shared.Removed[id], s.change = name, true
		}
	}
	for id, st := range other.Leaving {
		if s.shared.Leaving[id] != st && s.shared.Leaving[id] != storeTombstone && len(s.shared.Leaving) < maxKnown {
			s.shared.Leaving[id], s.change = st, true
		}
	}
	for id, e := range other.Evicted {
		known, ok := s.shared.Evicted[id]
		if known.At < e.At && (ok || len(s.shared.Evicted) < maxKnown) {
			s.shared.Evicted[id], s.change = e, true
		}
	}
	for name, m := range other.Members {
		known, ok := s.shared.Members[name]
		if !ok && len(s.shared.Members) >= maxKnown || name == s.me.Name {
			continue
		}
		// A member is known best to itself.
		if !ok || name == from && known.MemberID != m.MemberID {
			s.shared.Members[name], s.change = m, true
		}
	}
	for name, m := range s.shared.Members {
		if _, gone := s.shared.Removed[m.MemberID]; gone && name != s.me.Name {
			delete(s.shared.Members, name)
			delete(s.heard, name)
			s.change = true
		}
	}
	if _, ok := s.shared.Members[from]; ok {
		s.heard[from] = s.now()
	}
}

// bootstrap notes that there was a cluster at a time, if that is known, in seconds: the first such time is when it was
// bootstrapped. Stores whose containers have an age were started before there was one by what this server has kept.
func (s *state) bootstrap(at int64) {
	if at > 0 && (s.shared.Bootstrapped == 0 || at < s.shared.Bootstrapped) {
		s.shared.Bootstrapped, s.change = at, true
	}
}

// dismissed reports whether this server was removed from the cluster.
func (s *state) dismissed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, gone := s.shared.Removed[s.me.MemberID]
	return gone
}

// members are all, by name.
func (s *state) members() []kv.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted()
}

func (s *state) sorted() []kv.Member {
	byName := func(a, b kv.Member) int { return cmp.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(s.shared.Members), byName)
}

// healthy reports whether a member was heard lately.
func (s *state) healthy(name string) bool {
	return name == s.me.Name || s.now().Sub(s.heard[name]) < aliveFor
}

// pause is how long to wait before the next exchange: less while somebody is missing.
func (s *state) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.shared.Members {
		if !s.healthy(name) {
			return gossipEvery / 4
		}
	}
	return gossipEvery
}

// leader is the member that leads, or nil.
func (s *state) leader() *kv.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *kv.Member
	alive := 0
	for _, m := range s.sorted() {
		if s.healthy(m.Name) {
			if alive++; first == nil {
				first = &m
			}
		}
	}
	if 2*alive <= len(s.shared.Members) {
		return nil
	}
	return first
}

// remove takes a member out.
func (s *state) remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.shared.Members[name]
	if !ok {
		return false
	}
	s.shared.Removed[m.MemberID], s.change = name, true
	if name != s.me.Name {
		delete(s.shared.Members, name)
		delete(s.heard, name)
	}
	return true
}

// report notes what a store says, and returns what it is to do.
func (s *state) report(r kv.StoreReport) kv.Orders {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stores[r.ID] == nil && len(s.stores) >= maxKnown {
		return kv.Orders{Bootstrapped: true}
	}
	s.stores[r.ID] = &store{r, s.now()}
	if r.Member {
		s.bootstrap(cmp.Or(r.Started, s.now().Unix()))
	}
	// A store whose address another has now was replaced.
	for id, other := range s.stores {
		if id != r.ID && other.Address == r.Address && s.shared.Leaving[id] == "" {
			s.shared.Leaving[id], s.change = storeOffline, true
		}
	}
	o := kv.Orders{Bootstrapped: s.shared.Bootstrapped != 0}
	for id, st := range s.stores {
		if st.Member && s.now().Sub(st.last) < connectedFor {
			o.Stores = append(o.Stores, kv.Peer{ID: id, Address: st.Address})
		}
	}
	if !r.Leader {
		return o
	}
	if s.shared.Evicted[r.ID].On {
		o.Lead = s.successor(r)
	}
	for id, st := range s.shared.Leaving {
		if st != storeOffline {
			continue
		}
		if slices.ContainsFunc(r.Peers, func(p kv.Peer) bool { return p.ID == id }) {
			o.Remove = append(o.Remove, id)
		} else {
			s.shared.Leaving[id], s.change = storeTombstone, true
		}
	}
	return o
}

// stateOf is how a store is said to be.
func (s *state) stateOf(st *store) string {
	if leaving := s.shared.Leaving[st.ID]; leaving != "" {
		return leaving
	}
	switch silent := s.now().Sub(st.last); {
	case silent >= s.down:
		return storeDown
	case silent >= connectedFor:
		return storeDisconnected
	}
	return storeUp
}

// successor is the store that has applied most of those that may lead in the place of another, or 0.
func (s *state) successor(of kv.StoreReport) (id uint64) {
	for _, p := range of.Peers {
		st := s.stores[p.ID]
		if p.ID == of.ID || st == nil || s.stateOf(st) != storeUp || s.shared.Evicted[p.ID].On {
			continue
		}
		if best := s.stores[id]; best == nil || best.Applied < st.Applied {
			id = p.ID
		}
	}
	return id
}

// evict says that a store is to lead no region, or that it may again. known is false if there is no such store, or no
// such eviction.
func (s *state) evict(id uint64, on bool) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.shared.Evicted[id]
	if on && s.stores[id] == nil || !on && !was.On {
		return false
	}
	if was.On != on {
		s.shared.Evicted[id], s.change = eviction{on, max(s.now().UnixNano(), was.At+1)}, true
	}
	return true
}

// evictions are the stores that are to lead no region.
func (s *state) evictions() (list []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.shared.Evicted {
		if e.On {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// leave says that a store is to go.
func (s *state) leave(id uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stores[id] == nil {
		return false
	}
	if s.shared.Leaving[id] == "" {
		s.shared.Leaving[id], s.change = storeOffline, true
	}
	return true
}

// changed reports whether there is something to keep, once.
func (s *state) changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.change
	s.change = false
	return c
}
