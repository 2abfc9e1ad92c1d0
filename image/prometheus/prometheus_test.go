package prometheus

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/image/incluster/inclustertest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should happen within a few scrapes.
const patience = 2 * time.Minute

// lab is a world with a Prometheus in it.
type lab struct {
	t       *testing.T
	world   *kittest.World
	api     *inclustertest.Server
	machine *kittest.Machine
	client  *http.Client
}

func newLab(t *testing.T) *lab {
	w := kittest.New(t)
	l := &lab{t: t, world: w, api: inclustertest.Start(t, w, "10.244.0.1"), machine: w.Machine("prometheus", "10.244.0.9")}
	l.api.Pod(l.machine)
	l.machine.Install(Image(nil))
	l.client = l.machine.Client()
	return l
}

func (l *lab) start(config string, flags ...string) *kittest.Run {
	l.t.Helper()
	l.machine.Write("/etc/prometheus/prometheus.yml", config)
	run := l.machine.Start(Main, append([]string{"prometheus", "--config.file=/etc/prometheus/prometheus.yml"}, flags...)...)
	run.Await("Server is ready to receive web requests.")
	return run
}

// serve answers HTTP on a machine of its own.
func (l *lab) serve(name, addr, port string, config *tls.Config, h http.HandlerFunc) {
	l.t.Helper()
	ln, err := l.world.Machine(name, addr).Env().Net.Listen("tcp", ":"+port)
	if err != nil {
		l.t.Fatal(err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := kit.IgnoreClosed(srv.Serve(ln)); err != nil {
			l.t.Error(err)
		}
	}()
	l.t.Cleanup(func() {
		srv.Close()
		<-done
	})
}

func (l *lab) get(path string) (int, string) {
	l.t.Helper()
	res, err := l.client.Get("http://localhost:9090" + path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// query returns the samples of an instant query as "labels value", for the label names given.
func (l *lab) query(expr string, names ...string) string {
	l.t.Helper()
	_, body := l.get("/api/v1/query?query=" + url.QueryEscape(expr))
	var answer struct {
		Status string
		Data   struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
		return body
	}
	var lines []string
	for _, r := range answer.Data.Result {
		var line []string
		for _, n := range names {
			line = append(line, r.Metric[n])
		}
		lines = append(lines, strings.Join(append(line, r.Value[1].(string)), " "))
	}
	return strings.Join(lines, "\n")
}

func (l *lab) await(what string, got func() string, want string) {
	l.t.Helper()
	last := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if last = got(); last == want {
			return
		}
	}
	l.t.Fatalf("%s: got %q, want %q", what, last, want)
}

func pod(name, ip string, annotations map[string]string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Annotations: annotations, Labels: map[string]string{"app": name}},
		Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: "main", Image: "shop/" + name, Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}}}},
		Status:     v1.PodStatus{PodIP: ip, HostIP: "10.244.0.20", Phase: v1.PodRunning},
	}
}

