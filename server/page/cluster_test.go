package page

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	imagepage "github.com/aiopslab/aiopslab/kit/page"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/workload"
)

// hostile is what a hostile program in the cluster says.
const hostile = `</script><script>window.owned = 1</script>`

// town is a cluster that a test makes: an application that is well until it is broken.
type town struct {
	t      testing.TB
	app    *app.App
	client *fake.Clientset

	mu     sync.Mutex
	broken bool
	silent bool // Prometheus does not answer
	lines  []observe.LogLine
	asked  []observe.LogQuery
}

// prom is the town's Prometheus. What is not faked is not to be asked for.
type prom struct {
	promv1.API
	town *town
}

func newTown(t testing.TB) *town {
	t.Helper()
	var a *app.App
	for _, one := range problemtest.Library(t).Apps {
		if one.Name == "hotel-reservation" {
			a = one
		}
	}
	c := &town{t: t, app: a}
	var objects []runtime.Object
	for _, s := range a.Services {
		meta := metav1.ObjectMeta{Name: s.Name, Namespace: a.Namespace}
		objects = append(objects, &appsv1.Deployment{
			ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 1, UpdatedReplicas: 1},
		})
		pod := metav1.ObjectMeta{Name: podOf(s.Name), Namespace: a.Namespace, Labels: map[string]string{a.Label: s.Name}}
		objects = append(objects, &v1.Pod{ObjectMeta: pod, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{RestartCount: 2}}}})
	}
	objects = append(objects, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e1", Namespace: a.Namespace}, Type: v1.EventTypeWarning, Reason: "Unhealthy", Count: 3,
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: podOf("geo")}, LastTimestamp: metav1.Now(),
		Message: "Readiness probe failed " + hostile,
	})
	c.client = fake.NewClientset(objects...)
	for i := range 40 {
		c.log("geo", fmt.Sprintf("I geo: request %d was answered", i))
	}
	return c
}

func podOf(service string) string { return service + "-6d9c7f5b4d-x2x7k" }

func (c *town) log(service, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, observe.LogLine{
		Time: time.Now(), Namespace: c.app.Namespace, Pod: podOf(service), Container: service, Text: text, Level: observe.LevelOf(text),
	})
}

// fail breaks the application, or mends it: geo has no pods.
func (c *town) fail(broken bool) {
	c.t.Helper()
	c.mu.Lock()
	c.broken = broken
	c.mu.Unlock()
	d, err := c.client.AppsV1().Deployments(c.app.Namespace).Get(c.t.Context(), "geo", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	n := int32(1)
	if broken {
		n = 0
	}
	d.Spec.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas = &n, n, n
	if _, err := c.client.AppsV1().Deployments(c.app.Namespace).Update(c.t.Context(), d, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *town) isBroken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// cluster is the town as a site has it. Its programs' own pages are the real ones, over an API with few answers.
func (c *town) cluster() *Cluster {
	mux := http.NewServeMux()
	for _, name := range []string{"prometheus", "jaeger"} {
		html, err := os.ReadFile("../../image/" + name + "/page.html")
		if err != nil {
			c.t.Fatal(err)
		}
		mux.Handle("GET "+name+"/{$}", imagepage.New(string(html)))
	}
	mux.HandleFunc("GET prometheus/api/v1/query", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "evil=1")
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"answered","cookie":%q},"value":[1,"42"]}]}}`, r.Header.Get("Cookie"))
	})
	mux.HandleFunc("GET prometheus/api/v1/query_range", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`)
	})
	mux.HandleFunc("GET prometheus/evil", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>evil</title><p id="said">nothing</p><script>
			const say = (t) => document.getElementById('said').textContent += ' ' + t;
			(async () => {
				try { say('cookie ' + document.cookie); } catch { say('no cookies'); }
				try { say('stored ' + localStorage.length); } catch { say('no storage'); }
				try { const a = await fetch('/view/cluster', {credentials: 'include'}); say('read ' + a.status + (await a.text()).length); } catch { say('no page'); }
				try { parent.document.title; say(parent === window ? 'alone' : 'parent'); } catch { say('no parent'); }
				say('done');
			})();
		</script>`)
	})
	mux.HandleFunc("GET prometheus/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	})
	mux.HandleFunc("GET prometheus/graph", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/query?x=1", http.StatusFound) })
	mux.HandleFunc("GET jaeger/api/services", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":["frontend"]}`) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success","data":[]}`) })
	srv := httptest.NewServer(mux)
	c.t.Cleanup(srv.Close)
	return &Cluster{
		App: c.app, Client: c.client, Telemetry: c, Users: c.users,
		Own: []Own{{"prometheus", "Prometheus", "prometheus:80"}, {"jaeger", "Jaeger", "jaeger:16686"}},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "prometheus:80" && address != "jaeger:16686" {
				return nil, fmt.Errorf("there is no %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
		},
	}
}

