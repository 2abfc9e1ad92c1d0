package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// at is when things happen in these tests.
var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fake returns an observer of a cluster in which everybody is one handler.
func fake(t *testing.T, h http.Handler) *Observer {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o, err := New(&rest.Config{Host: srv.URL}, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return o
}

func reply(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

func TestAlerts(t *testing.T) {
	m := http.NewServeMux()
	m.HandleFunc("GET prometheus-server.observe.svc.cluster.local/api/v1/alerts", reply(`{"status":"success","data":{"alerts":[
		{"labels":{"alertname":"PendingPods","namespace":"shop","pod":"a"},"annotations":{},"state":"pending","activeAt":"2026-03-01T12:00:00Z","value":"1e+00"},
		{"labels":{"alertname":"HighRequestErrorRate","namespace":"shop","severity":"critical"},"annotations":{"summary":"8% fail"},"state":"firing","activeAt":"2026-03-01T12:00:01Z","value":"8e-02"},
		{"labels":{"alertname":"FailedPods","namespace":"other"},"annotations":{},"state":"firing","activeAt":"2026-03-01T12:00:00Z","value":"1e+00"}]}}`))
	o := fake(t, m)
	list, err := o.Alerts(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	want := []Alert{
		{Name: "HighRequestErrorRate", State: "firing", Severity: "critical", Namespace: "shop", Summary: "8% fail", Since: at.Add(time.Second), Value: 0.08, Labels: map[string]string{"alertname": "HighRequestErrorRate", "namespace": "shop", "severity": "critical"}},
		{Name: "PendingPods", State: "pending", Namespace: "shop", Since: at, Value: 1, Labels: map[string]string{"alertname": "PendingPods", "namespace": "shop", "pod": "a"}},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if all, err := o.Alerts(t.Context(), ""); err != nil || len(all) != 3 {
		t.Errorf("all: %v, %v", all, err)
	}
}

// An answer without end is not read: there is an error that says so.
func TestMaxAnswer(t *testing.T) {
	o := fake(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("[", 4096)); err != nil {
				return
			}
		}
	}))
	o.MaxAnswer = 64 << 10
	if _, err := o.Alerts(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Prometheus: %v", err)
	}
	if _, err := o.Jaeger("shop").Services(t.Context()); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Jaeger: %v", err)
	}
}

// TestStirring: what was scraped, but not evaluated yet, counts as well, through recording rules too.
func TestStirring(t *testing.T) {
	m := http.NewServeMux()
	m.HandleFunc("GET prometheus-server.observe.svc.cluster.local/api/v1/rules", reply(`{"status":"success","data":{"groups":[
		{"name":"r","file":"f","interval":5,"rules":[{"type":"recording","name":"errors:rate1m","query":"rate(errors[1m])","health":"ok"}]},
		{"name":"a","file":"f","interval":5,"rules":[
			{"type":"alerting","name":"Active","query":"up == 0","health":"ok","labels":{"severity":"critical"},"annotations":{},"duration":10,"alerts":[
				{"labels":{"alertname":"Active","pod":"a","severity":"critical"},"annotations":{},"state":"pending","activeAt":"2026-03-01T12:00:00Z","value":"1e+00"}]},
			{"type":"alerting","name":"Soon","query":"errors:rate1m > max_over_time(errors:rate1m[5m])","health":"ok","labels":{"severity":"critical","protocol":"http"},"annotations":{},"duration":10,"alerts":[]}]}]}}`))
	m.HandleFunc("POST prometheus-server.observe.svc.cluster.local/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		result := `[]`
		if r.FormValue("query") == "(rate(errors[1m])) > max_over_time(errors:rate1m[5m])" {
			result = `[{"metric":{"__name__":"errors","service":"geo"},"value":[1,"2"]}]`
		}
		reply(`{"status":"success","data":{"resultType":"vector","result":`+result+`}}`)(w, r)
	})
	got, err := fake(t, m).Stirring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`Active{pod="a"}`, `Soon{protocol="http", service="geo"}`}, got); diff != "" {
		t.Error(diff)
	}
}

const jaegerTrace = `{"traceID":"t1","spans":[
	{"traceID":"t1","spanID":"s1","operationName":"HTTP GET /hotels","references":[],"startTime":1772366400000000,"duration":9000,"tags":[{"key":"http.status_code","type":"int64","value":500},{"key":"error","type":"bool","value":true}],"logs":[],"processID":"p1"},
	{"traceID":"t1","spanID":"s2","operationName":"geo.Geo/Nearby","references":[{"refType":"CHILD_OF","traceID":"t1","spanID":"s1"}],"startTime":1772366400001000,"duration":4000,"tags":[],"logs":[],"processID":"p2"}],
	"processes":{"p1":{"serviceName":"frontend","tags":[]},"p2":{"serviceName":"geo","tags":[]}}}`

