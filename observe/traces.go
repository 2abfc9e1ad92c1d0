package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Trace is a trace as Jaeger's query API has it. Times are microseconds.
type Trace struct {
	TraceID   string             `json:"traceID"`
	Spans     []Span             `json:"spans"`
	Processes map[string]Process `json:"processes"`
}

// Span is one operation of a trace.
type Span struct {
	TraceID       string      `json:"traceID"`
	SpanID        string      `json:"spanID"`
	OperationName string      `json:"operationName"`
	References    []Reference `json:"references"`
	StartTime     int64       `json:"startTime"`
	Duration      int64       `json:"duration"`
	Tags          []Tag       `json:"tags"`
	Logs          []SpanLog   `json:"logs"`
	ProcessID     string      `json:"processID"`
}

// Reference is what a span follows: its parent, if the type is CHILD_OF.
type Reference struct {
	RefType string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

// Tag is a typed attribute.
type Tag struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// SpanLog is something that happened during a span.
type SpanLog struct {
	Timestamp int64 `json:"timestamp"`
	Fields    []Tag `json:"fields"`
}

// Process is the program that made a span.
type Process struct {
	ServiceName string `json:"serviceName"`
	Tags        []Tag  `json:"tags"`
}

// Link is how often one service called another.
type Link struct {
	Parent    string `json:"parent"`
	Child     string `json:"child"`
	CallCount int    `json:"callCount"`
}

// Parent returns the ID of the span's parent, or "".
func (s *Span) Parent() string {
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" {
			return r.SpanID
		}
	}
	return ""
}

// Tag returns the value of a tag as text, or "".
func (s *Span) Tag(key string) string {
	for _, t := range s.Tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// TraceQuery selects traces that have a span which meets all conditions.
type TraceQuery struct {
	Service     string // required
	Operation   string
	Tags        map[string]string
	From, To    time.Time // zero is unbounded
	MinDuration time.Duration
	MaxDuration time.Duration
	Limit       int // 0 is Jaeger's default, 100

	exclude []string // services; the original does not know this and ignores it
}

// Jaeger is a client of Jaeger's query API.
type Jaeger struct {
	http *http.Client
	base string
}

// JaegerPort is where Jaeger answers queries.
const JaegerPort = 16686

// JaegerHost is where the Jaeger of an application answers inside the cluster.
func JaegerHost(namespace string) string {
	return fmt.Sprintf("jaeger.%s.svc.cluster.local:%d", namespace, JaegerPort)
}

// Traces is who has traces. Jaeger is one.
type Traces interface {
	// Services returns the names of the services that sent spans.
	Services(ctx context.Context) ([]string, error)
	// Operations returns the names of a service's operations.
	Operations(ctx context.Context, service string) ([]string, error)
	// Search returns the traces a query selects, the newest first.
	Search(ctx context.Context, q TraceQuery) ([]Trace, error)
	// Trace returns a trace by its ID.
	Trace(ctx context.Context, id string) (*Trace, error)
	// Dependencies returns who called whom between two times.
	Dependencies(ctx context.Context, from, to time.Time) ([]Link, error)
}

// Jaeger returns the client of the Jaeger of an application: service "jaeger" in its namespace, or who is asked
// instead.
func (o *Observer) Jaeger(namespace string) Traces {
	if o.external != nil {
		return o.external
	}
	return &Jaeger{o.http, "http://" + JaegerHost(namespace)}
}

// JaegerAt returns a client of the Jaeger whose query API is at a URL.
func JaegerAt(client *http.Client, base string) *Jaeger {
	return &Jaeger{client, strings.TrimRight(base, "/")}
}

// Services implements Traces.
func (j *Jaeger) Services(ctx context.Context) (names []string, err error) {
	return names, j.get(ctx, "/api/services", nil, &names)
}

// Operations implements Traces.
func (j *Jaeger) Operations(ctx context.Context, service string) (names []string, err error) {
	return names, j.get(ctx, "/api/services/"+url.PathEscape(service)+"/operations", nil, &names)
}

// Search implements Traces.
func (j *Jaeger) Search(ctx context.Context, q TraceQuery) (list []Trace, err error) {
	v := url.Values{"service": {q.Service}, "exclude": q.exclude}
	set := func(name, value string, ok bool) {
		if ok {
			v.Set(name, value)
		}
	}
	set("operation", q.Operation, q.Operation != "")
	set("start", strconv.FormatInt(q.From.UnixMicro(), 10), !q.From.IsZero())
	set("end", strconv.FormatInt(q.To.UnixMicro(), 10), !q.To.IsZero())
	set("minDuration", q.MinDuration.String(), q.MinDuration > 0)
	set("maxDuration", q.MaxDuration.String(), q.MaxDuration > 0)
	set("limit", strconv.Itoa(q.Limit), q.Limit > 0)
	if len(q.Tags) > 0 {
		b, err := json.Marshal(q.Tags)
		if err != nil {
			return nil, err
		}
		v.Set("tags", string(b))
	}
	return list, j.get(ctx, "/api/traces", v, &list)
}

// Trace implements Traces.
func (j *Jaeger) Trace(ctx context.Context, id string) (*Trace, error) {
	var list []Trace
	if err := j.get(ctx, "/api/traces/"+url.PathEscape(id), nil, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("trace %s: not found", id)
	}
	return &list[0], nil
}

// Dependencies implements Traces.
func (j *Jaeger) Dependencies(ctx context.Context, from, to time.Time) (list []Link, err error) {
	return list, j.get(ctx, "/api/dependencies", url.Values{
		"endTs":    {strconv.FormatInt(to.UnixMilli(), 10)},
		"lookback": {strconv.FormatInt(to.Sub(from).Milliseconds(), 10)},
	}, &list)
}

func (j *Jaeger) get(ctx context.Context, path string, v url.Values, into any) error {
	u := j.base + path
	if len(v) > 0 {
		u += "?" + v.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	res, err := j.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask Jaeger: %w", err)
	}
	defer res.Body.Close()
	answer := struct {
		Data   any                    `json:"data"`
		Errors []struct{ Msg string } `json:"errors"`
	}{Data: into}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("ask Jaeger: %w", err)
	}
	err = json.Unmarshal(body, &answer)
	switch {
	case err == nil && len(answer.Errors) > 0:
		return fmt.Errorf("ask Jaeger for %s: %s", path, answer.Errors[0].Msg)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("ask Jaeger for %s: %s", path, res.Status)
	case err != nil:
		return fmt.Errorf("ask Jaeger for %s: %w", path, err)
	}
	return nil
}