func (c *town) users(context.Context) (*workload.Snapshot, error) {
	sli := workload.SLI{Requests: 50, Rate: 10.2, Success: 1, P95: 23 * time.Millisecond}
	if c.isBroken() {
		sli.Success = 0.61
	}
	return &workload.Snapshot{Windows: []workload.Window{{Name: "5s", Total: sli}}}, nil
}

func (c *town) Alerts(context.Context, string) ([]observe.Alert, error) {
	if !c.isBroken() {
		return nil, nil
	}
	return []observe.Alert{
		{Name: "HighRequestErrorRate", State: "firing", Severity: "critical", Labels: map[string]string{"service": "frontend"}, Summary: "39% of the HTTP requests to frontend fail.", Since: time.Now().Add(-30 * time.Second)},
		{Name: "ServiceEndpointDown", State: "pending", Severity: "critical", Labels: map[string]string{"service": "geo"}, Summary: "Service geo has no ready endpoint.", Since: time.Now().Add(-10 * time.Second)},
	}, nil
}

func (c *town) Logs(_ context.Context, q observe.LogQuery) (list []observe.LogLine, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, q)
	for _, l := range c.lines {
		if !l.Time.Before(q.From) && (q.Service == "" || q.Service == l.Container || q.Service == l.Pod) && strings.Contains(l.Text, q.Text) {
			list = append(list, l)
		}
	}
	return list[max(0, len(list)-q.Limit):], nil
}

func (c *town) Prometheus() promv1.API       { return prom{town: c} }
func (c *town) Jaeger(string) observe.Traces { return tracesOf{c} }

func (c prom) Query(_ context.Context, query string, _ time.Time, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	c.town.mu.Lock()
	defer c.town.mu.Unlock()
	if c.town.silent {
		return nil, nil, errors.New("connection refused")
	}
	value := func(label, name string, v float64) *model.Sample {
		return &model.Sample{Metric: model.Metric{model.LabelName(label): model.LabelValue(name)}, Value: model.SampleValue(v)}
	}
	failing := 0.0
	if c.town.broken {
		failing = 4
	}
	switch {
	case strings.Contains(query, "code=~"):
		return model.Vector{value("service", "frontend", failing/2)}, nil, nil // once for each protocol
	case strings.Contains(query, "bucket"):
		return model.Vector{value("service", "frontend", 0.021), value("service", "search", 0.017), value("service", "geo", math.NaN())}, nil, nil
	case strings.Contains(query, "memory"):
		return model.Vector{value("pod", podOf("geo"), 21<<20)}, nil, nil
	case strings.Contains(query, "cpu"):
		return model.Vector{value("pod", podOf("geo"), 0.012)}, nil, nil
	case strings.Contains(query, "http_requests_total"):
		return model.Vector{value("service", "frontend", 10.2)}, nil, nil
	}
	return model.Vector{
		value("service", "geo", 7.31), value("service", "search", 7.3), value("service", "rate", 7.3), value("service", "profile", 9.9),
		value("service", "recommendation", 4.1), value("service", "reservation", 6.6), value("service", "user", 0.4),
	}, nil, nil
}

func (c prom) QueryRange(_ context.Context, query string, r promv1.Range, _ ...promv1.Option) (model.Value, promv1.Warnings, error) {
	if strings.HasPrefix(query, "wrong(") {
		return nil, nil, errors.New(`bad_data: unknown function with name "wrong"`)
	}
	var m model.Matrix
	for i, name := range []string{"geo", "frontend", "search"} {
		s := &model.SampleStream{Metric: model.Metric{"service": model.LabelValue(name)}}
		for at := r.Start; !at.After(r.End); at = at.Add(r.Step) {
			v := float64(3+4*i) + math.Sin(float64(at.Unix())/60+float64(i))
			s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnix(at.Unix()), Value: model.SampleValue(v)})
		}
		m = append(m, s)
	}
	return m, nil, nil
}

