package aci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aiopslab/aiopslab/aci/internal/box"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/observe"
)

// Archive is what is left of a system that is over: what it told until somebody was called. Services, not pods, are
// what it tells of.
type Archive interface {
	// Window is the time that it tells of. An agent looks at it as if it were the end.
	Window() (from, to time.Time)
	// Services are the parts of the system, and whom each calls by design, as far as that is known.
	Services() []ArchivedService
	// Tables are the files that it consists of, by their paths.
	Tables() []string
	Logs(take func(service string, l observe.LogLine)) error
	Spans(take func(ArchivedSpan)) error
	Samples(take func(at time.Time, service, metric string, v float64)) error
}

// ArchivedService is a part of a system.
type ArchivedService struct {
	Name, Kind string
	Calls      []string
}

// ArchivedSpan is a span of a trace. Parent is empty for the first of one.
type ArchivedSpan struct {
	Trace, ID, Parent, Service, Operation string
	Start                                 time.Time
	Duration                              time.Duration
	Failed                                bool
}

// OfflineOptions are what an interface to an archive needs.
type OfflineOptions struct {
	Task    string // detection, localization or analysis
	App     *app.App
	Archive Archive
	Dir     string   // see [Options]
	Self    []string // see [Options]
}

// OfflineTasks are the tasks that an archive can be asked about: there is nothing to mend.
var OfflineTasks = []string{term.Detection, term.Localization, term.Analysis}

// caseDir is where the tables of an archive are.
const caseDir = box.Home + "/case"

// errOffline is what is told of a cluster that is no more.
var errOffline = errors.New("the incident is over: there is no cluster, only what was recorded of it in " + caseDir)

// OfflineActions returns the actions with which an agent works on an archive, submit last.
func OfflineActions(task string) []*Action {
	return []*Action{
		archivedLogs, archivedMetrics, readArchivedMetrics, archivedTraces, readArchivedTraces, archivedTopology,
		archivedShell, submitAction(task),
	}
}

// NewOffline makes an interface to an archive.
func NewOffline(o OfflineOptions) (*Interface, error) {
	if !slices.Contains(OfflineTasks, o.Task) {
		return nil, fmt.Errorf("task %q: an incident that is over can be asked about %s", o.Task,
			strings.Join(OfflineTasks, ", "))
	}
	_, end := o.Archive.Window()
	i := &Interface{
		o:       Options{Task: o.Task, App: o.App, Namespaces: []string{o.App.Namespace}},
		archive: o.Archive, actions: OfflineActions(o.Task), now: func() time.Time { return end },
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, errOffline }
	var err error
	i.box, err = box.New(box.Options{Dir: o.Dir, Dial: dial, DNS: dnsDefault, API: nowhere, Self: o.Self})
	if err != nil {
		return nil, err
	}
	for _, file := range o.Archive.Tables() {
		if err := i.copy(file, path.Join(caseDir, filepath.Base(file))); err != nil {
			return nil, errors.Join(fmt.Errorf("give the agent %s: %w", filepath.Base(file), err), i.Close())
		}
	}
	return i, nil
}

// nowhere is the address of an API that is not there. Nothing listens on port 1.
const nowhere = "127.0.0.1:1"

