package jaeger

import (
	"cmp"
	"fmt"
	"slices"
)

// traceJSON and what it is made of are Jaeger's JSON. Times are microseconds.
type traceJSON struct {
	TraceID   string                 `json:"traceID"`
	Spans     []spanJSON             `json:"spans"`
	Processes map[string]processJSON `json:"processes"`
	Warnings  []string               `json:"warnings"`
}

type spanJSON struct {
	TraceID       string      `json:"traceID"`
	SpanID        string      `json:"spanID"`
	OperationName string      `json:"operationName"`
	References    []reference `json:"references"`
	StartTime     uint64      `json:"startTime"`
	Duration      uint64      `json:"duration"`
	Tags          []tag       `json:"tags"`
	Logs          []logJSON   `json:"logs"`
	ProcessID     string      `json:"processID"`
	Warnings      []string    `json:"warnings"`
}

type reference struct {
	RefType string `json:"refType"` // CHILD_OF or FOLLOWS_FROM
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

type tag struct {
	Key   string `json:"key"`
	Type  string `json:"type"` // string, bool, int64, float64 or binary
	Value any    `json:"value"`
}

type logJSON struct {
	Timestamp uint64 `json:"timestamp"`
	Fields    []tag  `json:"fields"`
}

type processJSON struct {
	ServiceName string `json:"serviceName"`
	Tags        []tag  `json:"tags"`
}

func spanIDString(id uint64) string { return fmt.Sprintf("%016x", id) }

// present unpacks traces. It is called with s.mu held.
func (s *store) present(list []*trace) []*traceJSON {
	out := make([]*traceJSON, 0, len(list))
	for _, t := range list {
		out = append(out, s.presentTrace(t))
	}
	return out
}

func (s *store) presentTrace(t *trace) *traceJSON {
	j := &traceJSON{TraceID: t.id.String(), Processes: map[string]processJSON{}}
	names := map[uint32]string{}
	for i, p := range t.processes {
		names[p] = fmt.Sprintf("p%d", i+1)
		j.Processes[names[p]] = processJSON{s.processes[p].service, append([]tag{}, s.processes[p].tags...)}
	}
	for r := (reader{t.data, s.table}); len(r.b) > 0; {
		sp := r.next()
		h := sp.header()
		span := spanJSON{
			TraceID: j.TraceID, SpanID: spanIDString(h.id), OperationName: s.table.list[h.name],
			References: []reference{}, StartTime: h.start / 1000, Duration: h.duration / 1000,
			Tags: sp.tags(), Logs: []logJSON{}, ProcessID: names[h.process],
		}
		if h.parent != 0 {
			span.References = append(span.References, reference{"CHILD_OF", j.TraceID, spanIDString(h.parent)})
		}
		for n := sp.uvarint(); n > 0; n-- {
			span.Logs = append(span.Logs, logJSON{sp.uvarint() / 1000, sp.tags()})
		}
		for n := sp.uvarint(); n > 0; n-- {
			id := traceIDOf(sp.take(16))
			span.References = append(span.References, reference{"FOLLOWS_FROM", id.String(), spanIDString(sp.uint64())})
		}
		j.Spans = append(j.Spans, span)
	}
	slices.SortStableFunc(j.Spans, func(a, b spanJSON) int { return cmp.Compare(a.StartTime, b.StartTime) })
	return j
}
