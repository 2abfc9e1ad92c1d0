package jaeger

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// traceOverhead is what a trace takes besides its packed spans, in bytes.
const traceOverhead = 160

type traceID [16]byte

func traceIDOf(b []byte) (id traceID) {
	copy(id[max(0, 16-len(b)):], b)
	return id
}

// parseTraceID reads up to 32 hexadecimal digits.
func parseTraceID(s string) (id traceID, err error) {
	if s == "" || len(s) > 32 {
		return id, fmt.Errorf("%q is not a trace ID", s)
	}
	b, err := hex.DecodeString(strings.Repeat("0", 32-len(s)) + s)
	if err != nil {
		return id, fmt.Errorf("%q is not a trace ID: %w", s, err)
	}
	return traceIDOf(b), nil
}

// String is Jaeger's form: 16 digits if that is enough, else 32.
func (id traceID) String() string {
	s := hex.EncodeToString(id[:])
	return strings.TrimPrefix(s, "0000000000000000")
}

// trace is a trace with its packed spans.
type trace struct {
	id        traceID
	start     uint64 // of the earliest span, ns
	end       uint64 // of the span that starts last, ns
	spans     int
	data      []byte
	processes []uint32
}

func (t *trace) size() int64 { return int64(cap(t.data)) + traceOverhead }

// process is who made spans: a service with the tags of its resource.
type process struct {
	service string
	tags    []tag
}

type operation struct {
	Name     string `json:"name"`
	SpanKind string `json:"spanKind"`
}

// counts are the store's figures.
type counts struct{ received, spans, traces, bytes, evicted int64 }

// store keeps the newest traces.
type store struct {
	maxTraces int
	maxBytes  int64

	mu        sync.Mutex
	table     *table
	processes []process
	numbers   map[string]uint32 // packed resource -> process
	services  map[string]map[operation]bool
	traces    map[traceID]*trace
	order     []*trace // by arrival; the first gone entries are nil
	gone      int
	stats     counts
}

func newStore(maxTraces int, maxBytes int64) *store {
	return &store{
		maxTraces: maxTraces, maxBytes: maxBytes, table: newTable(),
		numbers: map[string]uint32{}, services: map[string]map[operation]bool{}, traces: map[traceID]*trace{},
	}
}

// add takes spans in and returns how many they are, and the bytes the store then holds.
func (s *store) add(list []*tracepb.ResourceSpans) (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range list {
		p := s.process(r.GetResource().GetAttributes())
		for _, scope := range r.ScopeSpans {
			for _, sp := range scope.Spans {
				s.addSpan(p, scope.GetScope().GetName(), sp)
				n++
			}
		}
	}
	s.evict()
	return n, s.stats.bytes
}

func (s *store) process(attributes []*common.KeyValue) uint32 {
	key := string(s.table.packTags(nil, attributes))
	if n, ok := s.numbers[key]; ok {
		return n
	}
	p := process{service: "unknown_service"}
	for _, t := range (&reader{[]byte(key), s.table}).tags() {
		if t.Key == "service.name" {
			p.service = fmt.Sprint(t.Value)
			continue
		}
		p.tags = append(p.tags, t)
	}
	n := uint32(len(s.processes))
	s.processes = append(s.processes, p)
	s.numbers[key] = n
	if s.services[p.service] == nil {
		s.services[p.service] = map[operation]bool{}
	}
	return n
}

func (s *store) addSpan(process uint32, scope string, sp *tracepb.Span) {
	id := traceIDOf(sp.TraceId)
	t := s.traces[id]
	if t == nil {
		t = &trace{id: id, start: sp.StartTimeUnixNano}
		s.traces[id] = t
		s.order = append(s.order, t)
		s.stats.traces++
		s.stats.bytes += t.size()
	}
	before := t.size()
	packed := s.table.packSpan(nil, process, sp, spanTags(scope, sp))
	if need := len(t.data) + len(packed); need > cap(t.data) {
		grown := make([]byte, len(t.data), need+need/4) // Few spans follow; doubling wastes too much.
		copy(grown, t.data)
		t.data = grown
	}
	t.data = append(t.data, packed...)
	t.spans++
	t.start, t.end = min(t.start, sp.StartTimeUnixNano), max(t.end, sp.StartTimeUnixNano)
	if !slices.Contains(t.processes, process) {
		t.processes = append(t.processes, process)
	}
	s.stats.bytes += t.size() - before
	s.stats.spans++
	s.stats.received++
	s.services[s.processes[process].service][operation{sp.Name, kindNames[sp.Kind]}] = true
}

// kindNames are OTLP's kinds in Jaeger's words.
var kindNames = map[tracepb.Span_SpanKind]string{
	tracepb.Span_SPAN_KIND_INTERNAL: "internal", tracepb.Span_SPAN_KIND_SERVER: "server",
	tracepb.Span_SPAN_KIND_CLIENT: "client", tracepb.Span_SPAN_KIND_PRODUCER: "producer",
	tracepb.Span_SPAN_KIND_CONSUMER: "consumer",
}

