package jaeger

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/kit/past"
)

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
	salt, pace := m.rand.Uint64(), m.pace(like, at)
	t := &trace{start: uint64(at.UnixNano()), spans: like.spans, data: make([]byte, 0, len(like.data)+8)}
	binary.BigEndian.PutUint64(t.id[:], m.rand.Uint64())
	binary.BigEndian.PutUint64(t.id[8:], m.rand.Uint64())
	for r := (reader{like.data, m.table}); len(r.b) > 0; {
		sp := r.next()
		h := sp.header()
		start := t.start + uint64(pace*float64(h.start-like.start))
		process := m.at(h.process, at)
		b := binary.BigEndian.AppendUint64(nil, another(h.id, salt))
		b = binary.BigEndian.AppendUint64(b, another(h.parent, salt))
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

// pace is how many times as long a trace takes at a time as its example.
func (m *made) pace(like *trace, at time.Time) float64 {
	pace := 0.85 + 0.4*m.rand.Float64()
	if m.rand.Float64() >= m.past.Slow(at) {
		return pace
	}
	took := uint64(time.Millisecond)
	for r := (reader{like.data, m.table}); len(r.b) > 0; {
		sp := r.next()
		took = max(took, sp.header().duration)
	}
	return float64(time.Second) * (0.6 + m.rand.ExpFloat64()) / float64(took)
}

// another is the ID that a span has in a copy. None stays none.
func another(id, salt uint64) uint64 {
	if id == 0 {
		return 0
	}
	x := id ^ salt // splitmix64, which gives different numbers for different ones
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return max(1, x^x>>31)
}

// at is who was there at a time in place of a process of now.
func (m *made) at(of uint32, at time.Time) uint32 {
	tags := m.store.processes[of].tags
	i := slices.IndexFunc(tags, func(t tag) bool { return t.Key == "host.name" })
	if i < 0 {
		return of
	}
	for _, g := range m.past.Gone {
		if g.Successor != tags[i].Value || at.Before(g.From) || !at.Before(g.To) {
			continue
		}
		v := variant{of, g.Pod}
		n, ok := m.processes[v]
		if !ok {
			tags = slices.Clone(tags)
			tags[i].Value = g.Pod
			n = uint32(len(m.store.processes))
			m.store.processes = append(m.store.processes, process{m.store.processes[of].service, tags})
			m.processes[v] = n
		}
		return n
	}
	return of
}
