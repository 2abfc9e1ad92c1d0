package aci

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aiopslab/aiopslab/observe"
)

const (
	shownOperations = 60
	slowExamples    = 3
	failedExamples  = 5
)

var getTraces = define("get_traces", Read,
	"Summarise the traces of a namespace: calls, errors and latency of each operation of each service, and the "+
		"slowest and failing requests with the span where it begins. "+
		"All spans are exported to a CSV file.",
	"str: the summary, and the file. read_traces shows it.",
	func(ctx context.Context, i *Interface, a *windowArgs) Result {
		w, err := a.window(i.now())
		if err != nil {
			return failed("%v", err)
		}
		file, err := i.deliver(func(dir string) (string, error) {
			return i.o.Observer.ExportTraces(ctx, w, dir, observe.CSV)
		})
		if err != nil {
			return failed("%v", err)
		}
		t, err := i.readSpans(file)
		if err != nil {
			return failed("%v", err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Traces of %s, the last %s: %s, %s.\n", a.Namespace, count(a.Duration, "minute"),
			count(len(t.roots), "trace"), count(t.spans, "span"))
		if t.spans == 0 {
			b.WriteString("No request was traced in this time. Is there any load, and do the services run?\n")
		} else {
			t.operationTable(&b)
			i.examples(ctx, &b, a.Namespace, "Slowest", t.slowest())
			i.examples(ctx, &b, a.Namespace, "Failing", t.failing())
		}
		fmt.Fprintf(&b, "\nTraces data exported to: %s\n", file)
		return Result{Text: b.String()}
	})

var readTraces = define("read_traces", Read,
	"Read a CSV file of spans that get_traces exported.",
	"str: the table: trace_id, span_id, parent_span, service_name, operation_name, start_time and duration "+
		"(microseconds), has_error and response.",
	func(_ context.Context, i *Interface, a *readArgs) Result { return i.table(a.FilePath, "Traces") })

// operation is what is known of an operation of a service.
type operation struct {
	service, name string
	durations     []int64 // microseconds
	errors        int
}

// request is a trace as a whole.
type request struct {
	id       string
	duration int64 // of its longest span, which is the root if that is there
	failed   bool
}

// spans are the spans of an export, added up.
type spans struct {
	spans      int
	operations map[string]*operation
	roots      map[string]*request
}

// The columns of the file.
const (
	columnTrace, columnService, columnOperation, columnDuration, columnError = 0, 3, 4, 6, 7

	spanColumns = 9
)

// readSpans reads an exported file.
func (i *Interface) readSpans(file string) (*spans, error) {
	f, err := i.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &spans{operations: map[string]*operation{}, roots: map[string]*request{}}
	r := csv.NewReader(f)
	r.ReuseRecord = true
	for line := 0; ; line++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 0 || len(row) < spanColumns {
			continue
		}
		duration, err := strconv.ParseInt(row[columnDuration], 10, 64)
		if err != nil {
			continue
		}
		t.add(strings.Clone(row[columnTrace]), strings.Clone(row[columnService]), strings.Clone(row[columnOperation]),
			duration, row[columnError] == "True")
	}
}

func (t *spans) add(trace, service, name string, duration int64, failed bool) {
	t.spans++
	key := service + "\x00" + name
	op := t.operations[key]
	if op == nil {
		op = &operation{service: service, name: name}
		t.operations[key] = op
	}
	op.durations = append(op.durations, duration)
	r := t.roots[trace]
	if r == nil {
		r = &request{id: trace}
		t.roots[trace] = r
	}
	r.duration = max(r.duration, duration)
	if failed {
		op.errors++
		r.failed = true
	}
}

