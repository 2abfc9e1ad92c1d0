package apps

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"

	"github.com/aiopslab/aiopslab/observe"
	format "github.com/aiopslab/aiopslab/observe/parquet"
	"github.com/aiopslab/aiopslab/test/labtest"
	"github.com/aiopslab/aiopslab/workload"
)

// query asks Prometheus and returns the answer by the value of a label.
func query(t *testing.T, promql string, by model.LabelName) (map[string]float64, error) {
	v, _, err := observer.Prometheus().Query(t.Context(), promql, time.Now())
	if err != nil {
		return nil, err
	}
	list, ok := v.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("%s is a %s", promql, v.Type())
	}
	m := map[string]float64{}
	for _, s := range list {
		m[string(s.Metric[by])] += float64(s.Value)
	}
	return m, nil
}

// sent is how many requests of a handler the users of a load made: at least so many, and more if they
// had to ask again.
type sent struct {
	least float64
	again bool
}

// requests counts the requests of a load's operations by their paths, which are the handlers' names.
func (x *application) requests(t *testing.T, operations []workload.SLI) map[string]sent {
	t.Helper()
	mix, err := workload.FindMix(x.Mixes, x.Mix)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]sent{}
	for _, done := range operations {
		i := slices.IndexFunc(mix.Operations, func(o workload.Operation) bool { return o.Name == done.Operation })
		o := mix.Operations[i]
		add := func(c workload.Call, again bool) {
			if !slices.Contains(c.Expect.Status, http.StatusOK) {
				return
			}
			s := counts[c.Path]
			s.least += float64(done.Requests - done.Failed)
			s.again = s.again || again || done.Failed > 0
			counts[c.Path] = s
		}
		add(o.Call, false)
		for _, then := range o.Then {
			add(then.Call, then.Within > 0)
		}
	}
	return counts
}

// countsMatch sends load, and waits until Prometheus has counted as many requests of each handler as
// the load has: within 2 %, though nothing should be lost.
func (x *application) countsMatch(t *testing.T) {
	t.Helper()
	const requests, within = 300, 0.02
	promql := fmt.Sprintf(`sum by (handler) (http_requests_total{namespace=%q, service=%q, code="200"})`, x.Namespace, x.Frontend.Service)
	scraped := time.Now()
	before := labtest.Await(t, func() (map[string]float64, error) {
		m, err := query(t, fmt.Sprintf(`min(timestamp(up{namespace=%q, service=%q}))`, x.Namespace, x.Frontend.Service), "")
		if err == nil && m[""] < float64(scraped.Unix()+1) {
			err = errors.New("the frontend has not been scraped yet")
		}
		if err != nil {
			return nil, err
		}
		return query(t, promql, "handler")
	})
	l := x.load(t, 60)
	labtest.Await(t, func() (none struct{}, err error) {
		if n := l.Snapshot().Window("whole").Total.Requests; n < requests {
			err = fmt.Errorf("%d requests", n)
		}
		return none, err
	})
	end := l.end()
	whole := end.Window("whole")
	want := x.requests(t, whole.Operations)
	got := labtest.Await(t, func() (map[string]float64, error) {
		after, err := query(t, promql, "handler")
		if err != nil {
			return nil, err
		}
		for h, n := range want {
			if d := after[h] - before[h]; d < n.least*(1-within) || d > n.least*(1+within) && !n.again {
				return nil, fmt.Errorf("Prometheus counted %v requests of %s, the load %v", d, h, n.least)
			}
		}
		return after, nil
	})
	t.Logf("Prometheus had counted %v, and then %v; of %d requests %d failed: %+v", before, got, whole.Total.Requests, whole.Total.Failed, end.Failures)
}

// edge is a call of one service by another, or of a kind of store by a service.
type edge struct{ from, to string }

// tracesConnect waits until Jaeger has every call there is in the application, but for those nobody
// makes, and checks that all spans of a request have the right parents.
func (x *application) tracesConnect(t *testing.T, unused ...edge) {
	t.Helper()
	graph := map[edge]bool{}
	for _, s := range x.Services {
		for _, c := range s.Calls {
			callee, _ := x.Service(c)
			if callee.Kind == "service" {
				graph[edge{s.Name, c}] = true
			} else {
				graph[edge{s.Name, callee.Kind}] = true
			}
		}
	}
	j := observer.Jaeger(x.Namespace)
	labtest.Await(t, func() (none struct{}, err error) {
		missing := maps.Clone(graph)
		for _, e := range unused {
			delete(missing, e)
		}
		for _, s := range x.Services {
			if s.Kind != "service" {
				continue
			}
			traces, err := j.Search(t.Context(), observe.TraceQuery{Service: s.Name, From: x.deployed, Limit: 1000})
			if err != nil {
				return none, err
			}
			for i := range traces {
				if err := x.connected(&traces[i], graph, missing); err != nil {
					return none, fmt.Errorf("trace %s: %w", traces[i].TraceID, err)
				}
			}
		}
		if len(missing) > 0 {
			err = fmt.Errorf("no trace shows the calls %v", slices.Collect(maps.Keys(missing)))
		}
		return none, err
	})
}

