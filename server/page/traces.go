package page

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/report/dataset"
)

const (
	askedTraces  = 200 // the newest, of which the slowest or those that failed are shown
	listedTraces = 40
	traceSpans   = 5000 // of one trace, at most
	traceTimeout = 10 * time.Second
)

// tracesPage is requests through the services, and one of them as a waterfall.
type tracesPage struct {
	clusterPart
	Service  string
	Services []string
	Sort     string
	Span     string
	Spans    []string
	Failed   bool
	Traces   []*listedTrace
	Asked    int
	Trace    *wholeTrace
}

// listedTrace is a request in a row of the list.
type listedTrace struct {
	*shownTrace
	Clock    string
	Services int
	Spans    int
	Current  bool
	begun    time.Time
}

// wholeTrace is a request in full.
type wholeTrace struct {
	*listedTrace
	Fall   template.HTML
	Errors []fact // of its spans
	There  string // in Jaeger's own page
	Cut    int
}

// showTraces answers with requests of a service: the slowest first, or the newest.
func (s *Site) showTraces(w http.ResponseWriter, r *http.Request) error {
	part, err := s.part("/traces")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	over := spanOf(q.Get("range"))
	p := &tracesPage{
		clusterPart: part, Service: q.Get("service"), Sort: "slowest", Span: over.Name, Spans: spanNames(),
		Failed: q.Get("only") == "failed",
	}
	if q.Get("sort") == "newest" {
		p.Sort = "newest"
	}
	ctx, cancel := context.WithTimeout(r.Context(), traceTimeout)
	defer cancel()
	tracer := s.Cluster.Telemetry.Jaeger(p.App.Namespace)
	if err := p.search(ctx, tracer, over); err != nil {
		p.Wrong = append(p.Wrong, clip("The traces cannot be read: "+err.Error()))
	}
	for _, t := range p.Traces {
		link := url.Values{"service": {p.Service}, "range": {p.Span}, "sort": {p.Sort}, "trace": {t.ID}}
		if p.Failed {
			link.Set("only", "failed")
		}
		t.Link, t.Current = "?"+link.Encode(), t.ID == q.Get("trace")
	}
	if id := q.Get("trace"); id != "" {
		one, err := tracer.Trace(ctx, id)
		if err != nil {
			p.Wrong = append(p.Wrong, clip("The trace cannot be read: "+err.Error()))
		} else {
			p.Trace = wholeOf(one)
			p.Trace.There = p.InJaeger(id)
		}
	}
	title := "Traces"
	if p.Trace != nil {
		title = p.Trace.Name
	}
	render(w, r, http.StatusOK, "traces", view{Title: title, Place: "cluster", Data: p})
	return nil
}

// search finds the traces of a service; if none is asked for, of the one that users call.
func (p *tracesPage) search(ctx context.Context, tracer observe.Traces, over span) (err error) {
	if p.Services, err = tracer.Services(ctx); err != nil {
		return err
	}
	slices.Sort(p.Services)
	if p.Service == "" && len(p.Services) > 0 {
		p.Service = p.Services[0]
		if slices.Contains(p.Services, p.App.Frontend.Service) {
			p.Service = p.App.Frontend.Service
		}
	}
	if p.Service == "" {
		return nil
	}
	now := time.Now()
	query := observe.TraceQuery{Service: p.Service, From: now.Add(-over.Length), To: now, Limit: askedTraces}
	if p.Failed {
		query.Tags = map[string]string{"error": "true"}
	}
	found, err := tracer.Search(ctx, query)
	if err != nil {
		return err
	}
	p.Asked = len(found)
	for i := range found {
		p.Traces = append(p.Traces, listedOf(&found[i]))
	}
	slices.SortStableFunc(p.Traces, func(a, b *listedTrace) int {
		if p.Sort == "slowest" {
			return -cmp.Compare(a.Took, b.Took)
		}
		return b.begun.Compare(a.begun)
	})
	p.Traces = p.Traces[:min(len(p.Traces), listedTraces)]
	return nil
}

// listedOf takes from a trace what a row of the list has.
func listedOf(t *observe.Trace) *listedTrace {
	l := &listedTrace{shownTrace: &shownTrace{ID: visible(t.TraceID)}, Spans: len(t.Spans)}
	services := map[string]bool{}
	known := map[string]bool{}
	var first, last int64
	for i := range t.Spans {
		s := &t.Spans[i]
		known[s.SpanID] = true
		if i == 0 || s.StartTime < first {
			first = s.StartTime
		}
		last = max(last, s.StartTime+s.Duration)
		services[t.Processes[s.ProcessID].ServiceName] = true
		l.Failed = l.Failed || s.Tag("error") == "true"
	}
	for i := range t.Spans[:min(len(t.Spans), traceSpans)] {
		s := &t.Spans[i]
		service := t.Processes[s.ProcessID].ServiceName
		if l.Name == "" && !known[s.Parent()] {
			l.Name = visible(service + " " + s.OperationName)
		}
		l.spans = append(l.spans, dataset.Span{
			Trace: t.TraceID, ID: s.SpanID, Parent: s.Parent(), Service: service, Operation: s.OperationName,
			Start: time.UnixMicro(s.StartTime), Duration: time.Duration(s.Duration) * time.Microsecond,
			Failed: s.Tag("error") == "true",
		})
	}
	l.begun = time.UnixMicro(first)
	l.Clock, l.Took, l.Services = clock(l.begun), float64(last-first)/1e6, len(services)
	l.Name = cmp.Or(l.Name, l.ID)
	return l
}

// wholeOf draws a trace, and lists what failed in it.
func wholeOf(t *observe.Trace) *wholeTrace {
	one := &wholeTrace{listedTrace: listedOf(t)}
	one.Fall = waterfall(one.shownTrace).html()
	one.Cut = max(0, len(t.Spans)-fallRows)
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.Tag("error") != "true" || len(one.Errors) >= 12 {
			continue
		}
		why := cmp.Or(s.Tag("otel.status_description"), s.Tag("error.message"), s.Tag("http.status_code"), "failed")
		for _, entry := range s.Logs {
			for _, f := range entry.Fields {
				if f.Key == "message" || f.Key == "exception.message" || f.Key == "event" {
					why = fmt.Sprint(f.Value)
				}
			}
		}
		one.Errors = append(one.Errors, fact{
			clip(t.Processes[s.ProcessID].ServiceName + " " + s.OperationName), clip(why),
		})
	}
	return one
}