// quantile is a quantile of sorted numbers, by the nearest rank.
func quantile(sorted []int64, q float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// operationTable writes the operations, those with most errors first.
func (t *spans) operationTable(b *strings.Builder) {
	list := slices.Collect(maps.Values(t.operations))
	for _, op := range list {
		slices.Sort(op.durations)
	}
	slices.SortFunc(list, func(x, y *operation) int {
		return cmp.Or(cmp.Compare(y.errors, x.errors),
			cmp.Compare(quantile(y.durations, 0.95), quantile(x.durations, 0.95)),
			strings.Compare(x.service+x.name, y.service+y.name))
	})
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nSERVICE\tOPERATION\tCALLS\tERRORS\tP50 (ms)\tP95 (ms)\tMAX (ms)")
	for _, op := range list[:min(len(list), shownOperations)] {
		d := op.durations
		fmt.Fprintf(w, "%s\t%s\t%d\t%d (%.1f%%)\t%s\t%s\t%s\n", op.service, op.name, len(d), op.errors,
			100*float64(op.errors)/float64(len(d)),
			millis(quantile(d, 0.5)), millis(quantile(d, 0.95)), millis(d[len(d)-1]))
	}
	w.Flush()
	if more := len(list) - shownOperations; more > 0 {
		fmt.Fprintf(b, "[%s with fewer errors and lower latency are in the file.]\n", count(more, "operation"))
	}
}

func millis(us int64) string { return fmt.Sprintf("%.1f", float64(us)/1000) }

func (t *spans) slowest() []*request {
	list := slices.SortedFunc(maps.Values(t.roots), func(x, y *request) int {
		return cmp.Or(cmp.Compare(y.duration, x.duration), strings.Compare(x.id, y.id))
	})
	return list[:min(len(list), slowExamples)]
}

func (t *spans) failing() []*request {
	var list []*request
	for _, r := range t.roots {
		if r.failed {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y *request) int {
		return cmp.Or(cmp.Compare(y.duration, x.duration), strings.Compare(x.id, y.id))
	})
	return list[:min(len(list), failedExamples)]
}

// examples writes what a few requests went through.
func (i *Interface) examples(ctx context.Context, b *strings.Builder, namespace, title string, list []*request) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s requests:\n", title)
	for _, r := range list {
		t, err := i.o.Observer.Jaeger(namespace).Trace(ctx, r.id)
		if err != nil {
			fmt.Fprintf(b, "  trace %s, %s ms (%v)\n", r.id, millis(r.duration), err)
			continue
		}
		b.WriteString(describeTrace(t))
	}
}

// describeTrace tells of a trace: its root, the deepest span that failed, and where the time went.
func describeTrace(t *observe.Trace) string {
	parents := map[string]*observe.Span{}
	children := map[string]int64{} // time spent in them, by parent
	for n := range t.Spans {
		s := &t.Spans[n]
		parents[s.SpanID] = s
		children[s.Parent()] += s.Duration
	}
	depth := func(s *observe.Span) (d int) {
		for p := parents[s.Parent()]; p != nil && d <= len(t.Spans); p = parents[p.Parent()] {
			d++
		}
		return d
	}
	var root, deepest, busiest *observe.Span
	own := func(s *observe.Span) int64 { return s.Duration - children[s.SpanID] }
	for n := range t.Spans {
		s := &t.Spans[n]
		if root == nil || parents[s.Parent()] == nil && s.StartTime < root.StartTime {
			root = s
		}
		if s.Tag("error") == "true" && (deepest == nil || depth(s) > depth(deepest)) {
			deepest = s
		}
		if busiest == nil || own(s) > own(busiest) {
			busiest = s
		}
	}
	if root == nil {
		return ""
	}
	name := func(s *observe.Span) string { return t.Processes[s.ProcessID].ServiceName + " " + s.OperationName }
	var b strings.Builder
	at := time.UnixMicro(root.StartTime).UTC().Format(time.TimeOnly)
	fmt.Fprintf(&b, "  trace %s at %s: %s, %s ms, %s\n", t.TraceID, at, name(root), millis(root.Duration),
		count(len(t.Spans), "span"))
	if busiest != root {
		fmt.Fprintf(&b, "    most time in %s, %s ms by itself\n", name(busiest), millis(own(busiest)))
	}
	if deepest != nil {
		fmt.Fprintf(&b, "    deepest error in %s: %s\n", name(deepest), errorText(deepest))
	}
	return b.String()
}

// errorText is what a span says of its failure.
func errorText(s *observe.Span) string {
	for _, key := range []string{"otel.status_description", "error.message", "exception.message", "error.object"} {
		if v := s.Tag(key); v != "" {
			return oneLine(v)
		}
	}
	for _, l := range s.Logs {
		for _, f := range l.Fields {
			switch f.Key {
			case "exception.message", "message", "error.object":
				return oneLine(fmt.Sprint(f.Value))
			}
		}
	}
	for _, key := range []string{"http.status_code", "http.response.status_code", "rpc.grpc.status_code"} {
		if v := s.Tag(key); v != "" {
			return key + " " + v
		}
	}
	return "(it says no more)"
}

// oneLine is a text as a line that is not too long.
func oneLine(s string) string {
	const most = 300
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