// connected checks one trace, and takes the calls it shows out of those missing.
func (x *application) connected(tr *observe.Trace, graph, missing map[edge]bool) error {
	spans := map[string]*observe.Span{}
	for i := range tr.Spans {
		spans[tr.Spans[i].SpanID] = &tr.Spans[i]
	}
	serviceOf := func(s *observe.Span) string {
		if name := tr.Processes[s.ProcessID].ServiceName; name != "nginx-web-server" {
			return name
		}
		return "nginx-thrift" // The deployment, which the original's traces call by another name.
	}
	for _, s := range spans {
		service := serviceOf(s)
		if system := s.Tag("db.system"); system != "" {
			e := edge{service, system}
			if !graph[e] {
				return fmt.Errorf("%s uses %s", e.from, e.to)
			}
			delete(missing, e)
		}
		if s.Parent() == "" {
			if len(spans) > 1 && !strings.HasPrefix(s.OperationName, "HTTP ") {
				return fmt.Errorf("%s of %s has no parent", s.OperationName, service)
			}
			continue
		}
		p := spans[s.Parent()]
		if p == nil {
			return fmt.Errorf("the parent of %s of %s is missing", s.OperationName, service)
		}
		if s.StartTime < p.StartTime {
			return fmt.Errorf("%s of %s starts before its parent, %s", s.OperationName, service, p.OperationName)
		}
		if e := (edge{serviceOf(p), service}); e.from != e.to {
			if !graph[e] {
				return fmt.Errorf("%s calls %s", e.from, e.to)
			}
			delete(missing, e)
		}
	}
	return nil
}

// alert returns the application's alert of a name and labels.
func (x *application) alert(t *testing.T, name string, labels map[string]string) (*observe.Alert, error) {
	alerts, err := observer.Alerts(t.Context(), x.Namespace)
	if err != nil {
		return nil, err
	}
	for i := range alerts {
		a := &alerts[i]
		matches := a.Name == name
		for k, v := range labels {
			matches = matches && a.Labels[k] == v
		}
		if matches {
			return a, nil
		}
	}
	return nil, nil
}

// alertFires waits until an alert is pending, and then until it fires.
func (x *application) alertFires(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	for _, state := range []string{"pending", "firing"} {
		a := labtest.Await(t, func() (*observe.Alert, error) {
			a, err := x.alert(t, name, labels)
			if err == nil && (a == nil || a.State != state) {
				err = fmt.Errorf("%s is not %s: %+v", name, state, a)
			}
			return a, err
		})
		t.Logf("%s since %v: %s", a.State, a.Since.Format(time.TimeOnly), a.Summary)
	}
}

// alertEnds waits until an alert is neither pending nor firing.
func (x *application) alertEnds(t *testing.T, name string) {
	t.Helper()
	labtest.Await(t, func() (none struct{}, err error) {
		a, err := x.alert(t, name, nil)
		if err == nil && a != nil {
			err = fmt.Errorf("%s is still %s", name, a.State)
		}
		return none, err
	})
}

// logsAnswer asks for the lines of all pods, and for those of a service that are of a level or worse
// and have a text.
func (x *application) logsAnswer(t *testing.T, service, level, text string) {
	t.Helper()
	ask := func(q observe.LogQuery) []observe.LogLine {
		t.Helper()
		q.Namespace, q.From = x.Namespace, x.deployed
		return labtest.Await(t, func() ([]observe.LogLine, error) {
			lines, err := observer.Logs(t.Context(), q)
			if err == nil && len(lines) == 0 {
				err = fmt.Errorf("no line for %+v", q)
			}
			return lines, err
		})
	}
	all := ask(observe.LogQuery{})
	for _, s := range x.Services {
		// A memcached says nothing.
		if s.Kind != "memcached" && !slices.ContainsFunc(all, func(l observe.LogLine) bool { return strings.HasPrefix(l.Pod, s.Name+"-") }) {
			t.Errorf("%s has no log", s.Name)
		}
	}
	for _, l := range ask(observe.LogQuery{Service: service, Level: level, Text: text}) {
		if !strings.HasPrefix(l.Pod, service+"-") || l.Level != level || !strings.Contains(l.Text, text) {
			t.Errorf("a line of %s of level %s with %q: %+v", service, level, text, l)
		}
	}
}

// exports writes the telemetry so far in both formats.
func (x *application) exports(t *testing.T) {
	t.Helper()
	w := observe.Window{Namespace: x.Namespace, From: x.deployed, To: time.Now()}
	for _, f := range []observe.Format{observe.CSV, format.Format} {
		dir, err := observer.Export(t.Context(), w, t.TempDir(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{
			"metric/container/kpi_container_cpu_usage_seconds_total", "metric/container/kpi_container_memory_working_set_bytes",
			fmt.Sprintf("trace/traces_%d", w.To.Unix()), fmt.Sprintf("log/log_%d", w.To.Unix()),
		} {
			n, err := rows(filepath.Join(dir, path) + "." + f.Ext)
			if err != nil || n < len(x.Services) {
				t.Errorf("%s: %d rows, %v", path, n, err)
			}
			t.Logf("%s.%s has %d rows", path, f.Ext, n)
		}
	}
}

// rows counts the rows of a CSV or Parquet file.
func rows(name string) (int, error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if filepath.Ext(name) == ".csv" {
		list, err := csv.NewReader(file).ReadAll()
		return len(list) - 1, err
	}
	st, err := file.Stat()
	if err != nil {
		return 0, err
	}
	p, err := parquet.OpenFile(file, st.Size())
	if err != nil {
		return 0, err
	}
	return int(p.NumRows()), nil
}