func (c prom) LabelValues(context.Context, string, []string, time.Time, time.Time, ...promv1.Option) (model.LabelValues, promv1.Warnings, error) {
	return model.LabelValues{"http_requests_total", "up"}, nil, nil
}

// tracesOf is a Jaeger with three requests.
type tracesOf struct{ *town }

func (j tracesOf) trace(id string, took time.Duration, failed bool) observe.Trace {
	begun := time.Now().Add(-time.Minute).UnixMicro()
	us := took.Microseconds()
	t := observe.Trace{TraceID: id, Processes: map[string]observe.Process{
		"p1": {ServiceName: "frontend"}, "p2": {ServiceName: "search"}, "p3": {ServiceName: "geo"},
	}}
	add := func(id, parent, process, operation string, from, long int64, tags ...observe.Tag) {
		s := observe.Span{TraceID: t.TraceID, SpanID: id, OperationName: operation, StartTime: begun + from, Duration: long, ProcessID: process, Tags: tags}
		if parent != "" {
			s.References = []observe.Reference{{RefType: "CHILD_OF", SpanID: parent}}
		}
		t.Spans = append(t.Spans, s)
	}
	add("1", "", "p1", "HTTP GET /hotels", 0, us)
	add("2", "1", "p2", "/search.Search/Nearby", us/10, us*8/10)
	if failed {
		add("3", "2", "p3", "/geo.Geo/Nearby", us/5, us/2, observe.Tag{Key: "error", Value: true}, observe.Tag{Key: "otel.status_description", Value: "no reachable servers"})
	} else {
		add("3", "2", "p3", "/geo.Geo/Nearby", us/5, us/2)
	}
	return t
}

func (j tracesOf) Services(context.Context) ([]string, error) {
	return []string{"search", "frontend", "geo"}, nil
}
func (j tracesOf) Operations(context.Context, string) ([]string, error) { return nil, nil }
func (j tracesOf) Search(_ context.Context, q observe.TraceQuery) ([]observe.Trace, error) {
	list := []observe.Trace{j.trace("aaa1", 20*time.Millisecond, false), j.trace("bbb2", 1800*time.Millisecond, true), j.trace("ccc3", 45*time.Millisecond, false)}
	if q.Tags["error"] != "" {
		list = list[1:2]
	}
	return list, nil
}

func (j tracesOf) Trace(_ context.Context, id string) (*observe.Trace, error) {
	if id != "bbb2" {
		return nil, fmt.Errorf("trace %s: not found", id)
	}
	t := j.trace(id, 1800*time.Millisecond, true)
	return &t, nil
}

func (j tracesOf) Dependencies(context.Context, time.Time, time.Time) ([]observe.Link, error) {
	return []observe.Link{
		{Parent: "frontend", Child: "search", CallCount: 600},
		{Parent: "search", Child: "geo", CallCount: 40},
		{Parent: "search", Child: "rate", CallCount: 440},
		{Parent: "frontend", Child: "profile", CallCount: 590},
		{Parent: "frontend", Child: "recommendation", CallCount: 240},
		{Parent: "frontend", Child: "user", CallCount: 24},
	}, nil
}

// An application that is well is shown as that, with what goes through it; one that is not, with what is red and why.
func TestClusterNow(t *testing.T) {
	c := newTown(t)
	v := visit(t, Options{Dir: t.TempDir(), Cluster: c.cluster()})
	if !strings.HasPrefix(v.site.Link(), "/view/cluster?key=") {
		t.Errorf("the link is %s", v.site.Link())
	}
	page := v.get(clusterPath)
	has(t, page, "Hotel Reservation", "services are well", "None fires", "10/s, 21 ms", "7.3/s", "frontend calls search 10 times a second",
		"has not called", `data-poll="2500"`, ">Cluster</a>", "100\u202f% of users&#39; requests succeed", "Unhealthy", "×3", "&lt;script&gt;",
		`<td class="num wide">12.0</td>`, `<td class="num wide">21</td>`)
	if strings.Contains(page, "chip bad") || strings.Contains(page, "<script>window") {
		t.Errorf("something is red, or is more than text:\n%s", page)
	}
	c.fail(true)
	v.site.state.last = nil
	page = v.get(clusterPath)
	has(t, page, "61\u202f% of users&#39; requests succeed", "it is scaled to zero", "39\u202f% of its requests fail; HighRequestErrorRate fires", "firing", "pending", `class="node red"`, "! geo", "0/0")
	if strings.Contains(page, "are well") {
		t.Error("it says that all is well")
	}
	c.mu.Lock()
	c.silent = true
	c.mu.Unlock()
	v.site.state.last = nil
	has(t, v.get(clusterPath), "The requests cannot be read: ask Prometheus: connection refused", "it is scaled to zero")
}