// copy puts a file of the host into the agent's machine.
func (i *Interface) copy(file, target string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := i.box.Root().MkdirAll(path.Dir(target)[1:], 0o755); err != nil {
		return err
	}
	to, err := i.box.Root().Create(target[1:])
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

type archivedLogsArgs struct {
	Namespace string `arg:"namespace" doc:"The namespace of the application."`
	Service   string `arg:"service" doc:"The name of the service."`
	Tail      int    `arg:"tail" default:"200" doc:"How many of the last lines to show; 0 shows all."`
	Since     int    `arg:"since" default:"0" doc:"Only lines of the last so many minutes; 0 is from the start."`
	Level     string `arg:"level" default:"" enum:"debug,info,warn,error,fatal" doc:"Only lines of this level or worse."`
}

var archivedLogs = define("get_logs", Read,
	"Show the log lines of a service, in the order of time. "+
		"Of lines that follow one another and differ in their times only, the latest is shown with how often it came.",
	"str: the log lines, and what was left out.",
	func(_ context.Context, i *Interface, a *archivedLogsArgs) Result {
		if a.Tail < 0 || a.Since < 0 {
			return failed("tail and since must not be negative")
		}
		var from time.Time
		if a.Since > 0 {
			from = i.now().Add(-time.Duration(a.Since) * time.Minute)
		}
		var lines []observe.LogLine
		known := map[string]bool{}
		err := i.archive.Logs(func(service string, l observe.LogLine) {
			known[service] = true
			if service == a.Service && !l.Time.Before(from) && observe.AtLeast(l.Level, a.Level) {
				lines = append(lines, l)
			}
		})
		if err != nil {
			return failed("%v", err)
		}
		if !known[a.Service] {
			names := slices.Sorted(maps.Keys(known))
			return failed("there are no logs of %q.%s Those of %s are there", a.Service, didYouMean(a.Service, names),
				strings.Join(names, ", "))
		}
		slices.SortStableFunc(lines, func(x, y observe.LogLine) int { return x.Time.Compare(y.Time) })
		return Result{Text: showArchivedLogs(a, lines)}
	})

func showArchivedLogs(a *archivedLogsArgs, lines []observe.LogLine) string {
	total := len(lines)
	if a.Tail > 0 && total > a.Tail {
		lines = lines[total-a.Tail:]
	}
	texts := make([]string, len(lines))
	for n, l := range lines {
		texts[n] = l.Time.UTC().Format(time.RFC3339) + " " + l.Text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Logs of %s:\n\n", a.Service)
	for _, e := range dedup(texts, maxBlock) {
		b.WriteString(e.String() + "\n")
	}
	if total == 0 {
		b.WriteString("(no line is of that level and time)\n")
	}
	if shown := len(lines); shown < total {
		fmt.Fprintf(&b, "[The last %d of %d lines. get_logs(%q, %q, tail=%d) shows more; level=\"error\" and "+
			"since=MINUTES show less.]\n", shown, total, a.Namespace, a.Service, total)
	}
	return b.String()
}

var readArchivedMetrics = define("read_metrics", Read,
	"Read a CSV file of metrics, such as "+caseDir+"/metrics.csv.",
	"str: the table: time (seconds), and a column for each service and metric.",
	func(_ context.Context, i *Interface, a *readArgs) Result { return i.table(a.FilePath, "Metrics") })

var readArchivedTraces = define("read_traces", Read,
	"Read a CSV file of spans, such as "+caseDir+"/traces.csv.",
	"str: the table of spans, with startTime and duration in microseconds.",
	func(_ context.Context, i *Interface, a *readArgs) Result { return i.table(a.FilePath, "Traces") })

var archivedTraces = define("get_traces", Read,
	"Summarise the traces in the time up to the end: calls, errors and latency of each operation of each service, and "+
		"the slowest and failing requests with the span where it begins.",
	"str: the summary, and the file that all spans are in. read_traces shows it.",
	func(_ context.Context, i *Interface, a *windowArgs) Result {
		w, err := a.window(i.now())
		if err != nil {
			return failed("%v", err)
		}
		t := &spans{operations: map[string]*operation{}, roots: map[string]*request{}}
		err = i.archive.Spans(func(s ArchivedSpan) {
			if !s.Start.Before(w.From) && !s.Start.After(w.To) {
				t.add(s.Trace, s.Service, s.Operation, s.Duration.Microseconds(), s.Failed)
			}
		})
		if err != nil {
			return failed("%v", err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "Traces of %s, the last %s up to %s: %s, %s.\n", a.Namespace, count(a.Duration, "minute"),
			w.To.UTC().Format(time.RFC3339), count(len(t.roots), "trace"), count(t.spans, "span"))
		if t.spans > 0 {
			t.operationTable(&b)
			slow, failing := t.slowest(), t.failing()
			whole, err := i.archivedTraces(slices.Concat(slow, failing))
			if err != nil {
				return failed("%v", err)
			}
			describe := func(title string, list []*request) {
				for n, r := range list {
					if n == 0 {
						fmt.Fprintf(&b, "\n%s requests:\n", title)
					}
					b.WriteString(describeTrace(whole[r.id]))
				}
			}
			describe("Slowest", slow)
			describe("Failing", failing)
		}
		fmt.Fprintf(&b, "\nAll spans are in %s/traces.csv\n", caseDir)
		return Result{Text: b.String()}
	})

// archivedTraces are the traces of requests, as Jaeger would have them.
func (i *Interface) archivedTraces(list []*request) (map[string]*observe.Trace, error) {
	whole := map[string]*observe.Trace{}
	for _, r := range list {
		whole[r.id] = &observe.Trace{TraceID: r.id, Processes: map[string]observe.Process{}}
	}
	err := i.archive.Spans(func(s ArchivedSpan) {
		t := whole[s.Trace]
		if t == nil {
			return
		}
		span := observe.Span{
			TraceID: s.Trace, SpanID: s.ID, OperationName: s.Operation, StartTime: s.Start.UnixMicro(),
			Duration: s.Duration.Microseconds(), ProcessID: s.Service,
		}
		if s.Parent != "" {
			span.References = []observe.Reference{{RefType: "CHILD_OF", TraceID: s.Trace, SpanID: s.Parent}}
		}
		if s.Failed {
			span.Tags = []observe.Tag{{Key: "error", Type: "bool", Value: true}}
		}
		t.Spans = append(t.Spans, span)
		t.Processes[s.Service] = observe.Process{ServiceName: s.Service}
	})
	return whole, err
}

var archivedTopology = define("get_topology", Read,
	"Show the services, what they depend on by design, and who called whom in the traces.",
	"str: a table of the services, and the calls that were seen.",
	func(_ context.Context, i *Interface, _ *topologyArgs) Result {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SERVICE\tKIND\tDEPENDS ON")
		for _, s := range i.archive.Services() {
			fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, orDash(s.Kind), orDash(strings.Join(s.Calls, ", ")))
		}
		w.Flush()
		service, parents := map[string]string{}, map[string]int{}
		key := func(trace, id string) string { return trace + "/" + id }
		err := i.archive.Spans(func(s ArchivedSpan) { service[key(s.Trace, s.ID)] = s.Service })
		if err == nil {
			err = i.archive.Spans(func(s ArchivedSpan) {
				if from := service[key(s.Trace, s.Parent)]; from != "" && from != s.Service {
					parents[from+" -> "+s.Service]++
				}
			})
		}
		if err != nil {
			return failed("%v", err)
		}
		b.WriteString("\nCalls in the traces:\n")
		for _, link := range slices.Sorted(maps.Keys(parents)) {
			fmt.Fprintf(&b, "  %s: %d\n", link, parents[link])
		}
		if len(parents) == 0 {
			b.WriteString("  (none)\n")
		}
		return Result{Text: b.String()}
	})

var archivedShell = define(shellAction, Read,
	"Execute a command in a bash shell with jq, awk, sed, grep and the usual tools. The tables of the incident are in "+
		caseDir+". Pipes, loops, here-documents and $(...) work. Variables, functions, files and the working "+
		"directory stay from call to call. There is no cluster and no network.",
	execShell.Returns, runShell)