func TestJaeger(t *testing.T) {
	m := http.NewServeMux()
	var asked string
	m.HandleFunc("GET jaeger.shop.svc.cluster.local/api/traces", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Encode()
		reply(`{"data":[`+jaegerTrace+`],"errors":null}`)(w, r)
	})
	m.HandleFunc("GET /api/traces/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"data":null,"errors":[{"code":404,"msg":"trace not found"}]}`)
	})
	m.HandleFunc("GET /api/dependencies", reply(`{"data":[{"parent":"frontend","child":"geo","callCount":3}],"errors":null}`))
	j := fake(t, m).Jaeger("shop")
	list, err := j.Search(t.Context(), TraceQuery{
		Service: "frontend", Operation: "op", Tags: map[string]string{"error": "true"}, From: at, To: at.Add(time.Minute),
		MinDuration: time.Millisecond, Limit: 5,
	})
	if err != nil || len(list) != 1 || list[0].Spans[1].Parent() != "s1" || list[0].Spans[0].Tag("http.status_code") != "500" {
		t.Errorf("%+v, %v", list, err)
	}
	if want := "end=1772366460000000&limit=5&minDuration=1ms&operation=op&service=frontend&start=1772366400000000&tags=%7B%22error%22%3A%22true%22%7D"; asked != want {
		t.Errorf("asked %s, want %s", asked, want)
	}
	if _, err := j.Trace(t.Context(), "7"); err == nil || !strings.Contains(err.Error(), "trace not found") {
		t.Errorf("no error for a trace that is not there: %v", err)
	}
	if links, err := j.Dependencies(t.Context(), at, at.Add(time.Hour)); err != nil || len(links) != 1 || links[0] != (Link{"frontend", "geo", 3}) {
		t.Errorf("%v, %v", links, err)
	}
}

// cluster serves pods and their logs.
func cluster() *http.ServeMux {
	pod := func(name string, labels map[string]string, containers ...string) v1.Pod {
		p := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels}, Spec: v1.PodSpec{NodeName: "node-1"}}
		for _, c := range containers {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c})
		}
		return p
	}
	logs := map[string]string{
		"geo-1/geo":          "2026-03-01T12:00:00.100000000Z 2026-03-01T12:00:00Z INF geo/server.go:71 > Nearby\n2026-03-01T12:00:02Z 2026-03-01T12:00:02Z ERR geo/db.go:9 > cannot reach mongodb-geo\n",
		"geo-1/geo/previous": "2026-03-01T11:59:00Z panic: no database\n",
		"geo-2/geo":          "2026-03-01T12:00:01Z {\"s\":\"W\",\"msg\":\"slow, mongodb\"}\n",
		"rate-1/rate":        "2026-03-01T12:00:01.500000000Z plain\n",
	}
	m := http.NewServeMux()
	m.HandleFunc("GET /api/v1/namespaces/shop/pods", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []v1.Pod{
			pod("geo-1", map[string]string{"io.kompose.service": "geo"}, "geo"), pod("geo-2", map[string]string{"app": "geo"}, "geo"),
			pod("rate-1", map[string]string{"io.kompose.service": "rate"}, "rate"), pod("new-1", nil, "waiting"),
		}})
	})
	m.HandleFunc("GET /api/v1/namespaces/shop/pods/{pod}/log", func(w http.ResponseWriter, r *http.Request) {
		key := r.PathValue("pod") + "/" + r.URL.Query().Get("container")
		if r.URL.Query().Get("previous") == "true" {
			key += "/previous"
		}
		text, ok := logs[key]
		if !ok {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","message":"container is waiting to start","code":400}`)
			return
		}
		fmt.Fprint(w, text)
	})
	return m
}