// What is red is decided by what there is, what users of a service get, and what fires.
func TestAils(t *testing.T) {
	for _, c := range []struct {
		name string
		row  serviceRow
		want string
	}{
		{"well", serviceRow{There: true, Known: true, Ready: 2, Replicas: 2}, ""},
		{"gone", serviceRow{Known: true}, "there is no workload of this name"},
		{"none wanted", serviceRow{There: true, Known: true}, "it is scaled to zero"},
		{"none wanted of somebody else's", serviceRow{There: true}, ""},
		{"on demand", serviceRow{There: true, Known: true, Elastic: true}, ""},
		{"too few", serviceRow{There: true, Known: true, Ready: 1, Replicas: 3, Waiting: "ImagePullBackOff"}, "1 of 3 pods are ready (ImagePullBackOff)"},
		{"a few errors", serviceRow{There: true, Known: true, Ready: 1, Replicas: 1, Rate: 100, Errors: 4}, ""},
		{"errors", serviceRow{There: true, Known: true, Ready: 1, Replicas: 1, Rate: 100, Errors: 20}, "20\u202f% of its requests fail"},
		{"slow", serviceRow{There: true, Known: true, Ready: 1, Replicas: 1, P90: 2.5, latency: true}, "one request in ten takes 2.5 s or more"},
	} {
		if got := strings.Join(c.row.ails(true), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := (&serviceRow{Known: true}).ails(false); got != nil {
		t.Errorf("where workloads cannot be read: %q", got)
	}
}

func TestClusterMetrics(t *testing.T) {
	v := visit(t, Options{Dir: t.TempDir(), Cluster: newTown(t).cluster()})
	has(t, v.get(clusterPath+"/metrics"), "Requests a second", `namespace=&#34;`, `<option value="http_requests_total">`, `class="chart"`, "service=&#34;search&#34;")
	has(t, v.get(clusterPath+"/metrics?query=up&range=6h"), "The answer", `value="up"`, "own/prometheus?at=query", "<option selected>6h</option>")
	has(t, v.get(clusterPath+"/metrics?query=wrong(up)"), "unknown function")
	has(t, v.get(clusterPath+"/metrics?query="+strings.Repeat("x", maxQuery+1)), "characters at most")
	// A line over six hours is one line, though its points are minutes apart.
	box := newTown(t).cluster().chart(t.Context(), "up", spanOf("6h"), time.Now())
	if n := strings.Count(string(box.Chart), "M"); n != 3 {
		t.Errorf("%d lines for 3 series", n)
	}
}

// A reader that has lines gets those that have come since, and a second of what it has.
func TestClusterLogs(t *testing.T) {
	c := newTown(t)
	v := visit(t, Options{Dir: t.TempDir(), Cluster: c.cluster()})
	c.log("geo", "ERROR geo: "+hostile)
	page := v.get(clusterPath + "/logs?service=geo&level=loud")
	has(t, page, "request 39 was answered", "&lt;script&gt;", `class="error"`, "<option selected>geo</option>", podOf("geo"))
	since := c.lines[len(c.lines)-1].Time
	c.log("geo", "I geo: later")
	has(t, v.get(fmt.Sprintf("%s/logs?service=geo&since=%d", clusterPath, since.UnixNano())), "I geo: later")
	q := c.asked[len(c.asked)-1]
	if want := since.Add(-logOverlap); !q.From.Equal(want) || q.Limit != followedLines || q.Level != "" || q.Namespace != c.app.Namespace {
		t.Errorf("asked %+v, from %s", q, want)
	}
}

func TestClusterTraces(t *testing.T) {
	v := visit(t, Options{Dir: t.TempDir(), Cluster: newTown(t).cluster()})
	page := v.get(clusterPath + "/traces")
	slow, quick := strings.Index(page, "bbb2"), strings.Index(page, "aaa1")
	if slow < 0 || quick < slow {
		t.Error("the slowest is not the first")
	}
	has(t, page, "frontend HTTP GET /hotels", "1.8 s", "<option selected>frontend</option>", "✗ failed")
	has(t, v.get(clusterPath+"/traces?trace=bbb2"), `class="waterfall"`, "no reachable servers", "1.8 s through 3 services", "own/jaeger?at=trace%26bbb2")
	has(t, v.get(clusterPath+"/traces?trace=nosuch"), "trace nosuch: not found")
	if page := v.get(clusterPath + "/traces?only=failed"); strings.Contains(page, "aaa1") {
		t.Error("a trace without errors is among those that failed")
	}
}

// Pages of programs in the cluster are shown by who has the pass, in a sandbox, and get nothing of who looks.
func TestThrough(t *testing.T) {
	v := visit(t, Options{Dir: t.TempDir(), Cluster: newTown(t).cluster()})
	base := v.site.through.base("prometheus")
	_, page, head := v.do("GET", clusterPath+"/own/prometheus?at=query%26expr=up", "")
	has(t, page, `src="`+base+`#query&amp;expr=up"`, `sandbox="allow-scripts allow-forms"`)
	if p := head.Get("Content-Security-Policy"); !strings.Contains(p, "frame-src 'self'") || strings.Contains(p, "unsafe") {
		t.Errorf("the policy of the frame's page is %s", p)
	}
	v.in = false
	status, page, head := v.do("GET", base+"api/v1/query?query=up", "", "Cookie", "aiopslab-x=secret", "Authorization", "Bearer secret")
	if status != http.StatusOK || !strings.Contains(page, `"cookie":""`) {
		t.Errorf("%d: %s", status, page)
	}
	for name, want := range map[string]string{
		"Set-Cookie": "", "Access-Control-Allow-Credentials": "", "Access-Control-Allow-Origin": "*", "Referrer-Policy": "no-referrer",
	} {
		if got := head.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	_, _, head = v.do("GET", base, "")
	policies := head.Values("Content-Security-Policy")
	if len(policies) != 2 || !strings.HasPrefix(policies[0], "sandbox allow-scripts allow-forms;") || strings.Contains(policies[0], "allow-same-origin") ||
		!strings.Contains(policies[1], "sha256-") || strings.Contains(policies[1], "frame-ancestors") {
		t.Errorf("the policies are %q", policies)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", strings.Replace(base, v.site.through.pass, "guessed", 1), http.StatusNotFound},
		{"GET", strings.Replace(base, v.site.through.pass, v.site.door.key, 1), http.StatusNotFound},
		{"GET", v.site.through.base("kubelet"), http.StatusNotFound},
		{"GET", base + "away", http.StatusBadGateway},
		{"POST", base + "-/quit", http.StatusSeeOther}, // to the first page
		{"GET", clusterPath, http.StatusUnauthorized},
		{"GET", clusterPath + "/own/prometheus", http.StatusUnauthorized},
	} {
		if status, text, _ := v.do(c.method, c.path, ""); status != c.status {
			t.Errorf("%s %s: %d, want %d: %.80s", c.method, c.path, status, c.status, text)
		}
	}
	if _, _, head := v.do("GET", base+"graph", ""); head.Get("Location") != base+"query?x=1" {
		t.Errorf("it is sent to %s", head.Get("Location"))
	}
}

// Without a cluster there is no page about one, and who asks is told how to have one.
func TestNoCluster(t *testing.T) {
	v := visit(t, Options{Dir: t.TempDir()})
	if status, page, _ := v.do("GET", clusterPath, ""); status != http.StatusNotFound || !strings.Contains(page, "aiopslab up --app") {
		t.Errorf("%d: %s", status, page)
	}
	if page := v.get(Prefix); strings.Contains(page, ">Cluster</a>") {
		t.Error("the menu leads to a cluster")
	}
}