// spanTags are what OTLP has as fields and Jaeger as tags.
func spanTags(scope string, sp *tracepb.Span) (list []*common.KeyValue) {
	if scope != "" {
		list = append(list, stringTag("otel.scope.name", scope))
	}
	if kind := kindNames[sp.Kind]; kind != "" {
		list = append(list, stringTag("span.kind", kind))
	}
	switch sp.GetStatus().GetCode() {
	case tracepb.Status_STATUS_CODE_OK:
		list = append(list, stringTag("otel.status_code", "OK"))
	case tracepb.Status_STATUS_CODE_ERROR:
		list = append(list, stringTag("otel.status_code", "ERROR"))
		if !slices.ContainsFunc(sp.Attributes, func(kv *common.KeyValue) bool { return kv.Key == "error" }) {
			list = append(list, &common.KeyValue{
				Key:   "error",
				Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}},
			})
		}
		if m := sp.Status.Message; m != "" {
			list = append(list, stringTag("otel.status_description", m))
		}
	}
	if sp.TraceState != "" {
		list = append(list, stringTag("w3c.tracestate", sp.TraceState))
	}
	return append(list, stringTag("internal.span.format", "otlp"))
}

// evict drops the oldest traces until the rest fits.
func (s *store) evict() {
	for (s.maxTraces > 0 && len(s.traces) > s.maxTraces || s.maxBytes > 0 && s.stats.bytes > s.maxBytes) &&
		s.gone < len(s.order) {
		t := s.order[s.gone]
		s.order[s.gone] = nil
		s.gone++
		delete(s.traces, t.id)
		s.stats.traces--
		s.stats.spans -= int64(t.spans)
		s.stats.bytes -= t.size()
		s.stats.evicted++
	}
	if s.gone > len(s.order)/2 {
		s.order = slices.Clone(s.order[s.gone:])
		s.gone = 0
	}
}

func (s *store) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// serviceNames returns the services that were ever seen, sorted.
func (s *store) serviceNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.services {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// operations returns a service's operations, of one kind unless it is "", sorted.
func (s *store) operations(service, kind string) []operation {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []operation{}
	for o := range s.services[service] {
		if kind == "" || o.SpanKind == kind {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SpanKind, b.SpanKind))
	})
	return list
}

// query selects traces that have a span to which all of it applies.
type query struct {
	service, operation string
	exclude            []string // services that a trace must not have
	tags               map[string]string
	from, to           time.Time
	min, max           time.Duration // 0 is no bound
	limit              int           // 0 is no limit
}

// search returns the traces a query selects, the newest first.
func (s *store) search(q query) []*traceJSON {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*trace
	for _, t := range s.order[s.gone:] {
		if s.matches(t, &q) {
			found = append(found, t)
		}
	}
	slices.SortStableFunc(found, func(a, b *trace) int { return cmp.Compare(b.start, a.start) })
	if q.limit > 0 && len(found) > q.limit {
		found = found[:q.limit]
	}
	return s.present(found)
}

func (s *store) matches(t *trace, q *query) bool {
	from, to := uint64(max(0, q.from.UnixNano())), uint64(max(0, q.to.UnixNano()))
	if t.end < from || t.start > to {
		return false
	}
	if !slices.ContainsFunc(t.processes, func(p uint32) bool { return s.processes[p].service == q.service }) ||
		slices.ContainsFunc(t.processes, func(p uint32) bool {
			return slices.Contains(q.exclude, s.processes[p].service)
		}) {
		return false
	}
	for r := (reader{t.data, s.table}); len(r.b) > 0; {
		sp := r.next()
		h := sp.header()
		if s.processes[h.process].service == q.service && (q.operation == "" || s.table.list[h.name] == q.operation) &&
			h.start >= from && h.start <= to &&
			(q.min == 0 || h.duration >= uint64(q.min)) && (q.max == 0 || h.duration <= uint64(q.max)) &&
			(len(q.tags) == 0 || s.hasTags(&sp, h.process, q.tags)) {
			return true
		}
	}
	return false
}

// hasTags reports whether a span has all tags, as its own, of its process, or in its logs.
func (s *store) hasTags(sp *reader, process uint32, want map[string]string) bool {
	tags := append(sp.tags(), s.processes[process].tags...)
	for n := sp.uvarint(); n > 0; n-- {
		sp.uvarint()
		tags = sp.appendTags(tags)
	}
	for k, v := range want {
		if !slices.ContainsFunc(tags, func(t tag) bool { return t.Key == k && fmt.Sprint(t.Value) == v }) {
			return false
		}
	}
	return true
}

// get returns traces by ID. Those that are not there are left out.
func (s *store) get(ids ...traceID) []*traceJSON {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*trace
	for _, id := range ids {
		if t := s.traces[id]; t != nil {
			found = append(found, t)
		}
	}
	return s.present(found)
}

// link is how often one service called another.
type link struct {
	Parent    string `json:"parent"`
	Child     string `json:"child"`
	CallCount int    `json:"callCount"`
}

// links returns the calls between services in traces that started in a time.
func (s *store) links(from, to time.Time) []link {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := map[[2]string]int{}
	for _, t := range s.order[s.gone:] {
		if at := time.Unix(0, int64(t.start)); at.Before(from) || at.After(to) {
			continue
		}
		owner := make(map[uint64]uint32, t.spans)
		var all []header
		for r := (reader{t.data, s.table}); len(r.b) > 0; {
			sp := r.next()
			h := sp.header()
			all = append(all, h)
			owner[h.id] = h.process
		}
		for _, h := range all {
			if p, ok := owner[h.parent]; ok && h.parent != 0 {
				if parent, child := s.processes[p].service, s.processes[h.process].service; parent != child {
					calls[[2]string{parent, child}]++
				}
			}
		}
	}
	list := []link{}
	for k, n := range calls {
		list = append(list, link{k[0], k[1], n})
	}
	slices.SortFunc(list, func(a, b link) int {
		return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child))
	})
	return list
}
