package consul

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Health of a check, best first.
const (
	passing  = "passing"
	warning  = "warning"
	critical = "critical"
)

// An instance is one registered service.
type instance struct {
	ID      string
	Service string
	Tags    []string
	Meta    map[string]string
	Address string
	Port    int

	CreateIndex, ModifyIndex uint64
}

// A check tells whether something works. ServiceID is empty for the node's own.
type check struct {
	Node        string
	CheckID     string
	Name        string
	Status      string
	Notes       string
	Output      string
	ServiceID   string
	ServiceName string
	ServiceTags []string

	CreateIndex, ModifyIndex uint64
}

// A pair is an entry of the key-value store.
type pair struct {
	Key   string
	Value []byte
	Flags uint64

	LockIndex, CreateIndex, ModifyIndex uint64
}

// state is what the agent knows. Every change has an index, and wakes who waits for one.
type state struct {
	node string

	mu       sync.Mutex
	index    uint64
	changed  chan struct{} // closed at the next change
	services map[string]*instance
	checks   map[string]*check
	pairs    map[string]*pair
}

func newState(node string) *state {
	s := &state{
		node: node, index: 1, changed: make(chan struct{}),
		services: map[string]*instance{}, checks: map[string]*check{}, pairs: map[string]*pair{},
	}
	s.checks["serfHealth"] = &check{
		Node: node, CheckID: "serfHealth", Name: "Serf Health Status", Status: passing,
		Output: "Agent alive and reachable", ServiceTags: []string{}, CreateIndex: 1, ModifyIndex: 1,
	}
	return s
}

// bump starts a change. The caller holds the lock.
func (s *state) bump() uint64 {
	s.index++
	close(s.changed)
	s.changed = make(chan struct{})
	return s.index
}

// wait returns the current index and a channel that is closed at the next change.
func (s *state) wait() (uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index, s.changed
}

// register adds or replaces a service and its checks. What is the same already is no change.
func (s *state) register(i instance, checks []check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.services[i.ID]
	if old != nil && old.Service == i.Service && old.Address == i.Address && old.Port == i.Port &&
		slices.Equal(old.Tags, i.Tags) && maps.Equal(old.Meta, i.Meta) {
		return
	}
	i.ModifyIndex = s.bump()
	i.CreateIndex = i.ModifyIndex
	if old != nil {
		i.CreateIndex = old.CreateIndex
	}
	s.services[i.ID] = &i
	for id, c := range s.checks {
		if c.ServiceID == i.ID {
			delete(s.checks, id)
		}
	}
	for _, c := range checks {
		c.Node, c.ServiceID, c.ServiceName, c.ServiceTags = s.node, i.ID, i.Service, i.Tags
		c.CreateIndex, c.ModifyIndex = i.ModifyIndex, i.ModifyIndex
		s.checks[c.CheckID] = &c
	}
}

// deregister removes a service with its checks, and reports whether there was one.
func (s *state) deregister(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[id] == nil {
		return false
	}
	s.bump()
	delete(s.services, id)
	maps.DeleteFunc(s.checks, func(_ string, c *check) bool { return c.ServiceID == id })
	return true
}

// setCheck records a check's outcome. It reports whether there is such a check.
func (s *state) setCheck(id, status, output string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.checks[id]
	if c == nil {
		return false
	}
	if c.Status != status {
		c.ModifyIndex = s.bump()
		c.Status = status
	}
	c.Output = output
	return true
}

// instances returns copies of the services of a name, or of all for "", by ID.
func (s *state) instances(name string) []instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []instance
	for _, i := range s.services {
		if name == "" || i.Service == name {
			list = append(list, *i)
		}
	}
	slices.SortFunc(list, func(a, b instance) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// checksOf returns copies of the checks that match, by ID.
func (s *state) checksOf(match func(*check) bool) []check {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []check{}
	for _, c := range s.checks {
		if match(c) {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, func(a, b check) int { return cmp.Compare(a.CheckID, b.CheckID) })
	return list
}

// get returns the pairs whose key is, or begins with, the given one.
func (s *state) get(key string, prefix bool) []pair {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []pair
	for _, k := range slices.Sorted(maps.Keys(s.pairs)) {
		if k == key || prefix && strings.HasPrefix(k, key) {
			list = append(list, *s.pairs[k])
		}
	}
	return list
}

func (s *state) put(key string, value []byte, flags uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := pair{Key: key, Value: value, Flags: flags, ModifyIndex: s.bump()}
	p.CreateIndex = p.ModifyIndex
	if old := s.pairs[key]; old != nil {
		p.CreateIndex = old.CreateIndex
	}
	s.pairs[key] = &p
}

func (s *state) remove(key string, prefix bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bump()
	maps.DeleteFunc(s.pairs, func(k string, _ *pair) bool { return k == key || prefix && strings.HasPrefix(k, key) })
}