// Pods are found through the API server, chosen by annotation, labelled, scraped and queried.
func TestPods(t *testing.T) {
	l := newLab(t)
	l.serve("cart", "10.244.1.1", "9464", nil, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE http_requests_total counter\nhttp_requests_total{code=\"200\"} 42\n")
	})
	cart := pod("cart", "10.244.1.1", map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9464"})
	l.api.Set("v1", "pods", cart)
	l.api.Set("v1", "pods", pod("quiet", "10.244.1.2", nil))
	run := l.start(`
global: {scrape_interval: 250ms, scrape_timeout: 250ms}
scrape_configs:
- job_name: kubernetes-pods
  kubernetes_sd_configs: [{role: pod}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_annotation_prometheus_io_scrape], action: keep, regex: "true"}
  - source_labels: [__address__, __meta_kubernetes_pod_annotation_prometheus_io_port]
    action: replace
    regex: '([^:]+)(?::\d+)?;(\d+)'
    replacement: $1:$2
    target_label: __address__
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
`)
	for path, want := range map[string]int{"/": 200, "/query": 200, "/graph": 200, "/targets": 200, "/alerts": 200, "/config": 404} {
		if code, body := l.get(path); code != want || want == 200 && !strings.Contains(body, `<form id="ask">`) {
			t.Errorf("the page %s: %d %s", path, code, body)
		}
	}
	l.await("the pod's metric", func() string { return l.query("http_requests_total", "namespace", "pod", "instance", "code") }, "shop cart 10.244.1.1:9464 200 42")
	l.await("the target", func() string { // A scrape may have taken too long on a busy machine.
		_, body := l.get("/api/v1/targets?state=active")
		return fmt.Sprint(strings.Count(body, `"scrapeUrl"`), strings.Count(body, `"health":"up"`))
	}, "1 1")
	if code, body := l.get("/api/v1/label/pod/values"); code != 200 || body != `{"status":"success","data":["cart"]}` {
		t.Errorf("label values: %d %s", code, body)
	}
	if code, body := l.get("/api/v1/metadata?metric=http_requests_total"); code != 200 || !strings.Contains(body, `"type":"counter"`) {
		t.Errorf("metadata: %d %s", code, body)
	}
	if code, body := l.get("/api/v1/status/config"); code != 200 || !strings.Contains(body, "kubernetes_sd_configs") {
		t.Errorf("config: %d %s", code, body)
	}
	if code, body := l.get("/metrics"); code != 200 || !strings.Contains(body, `prometheus_sd_kubernetes_events_total{event="add",role="pod"} 2`) {
		t.Errorf("metrics: %d %s", code, body)
	}
	for path, want := range map[string]string{
		"/api/v1/labels?match[]=http_requests_total":                       `{"status":"success","data":["__name__","code","instance","job","namespace","pod"]}`,
		"/api/v1/series?match[]=http_requests_total":                       `{"status":"success","data":[{"__name__":"http_requests_total","code":"200","instance":"10.244.1.1:9464","job":"kubernetes-pods","namespace":"shop","pod":"cart"}]}`,
		"/api/v1/label/__name__/values?limit=1":                            `{"status":"success","data":["http_requests_total"],"warnings":["results truncated due to limit"]}`,
		"/api/v1/query?query=vector(1)&time=1700000000.5":                  `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1700000000.5,"1"]}]}}`,
		"/api/v1/query?query=nothing":                                      `{"status":"success","data":{"resultType":"vector","result":[]}}`,
		"/api/v1/query?query=1%2B1&time=2023-11-14T22:13:20Z":              `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"2"]}}`,
		"/api/v1/query_range?query=vector(time())&start=10&end=20&step=5s": `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[10,"10"],[15,"15"],[20,"20"]]}]}}`,
		"/api/v1/format_query?query=sum(a)by(b)":                           `{"status":"success","data":"sum by (b) (a)"}`,
		"/api/v1/scrape_pools":                                             `{"status":"success","data":{"scrapePools":["kubernetes-pods"]}}`,
		"/api/v1/alertmanagers":                                            `{"status":"success","data":{"activeAlertmanagers":[],"droppedAlertmanagers":[]}}`,
	} {
		if code, body := l.get(path); code != 200 || body != want {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
	for path, want := range map[string]string{
		"/api/v1/query?query=sum(":                               `"errorType":"bad_data","error":"invalid parameter \"query\"`,
		"/api/v1/query?query=1&time=noon":                        `invalid parameter \"time\": cannot parse \"noon\" to a valid timestamp`,
		"/api/v1/query?query=1&limit=-1":                         `limit must be non-negative`,
		"/api/v1/query_range?query=1&start=0&end=1000000&step=1": `exceeded maximum resolution of 11,000 points`,
		"/api/v1/query_range?query=1&start=2&end=1&step=1":       `end timestamp must not be before start time`,
		"/api/v1/query_range?query=1&start=1&end=2&step=0":       `zero or negative query resolution`,

		"/api/v1/series":                    `no match[] parameter provided`,
		"/api/v1/series?match[]={a=%22%22}": `at least one non-empty matcher`,
		"/api/v1/rules?type=other":          `not supported value`,
	} {
		if code, body := l.get(path); code != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
	if code, body := l.get("/api/v1/query?query=" + url.QueryEscape(`label_replace(up, "a", "", "b", "(")`)); code != 422 || !strings.Contains(body, `"errorType":"execution"`) {
		t.Errorf("a query that fails: %d %s", code, body)
	}
	for _, path := range []string{"/api/v1/status/flags", "/api/v1/status/runtimeinfo", "/api/v1/status/buildinfo", "/api/v1/status/tsdb"} {
		if code, body := l.get(path); code != 200 || !strings.HasPrefix(body, `{"status":"success","data":{"`) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if cpu := l.machine.Resources.Info().Used; cpu == 0 {
		t.Error("scraping used no CPU time")
	}
	l.api.Delete("v1", "pods", cart)
	l.await("the deleted pod's metric", func() string { return l.query("http_requests_total") }, "")

	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, run.Stderr)
	}
	if _, err := os.Stat(l.machine.Env().Scratch); !os.IsNotExist(err) {
		t.Errorf("the scratch directory is left behind: %v", err)
	}
}

// Nodes are scraped over TLS with the pod's own authority and token, which are files of the container.
func TestNodesWithToken(t *testing.T) {
	l := newLab(t)
	cert := inclustertest.Certificate(t, "10.244.0.20")
	l.serve("node-1", "10.244.0.20", "10250", &tls.Config{Certificates: []tls.Certificate{cert}}, func(w http.ResponseWriter, r *http.Request) {
		if !inclustertest.Authorized(r) {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "# TYPE seen gauge\nseen{path=%q} 1\n", r.URL.Path)
	})
	l.machine.Write("/certs/node.crt", inclustertest.PEM(cert))
	l.api.Set("v1", "nodes", &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: v1.NodeStatus{
		Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.244.0.20"}},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: 10250}},
	}})
	l.start(`
global: {scrape_interval: 250ms, scrape_timeout: 250ms}
scrape_configs:
- job_name: kubernetes-cadvisor
  scheme: https
  metrics_path: /metrics/cadvisor
  tls_config: {ca_file: /certs/node.crt}
  authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
  kubernetes_sd_configs: [{role: node}]
`)
	l.await("the node's metric", func() string { return l.query("seen", "instance", "path") }, "node-1 /metrics/cadvisor 1")
}

// An alert goes from pending to firing and back; rules are read from files by pattern and reloaded.
func TestAlerts(t *testing.T) {
	l := newLab(t)
	l.machine.Write("/etc/prometheus/rules/a.yml", "groups: [{name: a, rules: [{record: answer, expr: vector(42)}]}]")
	l.machine.Write("/etc/prometheus/rules/b.yml", `
groups:
- name: b
  rules:
  - {alert: Down, expr: up == 0, labels: {severity: page}, annotations: {summary: '{{ $labels.job }} is down'}}
  - {alert: DownForLong, expr: up == 0, for: 1h}
`)
	run := l.start(`
global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 100ms}
rule_files: [rules/*.yml]
scrape_configs:
- {job_name: nobody, static_configs: [{targets: ["10.244.9.9:80"]}]}
`, "--web.enable-lifecycle")
	l.await("the recorded series", func() string { return l.query("answer") }, "42")
	l.await("the alert", func() string { return l.query(`ALERTS{alertname="Down"}`, "alertstate", "severity") }, "firing page 1")
	l.await("the alert that waits", func() string { return l.query(`ALERTS{alertname="DownForLong"}`, "alertstate") }, "pending 1")
	if _, body := l.get("/api/v1/alerts"); !strings.Contains(body, `"summary":"nobody is down"`) || !strings.Contains(body, `"state":"pending"`) {
		t.Errorf("alerts: %s", body)
	}
	if _, body := l.get("/api/v1/rules?type=alert"); strings.Count(body, `"type":"alerting"`) != 2 {
		t.Errorf("rules: %s", body)
	}
	if _, body := l.get("/api/v1/targets"); !strings.Contains(body, "i/o timeout") && !strings.Contains(body, "deadline exceeded") && !strings.Contains(body, "no route to host") {
		t.Errorf("the target's error: %s", body)
	}

	l.machine.Write("/etc/prometheus/rules/b.yml", "groups: [{name: b, rules: [{alert: Broken, expr: 'up =='}]}]")
	reload := func() (int, string) {
		res, err := l.client.Post("http://localhost:9090/-/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(b)
	}
	if code, body := reload(); code != 500 || !strings.Contains(body, "error loading rules") {
		t.Errorf("reload of a broken rule: %d %s", code, body)
	}
	run.Await("/etc/prometheus/rules/b.yml")
	l.machine.Write("/etc/prometheus/rules/b.yml", "groups: [{name: b, rules: []}]")
	if code, body := reload(); code != 200 {
		t.Errorf("reload: %d %s", code, body)
	}
	l.await("alerts after their rules are gone", func() string { return l.query("count(ALERTS) or vector(0)") }, "0")
}

func TestDeepQueries(t *testing.T) {
	p := guardedParser{parser.NewParser(parser.Options{})}
	for _, q := range []string{
		strings.Repeat("(", 1_000_000), strings.Repeat("-", 1_000_000) + "1", "1" + strings.Repeat("+1", 1_000_000),
		strings.Repeat("abs(", 1_000_000), "a" + strings.Repeat("[1m:]", 1_000_000),
	} {
		if _, err := p.ParseExpr(q); err == nil {
			t.Errorf("%.20q... is parsed", q)
		}
	}
	if _, err := p.ParseExpr(strings.Repeat("abs(", 100) + "a" + strings.Repeat(")", 100)); err != nil {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, config string
		flags        []string
		want         string
	}{
		{name: "unknown field", config: "globals: {}", want: "field globals not found"},
		{name: "unknown flag", flags: []string{"--web.frobnicate"}, want: "web.frobnicate"},
		{name: "argument", flags: []string{"frobnicate"}, want: "unexpected frobnicate"},
		{name: "size", flags: []string{"--storage.tsdb.retention.size=many"}, want: "not a size"},
		{name: "remote write", config: "remote_write: [{url: 'http://x/'}]", want: "remote_write: this Prometheus has no remote storage"},
		{name: "no file", flags: []string{"--config.file=/none.yml"}, want: "/none.yml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := kittest.New(t).Machine("prometheus", "10.244.0.9")
			m.Write("/prometheus.yml", c.config)
			run := m.Start(Main, append([]string{"prometheus"}, c.flags...)...)
			if code := run.Wait(); code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if text := run.Stderr.String(); !strings.Contains(text, c.want) {
				t.Errorf("stderr %q does not tell %q", text, c.want)
			}
		})
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"512MB": 512 << 20, "2GB": 2 << 30, "100B": 100} {
		if n, err := parseBytes(s); err != nil || n != want {
			t.Errorf("%s: %d, %v", s, n, err)
		}
	}
}
