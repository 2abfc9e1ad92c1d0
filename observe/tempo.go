package observe

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// tempoTraces is how many traces a question finds: each takes a request of its own.
	tempoTraces  = 50
	tempoReaders = 8 // of these requests at once
)

// tempo reads the traces that a Tempo has, in the form that Jaeger has them.
type tempo struct {
	http *http.Client
	base string
	most int // services that are asked for to see who calls whom
}

// TempoAt returns a client of the Tempo whose HTTP API is at a URL, for who wants to know who calls whom, of all
// services: it takes its time.
func TempoAt(client *http.Client, base string) Traces {
	return &tempo{client, strings.TrimRight(base, "/"), maxServices}
}

// maxServices is how many services of a Tempo are asked for at most.
const maxServices = 500

// Services implements Traces.
func (t *tempo) Services(ctx context.Context) ([]string, error) {
	return t.values(ctx, "service.name")
}

// Operations implements Traces. Tempo has the names of all services' spans in one list.
func (t *tempo) Operations(ctx context.Context, _ string) ([]string, error) {
	return t.values(ctx, "name")
}

func (t *tempo) values(ctx context.Context, tag string) ([]string, error) {
	var answer struct {
		Values []string `json:"tagValues"`
	}
	return answer.Values, t.get(ctx, "/api/search/tag/"+tag+"/values", nil, &answer)
}

// Search implements Traces.
func (t *tempo) Search(ctx context.Context, q TraceQuery) ([]Trace, error) {
	conditions := []string{fmt.Sprintf("resource.service.name = %q", q.Service)}
	if q.Operation != "" {
		conditions = append(conditions, fmt.Sprintf("name = %q", q.Operation))
	}
	if q.MinDuration > 0 {
		conditions = append(conditions, fmt.Sprintf("duration >= %v", q.MinDuration))
	}
	if q.MaxDuration > 0 {
		conditions = append(conditions, fmt.Sprintf("duration <= %v", q.MaxDuration))
	}
	for key, value := range q.Tags {
		conditions = append(conditions, fmt.Sprintf("span.%q = %q", key, value))
	}
	slices.Sort(conditions)
	limit := min(cmp.Or(q.Limit, tempoTraces), tempoTraces)
	v := url.Values{"q": {"{ " + strings.Join(conditions, " && ") + " }"}, "limit": {strconv.Itoa(limit)}}
	if !q.From.IsZero() && !q.To.IsZero() { // It wants both, in seconds.
		v.Set("start", strconv.FormatInt(q.From.Unix(), 10))
		v.Set("end", strconv.FormatInt(q.To.Add(time.Second).Unix(), 10))
	}
	var found struct {
		Traces []struct {
			ID string `json:"traceID"`
		} `json:"traces"`
	}
	if err := t.get(ctx, "/api/search", v, &found); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var list []Trace
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(tempoReaders)
	for _, f := range found.Traces[:min(len(found.Traces), limit)] {
		g.Go(func() error {
			trace, err := t.Trace(ctx, f.ID)
			if errors.Is(err, errNotFound) { // It was found in what is thrown away by now.
				return nil
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, *trace)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Trace) int { return cmp.Compare(b.start(), a.start()) })
	return list, nil
}

// start is when the trace began.
func (t *Trace) start() int64 {
	if len(t.Spans) == 0 {
		return 0
	}
	return slices.MinFunc(t.Spans, func(a, b Span) int { return cmp.Compare(a.StartTime, b.StartTime) }).StartTime
}

// Dependencies implements Traces: it counts calls in the newest traces of each service.
func (t *tempo) Dependencies(ctx context.Context, from, to time.Time) ([]Link, error) {
	services, err := t.Services(ctx)
	if err != nil {
		return nil, err
	}
	calls, seen := map[[2]string]int{}, map[string]bool{}
	for _, service := range services[:min(len(services), t.most)] {
		list, err := t.Search(ctx, TraceQuery{Service: service, From: from, To: to})
		if err != nil {
			return nil, err
		}
		for _, trace := range list {
			if !seen[trace.TraceID] {
				seen[trace.TraceID] = true
				trace.count(calls)
			}
		}
	}
	var links []Link
	for c, n := range calls {
		links = append(links, Link{c[0], c[1], n})
	}
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child))
	})
	return links, nil
}

// count adds the calls from one service to another.
func (t *Trace) count(calls map[[2]string]int) {
	service := map[string]string{} // by span
	for _, s := range t.Spans {
		service[s.SpanID] = t.Processes[s.ProcessID].ServiceName
	}
	for _, s := range t.Spans {
		if parent := service[s.Parent()]; parent != "" && parent != service[s.SpanID] {
			calls[[2]string{parent, service[s.SpanID]}]++
		}
	}
}

