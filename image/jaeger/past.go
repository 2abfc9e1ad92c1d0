package jaeger

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// pastTraces is how many traces of the past there are, at most.
	pastTraces = 6000
	// dense is since when there are as many traces as now. Of the time before, there are ever fewer.
	dense = time.Minute
	// oldest is how old a trace can be.
	oldest = 6 * time.Hour
	// arrival is how long it takes until all spans of a trace have come: services send them once a second.
	arrival = 1500 * time.Millisecond
)

// recall makes traces of the past, like those that have come since there was load, once all spans of these have
// come. If there is none to go by, there is no past.
func (s *server) recall(ctx context.Context, p *past.Past) {
	for wait := time.Until(p.Join.Add(arrival)); ; wait = arrival / 10 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if bytes, ok := s.store.recall(p); ok {
			_ = s.held.set(s.env.Memory, bytes) // If it fails the container is killed.
			return
		}
		if time.Since(p.Join) > 10*arrival {
			return
		}
	}
}

// recall returns how many bytes the store then holds, and whether it has made a past.
func (s *store) recall(p *past.Past) (bytes int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	like := s.examples(p)
	if len(like) == 0 {
		return s.stats.bytes, false
	}
	// Not all that have come are examples; all have come.
	all := 0
	for _, t := range s.order[s.gone:] {
		if t.start >= uint64(p.Loaded.UnixNano()) && t.start < uint64(p.Join.UnixNano()) {
			all++
		}
	}
	rate := float64(max(all, 1)) / p.Join.Sub(p.Loaded).Seconds()
	s.forget(p.Loaded)
	r := rand.New(rand.NewPCG(p.Seed, 0x7ace))
	m := &made{store: s, past: p, rand: r, processes: map[variant]uint32{}}
	var list []*trace
	ago := p.Join.Sub(p.Loaded).Seconds()
	for len(list) < pastTraces {
		density := rate * math.Min(1, math.Pow(dense.Seconds()/ago, 1.5))
		if ago += r.ExpFloat64() / density; ago > oldest.Seconds() {
			break
		}
		at := p.Join.Add(-time.Duration(ago * float64(time.Second)))
		list = append(list, m.trace(like[r.IntN(len(like))], at))
	}
	slices.Reverse(list) // The oldest has come first.
	for _, t := range list {
		s.traces[t.id] = t
		s.stats.traces++
		s.stats.spans += int64(t.spans)
		s.stats.received += int64(t.spans)
		s.stats.bytes += t.size()
	}
	s.order, s.gone = append(list, s.order[s.gone:]...), 0
	s.evict()
	return s.stats.bytes, true
}

// examples are traces that are complete and went well: of those that begin alike, the ones in which most took part.
// Those since there has been the usual load are taken if there are any.
func (s *store) examples(p *past.Past) (list []*trace) {
	most, name := map[uint32]int{}, map[*trace]uint32{}
	for _, t := range s.order[s.gone:] {
		if root, ok := s.root(t); ok && t.start < uint64(p.Join.UnixNano()) {
			name[t] = root
			most[root] = max(most[root], len(t.processes))
			list = append(list, t)
		}
	}
	list = slices.DeleteFunc(list, func(t *trace) bool { return len(t.processes) < most[name[t]] })
	usual := slices.DeleteFunc(slices.Clone(list), func(t *trace) bool { return t.start < uint64(p.Loaded.UnixNano()) })
	if len(usual) > 0 {
		return usual
	}
	return list
}

// root returns the name of a trace's first span, and whether the trace can be an example.
func (s *store) root(t *trace) (name uint32, ok bool) {
	ids, roots := map[uint64]bool{0: true}, 0
	var all []header
	for r := (reader{t.data, s.table}); len(r.b) > 0; {
		sp := r.next()
		h := sp.header()
		all, ids[h.id] = append(all, h), true
		if h.parent == 0 {
			name = h.name
			roots++
		}
		for _, tag := range sp.tags() {
			if tag.Key == "error" {
				return 0, false
			}
		}
		events := sp.uvarint()
		if events != 0 {
			return 0, false // They tell times of their own.
		}
		if links := sp.uvarint(); links != 0 {
			return 0, false // They tell IDs.
		}
	}
	return name, roots == 1 && !slices.ContainsFunc(all, func(h header) bool { return !ids[h.parent] })
}

// forget drops the traces that began before a time.
func (s *store) forget(before time.Time) {
	s.order = slices.DeleteFunc(slices.Clone(s.order[s.gone:]), func(t *trace) bool {
		if t.start >= uint64(before.UnixNano()) {
			return false
		}
		delete(s.traces, t.id)
		s.stats.traces--
		s.stats.spans -= int64(t.spans)
		s.stats.bytes -= t.size()
		return true
	})
	s.gone = 0
}

// variant is a process as another pod had it.
type variant struct {
	process uint32
	pod     string
}

// made makes traces of the past.
type made struct {
	*store
	past      *past.Past
	rand      *rand.Rand
	processes map[variant]uint32
}

// trace returns a trace like another, at another time: a bit faster or slower, with IDs of its own.
func (m *made) trace(like *trace, at time.Time) *trace {
	mask, pace := m.rand.Uint64()|1<<63, 0.85+0.4*m.rand.Float64()
	t := &trace{start: uint64(at.UnixNano()), spans: like.spans, data: make([]byte, 0, len(like.data)+8)}
	binary.BigEndian.PutUint64(t.id[:], m.rand.Uint64())
	binary.BigEndian.PutUint64(t.id[8:], m.rand.Uint64())
	for r := (reader{like.data, m.table}); len(r.b) > 0; {
		sp := r.next()
		h := sp.header()
		start := t.start + uint64(pace*float64(h.start-like.start))
		process := m.at(h.process, at)
		b := binary.BigEndian.AppendUint64(nil, h.id^mask)
		if h.parent != 0 {
			h.parent ^= mask
		}
		b = binary.BigEndian.AppendUint64(b, h.parent)
		b = binary.AppendUvarint(b, start)
		b = binary.AppendUvarint(b, uint64(pace*float64(h.duration)))
		b = binary.AppendUvarint(b, uint64(h.name))
		b = binary.AppendUvarint(b, uint64(process))
		b = append(b, sp.b...)
		t.data = append(binary.AppendUvarint(t.data, uint64(len(b))), b...)
		t.end = max(t.end, start)
		if !slices.Contains(t.processes, process) {
			t.processes = append(t.processes, process)
		}
	}
	return t
}

// at is who was there at a time in place of a process of now.
func (m *made) at(process uint32, at time.Time) uint32 {
	tags := m.store.processes[process].tags
	i := slices.IndexFunc(tags, func(t tag) bool { return t.Key == "host.name" })
	if i < 0 {
		return process
	}
	for _, g := range m.past.Gone {
		if g.Successor != tags[i].Value || at.Before(g.From) || !at.Before(g.To) {
			continue
		}
		v := variant{process, g.Pod}
		n, ok := m.processes[v]
		if !ok {
			tags = slices.Clone(tags)
			tags[i].Value = g.Pod
			n = uint32(len(m.store.processes))
			m.store.processes = append(m.store.processes, processOf(m.store.processes[process].service, tags))
			m.processes[v] = n
		}
		return n
	}
	return process
}

func processOf(service string, tags []tag) process { return process{service: service, tags: tags} }
