package jaeger

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/kit/past"
)

// fading says which traces of the past there are.
var fading = past.Fading{Dense: time.Minute, Most: 3000, Older: 1500, Oldest: 6 * time.Hour}

const (
	// arrival is how long it takes until all spans of a trace have come: services send them once a second.
	arrival = 1500 * time.Millisecond
	// patience is how often it is tried to find traces to go by.
	patience = 20
)

// recall makes traces of the past, like those that have come since there was load, once all spans of these have
// come. If there is none to go by, there is no past. Whoever asks for traces meanwhile waits.
func (s *server) recall(ctx context.Context, p *past.Past) {
	defer s.recalling.Unlock()
	wait := time.Until(p.Join.Add(arrival))
	for range patience {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if bytes, ok := s.store.recall(p, s.started); ok {
			_ = s.held.set(s.env.Memory, bytes) // If it fails the container is killed.
			return
		}
		wait = arrival / 10
	}
}

// whenRecalled has questions wait while traces of the past are made.
func (s *server) whenRecalled(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.recalling.RLock()
		defer s.recalling.RUnlock()
		h.ServeHTTP(w, r)
	})
}

// recall returns how many bytes the store then holds, and whether it has made a past.
func (s *store) recall(p *past.Past, started time.Time) (bytes int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	like := s.examples(p)
	if len(like) == 0 {
		return s.stats.bytes, false
	}
	// Not all that have come are examples; all have come.
	var all counts
	for _, t := range s.order[s.gone:] {
		if t.start >= uint64(p.Loaded.UnixNano()) && t.start < uint64(p.Join.UnixNano()) {
			all.traces++
			all.spans += int64(t.spans)
		}
	}
	took := p.Join.Sub(p.Loaded).Seconds()
	s.forget(p.Loaded)
	m := &made{store: s, past: p, rand: rand.New(rand.NewPCG(p.Seed, 0x7ace)), processes: map[variant]uint32{}}
	var list []*trace
	for _, at := range p.Fade(m.rand, p.Loaded, float64(max(all.traces, 1))/took, fading) {
		list = append(list, m.trace(like[m.rand.IntN(len(like))], at))
	}
	slices.Reverse(list) // The oldest has come first.
	for _, t := range list {
		s.traces[t.id] = t
		s.stats.traces++
		s.stats.spans += int64(t.spans)
		s.stats.bytes += t.size()
	}
	if times := p.Work(started, p.Join) / took; times > 1 {
		s.stats.received = max(s.stats.received, int64(float64(all.spans)*times))
		s.stats.evicted = max(s.stats.evicted, int64(float64(all.traces)*times)-s.stats.traces)
	}
	s.order, s.gone = append(list, s.order[s.gone:]...), 0
	s.evict()
	return s.stats.bytes, true
}
