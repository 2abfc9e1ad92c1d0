// Package chance is where a cluster's random numbers come from: which packets are lost, which endpoint
// a connection gets, which calls fail.
//
// Each user has a name, and each name has numbers of its own. They depend on the seed and the name alone, not on
// who else draws meanwhile. So two clusters with the same seed draw the same numbers, as long as things have the
// same names and each draws in its own order.
//
//	var s chance.Source
//	s.Seed(7)
//	lost := s.Draw("udp shop/geo > shop/db") < 0.1
package chance

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
)

// Source has a stream of numbers for each name. Its zero value is ready, with seed 0. It is safe for
// concurrent use.
type Source struct {
	epoch atomic.Uint64 // counts the calls of Seed

	mu      sync.Mutex
	seed    uint64
	streams map[string]*Stream
	forks   map[string]uint64 // how many there are of a name
}

// Stream is a sequence of numbers between 0 and 1. One goroutine at a time may use it.
type Stream struct{ rand *rand.Rand }

// Float64 returns the next number.
func (s *Stream) Float64() float64 { return s.rand.Float64() }

// Seed sets the seed, and starts the numbers of every name from the beginning.
func (s *Source) Seed(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seed, s.streams, s.forks = seed, nil, nil
	s.epoch.Add(1)
}

// Epoch changes with every Seed. Whoever holds a stream compares it to learn whether the stream is still valid.
func (s *Source) Epoch() uint64 { return s.epoch.Load() }

// Draw returns the next number of a name, at least 0 and less than 1. A name is remembered until the
// next Seed.
func (s *Source) Draw(name string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.streams[name]
	if t == nil {
		if s.streams == nil {
			s.streams = map[string]*Stream{}
		}
		t = s.stream(name)
		s.streams[name] = t
	}
	return t.Float64()
}

// Fork returns a stream for one of many things of the same name: the first, the second, and so on. The stream is
// the caller's, and valid during the epoch that is returned.
func (s *Source) Fork(name string) (t *Stream, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forks == nil {
		s.forks = map[string]uint64{}
	}
	n := s.forks[name]
	s.forks[name] = n + 1
	return s.stream(name + " " + strconv.FormatUint(n, 10)), s.epoch.Load()
}

// stream is called with s.mu held.
func (s *Source) stream(name string) *Stream {
	return &Stream{rand.New(rand.NewPCG(s.seed, Hash(name)))}
}

// Hash returns a number that depends on a name alone and looks random.
func Hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // It cannot fail.
	return h.Sum64()
}