// Trace implements Traces.
func (t *tempo) Trace(ctx context.Context, id string) (*Trace, error) {
	var answer struct {
		Batches []otlpResource `json:"batches"`
	}
	if err := t.get(ctx, "/api/traces/"+url.PathEscape(id), nil, &answer); err != nil {
		return nil, fmt.Errorf("trace %s: %w", id, err)
	}
	trace := &Trace{TraceID: id, Processes: map[string]Process{}}
	for i, r := range answer.Batches {
		process := "p" + strconv.Itoa(i+1)
		p := Process{Tags: r.Resource.tags()}
		for _, tag := range p.Tags {
			if tag.Key == "service.name" {
				p.ServiceName = fmt.Sprint(tag.Value)
			}
		}
		trace.Processes[process] = p
		for _, scope := range slices.Concat(r.ScopeSpans, r.LibrarySpans) {
			for _, s := range scope.Spans {
				trace.Spans = append(trace.Spans, s.span(id, process))
			}
		}
	}
	return trace, nil
}

func (t *tempo) get(ctx context.Context, path string, v url.Values, into any) error {
	err := askExternal(ctx, t.http, t.base+path, v, into)
	if err != nil && !errors.Is(err, errNotFound) {
		return fmt.Errorf("ask Tempo: %w", err)
	}
	return err
}

// What OpenTelemetry's spans are in JSON. Numbers of 64 bits are texts, and IDs in base64.
type (
	otlpResource struct {
		Resource     otlpAttributes `json:"resource"`
		ScopeSpans   []otlpScope    `json:"scopeSpans"`
		LibrarySpans []otlpScope    `json:"instrumentationLibrarySpans"` // of older ones
	}
	otlpScope struct {
		Spans []otlpSpan `json:"spans"`
	}
	otlpSpan struct {
		otlpAttributes
		SpanID   string          `json:"spanId"`
		ParentID string          `json:"parentSpanId"`
		Name     string          `json:"name"`
		Kind     json.RawMessage `json:"kind"` // a word, or its number
		Start    int64           `json:"startTimeUnixNano,string"`
		End      int64           `json:"endTimeUnixNano,string"`
		Status   struct {
			Code    json.RawMessage `json:"code"`
			Message string          `json:"message"`
		} `json:"status"`
	}
	otlpAttributes struct {
		Attributes []struct {
			Key   string         `json:"key"`
			Value map[string]any `json:"value"` // one entry, named by its type
		} `json:"attributes"`
	}
)

// spanKinds are what Jaeger calls the kinds of spans, by their numbers.
var spanKinds = []string{"", "internal", "server", "client", "producer", "consumer"}

// span is the span as Jaeger has it.
func (s *otlpSpan) span(trace, process string) Span {
	out := Span{
		TraceID: trace, SpanID: hexID(s.SpanID), OperationName: s.Name, StartTime: s.Start / 1000,
		Duration: (s.End - s.Start) / 1000, Tags: s.tags(), ProcessID: process,
	}
	if s.ParentID != "" {
		out.References = []Reference{{RefType: "CHILD_OF", TraceID: trace, SpanID: hexID(s.ParentID)}}
	}
	kind := strings.ToLower(strings.TrimPrefix(strings.Trim(string(s.Kind), `"`), "SPAN_KIND_"))
	if n, err := strconv.Atoi(kind); err == nil && n >= 0 && n < len(spanKinds) {
		kind = spanKinds[n]
	}
	if slices.Contains(spanKinds[1:], kind) {
		out.Tags = append(out.Tags, Tag{"span.kind", "string", kind})
	}
	if code := strings.Trim(string(s.Status.Code), `"`); code == "2" || code == "STATUS_CODE_ERROR" {
		out.Tags = append(out.Tags, Tag{"error", "bool", true})
		if s.Status.Message != "" {
			out.Tags = append(out.Tags, Tag{"otel.status_description", "string", s.Status.Message})
		}
	}
	return out
}

// tags are attributes as Jaeger has them.
func (a otlpAttributes) tags() (list []Tag) {
	for _, x := range a.Attributes {
		for kind, value := range x.Value {
			switch kind {
			case "stringValue", "boolValue", "doubleValue":
				list = append(list, Tag{x.Key, strings.TrimSuffix(kind, "Value"), value})
			case "intValue":
				list = append(list, Tag{x.Key, "int64", value})
			default: // a list, or a structure
				b, err := json.Marshal(value)
				if err == nil {
					list = append(list, Tag{x.Key, "string", string(b)})
				}
			}
		}
	}
	return list
}

// hexID is an ID as Jaeger writes it.
func hexID(id string) string {
	if len(id) == 16 || len(id) == 32 { // Eight or sixteen bytes in base64 end in '='.
		if _, err := hex.DecodeString(id); err == nil {
			return id
		}
	}
	b, err := base64.StdEncoding.DecodeString(id)
	if err != nil {
		return id
	}
	return hex.EncodeToString(b)
}