func TestLogs(t *testing.T) {
	o := fake(t, cluster())
	for _, c := range []struct {
		name string
		q    LogQuery
		want []string // pod and level
	}{
		{"all", LogQuery{}, []string{"geo-1 info", "geo-2 warn", "rate-1 ", "geo-1 error"}},
		{"service by either label", LogQuery{Service: "geo"}, []string{"geo-1 info", "geo-2 warn", "geo-1 error"}},
		{"pod", LogQuery{Service: "geo-2"}, []string{"geo-2 warn"}},
		{"level", LogQuery{Level: "warn"}, []string{"geo-2 warn", "geo-1 error"}},
		{"text", LogQuery{Text: "MongoDB"}, []string{"geo-2 warn", "geo-1 error"}},
		{"from", LogQuery{From: at.Add(time.Second)}, []string{"geo-2 warn", "rate-1 ", "geo-1 error"}},
		{"to", LogQuery{To: at.Add(time.Second)}, []string{"geo-1 info"}},
		{"limit", LogQuery{Limit: 1}, []string{"geo-1 error"}},
		{"previous", LogQuery{Previous: true, Level: "fatal"}, []string{"geo-1 fatal"}},
		{"nobody", LogQuery{Service: "none"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.q.Namespace = "shop"
			lines, err := o.Logs(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range lines {
				got = append(got, l.Pod+" "+l.Level)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := o.Logs(t.Context(), LogQuery{Namespace: "shop", Level: "loud"}); err == nil || !strings.Contains(err.Error(), "use one of debug, info") {
		t.Errorf("a level that is none: %v", err)
	}
}

func TestLevelOf(t *testing.T) {
	for line, want := range map[string]string{
		"2026-03-01T12:30:05Z WRN geo/server.go:71 > slow":              "warn",
		`{"t":{"$date":"2026-03-01T12:30:05Z"},"s":"I","c":"NETWORK"}`:  "info",
		`{"level":"error","ts":1.5,"msg":"x"}`:                          "error",
		`time=2026-03-01T12:30:05Z level=WARN source=main.go:1 msg="x"`: "warn",
		"I0301 12:30:05.000000       1 server.go:1] Started":            "info",
		"E0301 12:30:05.000000       1 server.go:1] Failed":             "error",
		"[2026-Mar-01 12:30:05.1] <error>: (UserHandler.h:10) no":       "error",
		"2026/03/01 12:30:05 [error] 29#29: *1 connect() failed":        "error",
		"[INFO] plugin/reload: Running":                                 "info",
		"panic: runtime error":                                          "fatal",
		"an error in lower case is part of a message":                   "",
		"GET /error HTTP/1.1":                                           "",
		"":                                                              "",
	} {
		if got := levelOf(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// telemetry is a cluster with everything in it.
func telemetry() *http.ServeMux {
	m := cluster()
	m.HandleFunc("POST /api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		series := ""
		switch name, _, _ := strings.Cut(r.FormValue("query"), "{"); name {
		case "container_cpu_usage_seconds_total":
			series = `{"metric":{"pod":"geo-1","instance":"node-1"},"values":[[1772366400,"1.23456"],[1772366415,"2"]]},
				{"metric":{"pod":"redis-cart-1","instance":"node-1"},"values":[[1772366400,"1"]]}`
		case "container_network_receive_bytes_total":
			series = `{"metric":{"pod":"geo-1","instance":"node-1","interface":"eth0"},"values":[[1772366400,"1500000000"]]}`
		}
		reply(`{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`)(w, r)
	})
	m.HandleFunc("GET /api/services", reply(`{"data":["frontend","geo","jaeger-all-in-one"],"errors":null}`))
	m.HandleFunc("GET /api/traces", reply(`{"data":[`+jaegerTrace+`],"errors":null}`)) // for both services
	return m
}

func read(t *testing.T, names ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(names...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The files have the names, columns and forms of the original's.
func TestExportCSV(t *testing.T) {
	o := fake(t, telemetry())
	w := Window{Namespace: "shop", From: at.Add(-time.Minute), To: at.Add(time.Minute)}
	dir, err := o.ExportMetrics(t.Context(), w, t.TempDir(), CSV)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(dir, "metrics_output/metric_20260301_120100") {
		t.Errorf("directory %s", dir)
	}
	if got, want := read(t, dir, "container/kpi_container_cpu_usage_seconds_total.csv"), "timestamp,cmdb_id,kpi_name,value\n"+
		"1772366400,node-1.geo-1,container_cpu_usage_seconds_total,1.235\n1772366415,node-1.geo-1,container_cpu_usage_seconds_total,2.0\n"; got != want {
		t.Errorf("got %s", got)
	}
	if got, want := read(t, dir, "container/kpi_container_network_receive_bytes_total.csv"), "timestamp,cmdb_id,kpi_name,value\n"+
		"1772366400,node-1.geo-1,container_network_receive_bytes_total.eth0,1500000000.0\n"; got != want {
		t.Errorf("got %s", got)
	}
	if fi, err := os.Stat(filepath.Join(dir, "istio")); err != nil || !fi.IsDir() {
		t.Errorf("istio: %v", err)
	}

	file, err := o.ExportTraces(t.Context(), w, t.TempDir(), CSV)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(file, "trace_output/traces_1772366460.csv") {
		t.Errorf("file %s", file)
	}
	if got, want := read(t, file), "trace_id,span_id,parent_span,service_name,operation_name,start_time,duration,has_error,response\n"+
		"t1,s1,ROOT,frontend,HTTP GET /hotels,1772366400000000,9000,True,500\n"+
		"t1,s2,s1,geo,geo.Geo/Nearby,1772366400001000,4000,False,Unknown\n"; got != want {
		t.Errorf("got %s", got)
	}

	dir, err = o.Export(t.Context(), w, t.TempDir(), CSV)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, dir, "log/log_1772366460.csv"), "log_id,timestamp,date,pod_name,container_name,namespace,node_name,message\n"+
		"geo-1/geo/1,1772366340,2026-03-01T11:59:00.000Z,geo-1,geo,shop,node-1,panic: no database\n"+
		"geo-1/geo/2,1772366400,2026-03-01T12:00:00.100Z,geo-1,geo,shop,node-1,2026-03-01T12:00:00Z INF geo/server.go:71 > Nearby\n"+
		"geo-2/geo/1,1772366401,2026-03-01T12:00:01.000Z,geo-2,geo,shop,node-1,\"{\"\"s\"\":\"\"W\"\",\"\"msg\"\":\"\"slow, mongodb\"\"}\"\n"+
		"rate-1/rate/1,1772366401,2026-03-01T12:00:01.500Z,rate-1,rate,shop,node-1,plain\n"+
		"geo-1/geo/3,1772366402,2026-03-01T12:00:02.000Z,geo-1,geo,shop,node-1,2026-03-01T12:00:02Z ERR geo/db.go:9 > cannot reach mongodb-geo\n"; got != want {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"metric/container/kpi_container_cpu_usage_seconds_total.csv", "trace/traces_1772366460.csv"} {
		if read(t, dir, name) == "" {
			t.Errorf("%s is empty", name)
		}
	}
}

// Who wants more samples gets them.
func TestExportStep(t *testing.T) {
	for step, want := range map[time.Duration]string{0: "15", 5 * time.Second: "5"} {
		m := cluster()
		var asked string
		m.HandleFunc("POST /api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
			asked = r.FormValue("step")
			reply(`{"status":"success","data":{"resultType":"matrix","result":[]}}`)(w, r)
		})
		w := Window{Namespace: "shop", From: at.Add(-time.Minute), To: at, Step: step}
		if _, err := fake(t, m).ExportMetrics(t.Context(), w, t.TempDir(), CSV); err != nil || asked != want {
			t.Errorf("step %v: asked for %s, %v", step, asked, err)
		}
	}
}

// Services are asked for by those who want them, and their numbers are as they are.
func TestExportServices(t *testing.T) {
	m := cluster()
	m.HandleFunc("POST /api/v1/query_range", func(w http.ResponseWriter, r *http.Request) {
		series := ""
		if q := r.FormValue("query"); q == `sum by (service) (rate(http_requests_total{namespace="shop"}[15s]))` {
			series = `{"metric":{"service":"geo"},"values":[[1772366400,"1.23456"],[1772366405,"NaN"]]}`
		}
		reply(`{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`)(w, r)
	})
	w := Window{Namespace: "shop", From: at.Add(-time.Minute), To: at, Services: true}
	dir, err := fake(t, m).ExportMetrics(t.Context(), w, t.TempDir(), CSV)
	if err != nil {
		t.Fatal(err)
	}
	want := "timestamp,cmdb_id,kpi_name,value\n1772366400,geo,http_requests,1.23456\n1772366405,geo,http_requests,NaN\n"
	if diff := cmp.Diff(want, read(t, dir, "service", "kpi_http_requests.csv")); diff != "" {
		t.Error(diff)
	}
	if list, err := os.ReadDir(filepath.Join(dir, "service")); len(list) != 1 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestExportErrors(t *testing.T) {
	o := fake(t, telemetry())
	w := Window{Namespace: "shop", From: at.Add(-time.Minute), To: at.Add(time.Minute)}
	// Half a table is no table.
	dir := t.TempDir()
	if _, err := fake(t, http.NotFoundHandler()).ExportTraces(t.Context(), w, dir, CSV); err == nil {
		t.Error("no error without Jaeger")
	}
	if files, _ := os.ReadDir(filepath.Join(dir, "trace_output")); len(files) > 0 {
		t.Errorf("files are left: %v", files)
	}
	if _, err := o.Export(t.Context(), w, t.TempDir(), Format{}); err == nil || !strings.Contains(err.Error(), "use observe.CSV") {
		t.Errorf("no format: %v", err)
	}
}
