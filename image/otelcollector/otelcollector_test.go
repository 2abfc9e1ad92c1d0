package otelcollector

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const relay = `
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "${env:MY_POD_IP:-0.0.0.0}:4317"}
      http: {endpoint: 0.0.0.0:4318}
processors:
  memory_limiter: {check_interval: 5s, limit_mib: 500}
  batch: {timeout: 10ms}
  resource:
    attributes:
      - {key: deployment.environment, value: lab, action: upsert}
      - {key: secret, action: delete}
      - {key: service.instance.id, from_attribute: k8s.pod.uid, action: insert}
exporters:
  otlp/jaeger:
    endpoint: jaeger:4317
    tls: {insecure: true}
    sending_queue: {queue_size: 3}
    retry_on_failure: {initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: 20s}
  debug:
  prometheus:
    endpoint: 0.0.0.0:9464
connectors:
  spanmetrics:
    metrics_flush_interval: 1s
    aggregation_cardinality_limit: 20
extensions:
  health_check: {endpoint: 0.0.0.0:13133}
service:
  extensions: [health_check]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [memory_limiter, resource, batch]
      exporters: [otlp/jaeger, debug, spanmetrics]
    metrics:
      receivers: [otlp, spanmetrics]
      processors: [memory_limiter, batch]
      exporters: [prometheus]
`

// jaeger takes spans, unless it is told to fail.
type jaeger struct {
	traceservice.UnimplementedTraceServiceServer
	spans chan *tracepb.ResourceSpans
	fails atomic.Pointer[status.Status]
}

func (j *jaeger) Export(ctx context.Context, q *traceservice.ExportTraceServiceRequest) (
	*traceservice.ExportTraceServiceResponse, error,
) {
	if s := j.fails.Load(); s != nil {
		return nil, s.Err()
	}
	for _, r := range q.GetResourceSpans() {
		select {
		case j.spans <- r:
		case <-ctx.Done():
		}
	}
	return &traceservice.ExportTraceServiceResponse{}, nil
}

type lab struct {
	t       testing.TB
	machine *kittest.Machine
	run     *kittest.Run
	jaeger  *jaeger
	conn    *grpc.ClientConn
}

func start(t testing.TB, conf string) *lab {
	t.Helper()
	w := kittest.New(t)
	l := &lab{t: t, machine: w.Machine("otel-collector", "10.244.0.2"), jaeger: &jaeger{spans: make(chan *tracepb.ResourceSpans, 1000)}}
	other := w.Machine("jaeger", "10.244.0.3")
	ln, err := other.Env().Net.Listen("tcp", ":4317")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	traceservice.RegisterTraceServiceServer(srv, l.jaeger)
	go srv.Serve(ln)
	t.Cleanup(srv.Stop)
	l.machine.Install(Image(nil))
	l.machine.Write("/conf/relay.yaml", conf)
	l.run = l.machine.Start(Main, "/otelcol-contrib", "--config=/conf/relay.yaml")
	l.run.Await("Everything is ready")
	l.conn, err = grpc.NewClient("passthrough:///otel-collector:4317", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, a string) (net.Conn, error) {
			return other.Env().Net.DialContext(ctx, "tcp", a)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.conn.Close() })
	return l
}

// span is a request with one span.
func span(service, name string, code tracepb.Status_StatusCode, took time.Duration) *traceservice.ExportTraceServiceRequest {
	return &traceservice.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{
			attribute("service.name", service), attribute("secret", "x"), attribute("k8s.pod.uid", "uid-1"),
		}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
			TraceId: bytes.Repeat([]byte{1}, 16), SpanId: bytes.Repeat([]byte{2}, 8), Name: name,
			Kind: tracepb.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 1e9, EndTimeUnixNano: 1e9 + uint64(took),
			Status: &tracepb.Status{Code: code},
		}}}},
	}}}
}

func (l *lab) send(q *traceservice.ExportTraceServiceRequest) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := traceservice.NewTraceServiceClient(l.conn).Export(ctx, q)
	return err
}

// await reads a page until it has all texts.
func (l *lab) await(url string, want ...string) string {
	l.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		body := kittest.Get(l.t, l.machine, url).Body
		missing := ""
		for _, w := range want {
			if !strings.Contains(body, w) {
				missing = w
			}
		}
		if missing == "" {
			return body
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("no %q in\n%s\nlog:\n%s", missing, body, l.run.Stderr)
		}
	}
}

const (
	own   = "http://otel-collector:8888/metrics"
	pages = "http://otel-collector:9464/metrics"
)

func TestTraces(t *testing.T) {
	l := start(t, relay)
	for range 3 {
		if err := l.send(span("cart", "GET /cart", tracepb.Status_STATUS_CODE_UNSET, 7*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.send(span("payment", "charge", tracepb.Status_STATUS_CODE_ERROR, 3*time.Second)); err != nil {
		t.Fatal(err)
	}
	r := <-l.jaeger.spans
	got := map[string]string{}
	for _, kv := range r.GetResource().GetAttributes() {
		got[kv.GetKey()] = asText(kv.GetValue())
	}
	if got["service.name"] != "cart" || got["deployment.environment"] != "lab" || got["service.instance.id"] != "uid-1" || got["secret"] != "" {
		t.Errorf("%v", got)
	}
	l.await(own, `otelcol_receiver_accepted_spans_total{receiver="otlp",transport="grpc"} 4`,
		`otelcol_exporter_sent_spans_total{exporter="otlp/jaeger"} 4`,
		`otelcol_exporter_send_failed_spans_total{exporter="otlp/jaeger"} 0`,
		`otelcol_exporter_queue_size{exporter="otlp/jaeger"} 0`)
	const cart = `service_name="cart",span_kind="SPAN_KIND_SERVER",span_name="GET /cart",status_code="STATUS_CODE_UNSET"`
	l.await(pages, "# TYPE traces_span_metrics_calls_total counter", "traces_span_metrics_calls_total{"+cart+"} 3\n",
		`status_code="STATUS_CODE_ERROR"} 1`,
		"traces_span_metrics_duration_milliseconds_bucket{"+cart+`,le="6"} 0`,
		"traces_span_metrics_duration_milliseconds_bucket{"+cart+`,le="8"} 3`,
		"traces_span_metrics_duration_milliseconds_bucket{"+cart+`,le="+Inf"} 3`,
		"traces_span_metrics_duration_milliseconds_sum{"+cart+"} 21\n",
		"traces_span_metrics_duration_milliseconds_count{"+cart+"} 3\n")
	if got := kittest.Get(t, l.machine, "http://otel-collector:13133/"); got.Code != 200 || !strings.Contains(got.Body, "Server available") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	l.run.Await(`Traces	{"otelcol.component.id":"debug"`)
	l.run.Signal(syscall.SIGTERM)
	if code := l.run.Wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestMetrics(t *testing.T) {
	l := start(t, relay)
	value := func(v int64) []*metricspb.NumberDataPoint {
		return []*metricspb.NumberDataPoint{{
			Attributes: []*commonpb.KeyValue{attribute("app.currency", "E\"UR")}, Value: &metricspb.NumberDataPoint_AsInt{AsInt: v},
		}}
	}
	q := &metricservice.ExportMetricsServiceRequest{ResourceMetrics: []*metricspb.ResourceMetrics{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "currency"), attribute("service.namespace", "otel-demo")}},
		ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{
			{Name: "app.currency_counter", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{
				IsMonotonic: true, AggregationTemporality: 2, DataPoints: value(5),
			}}},
			{Name: "memory", Unit: "By", Description: "Used\nmemory", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: value(7)}}},
			{Name: "delta", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: 1, DataPoints: value(1)}}},
			{Name: "broken", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
				AggregationTemporality: 2, DataPoints: []*metricspb.HistogramDataPoint{{BucketCounts: []uint64{1}, ExplicitBounds: []float64{1, 2}}},
			}}},
		}}},
	}}}
	if _, err := metricservice.NewMetricsServiceClient(l.conn).Export(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	l.await(pages, `app_currency_counter_total{app_currency="E\"UR",job="otel-demo/currency"} 5`,
		`memory_bytes{app_currency="E\"UR",job="otel-demo/currency"} 7`, `# HELP memory_bytes Used\nmemory`)
	l.await(own, `otelcol_exporter_prometheus_dropped_metric_points_total{exporter="prometheus"} 2`,
		`otelcol_receiver_accepted_metric_points_total{receiver="otlp",transport="grpc"} 4`)
}

func TestHTTP(t *testing.T) {
	l := start(t, relay)
	data, err := proto.Marshal(span("ad", "GetAds", 0, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(data)
	z.Close()
	var bomb bytes.Buffer
	z = gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, maxMessage+1))
	z.Close()
	const kind, url = "Content-Type: application/x-protobuf", "http://otel-collector:4318/v1/traces"
	for name, tt := range map[string]struct {
		url, body string
		headers   []string
		code      int
	}{
		"protobuf":        {url, string(data), []string{kind}, 200},
		"gzip":            {url, zipped.String(), []string{kind, "Content-Encoding: gzip"}, 200},
		"JSON":            {url, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"x"}]}]}]}`, []string{"Content-Type: application/json"}, 200},
		"broken JSON":     {url, `{"resourceSpans":[{]`, []string{"Content-Type: application/json"}, 400},
		"deep JSON":       {url, strings.Repeat("[", 100000), []string{"Content-Type: application/json"}, 400},
		"broken protobuf": {url, "\xff\xff", []string{kind}, 400},
		"a bomb":          {url, bomb.String(), []string{kind, "Content-Encoding: gzip"}, 400},
		"too large":       {url, strings.Repeat("x", maxMessage+1), []string{kind}, 400},
		"no gzip":         {url, "x", []string{kind, "Content-Encoding: gzip"}, 400},
		"another coding":  {url, "x", []string{kind, "Content-Encoding: br"}, 400},
		"another form":    {url, "x", []string{"Content-Type: text/plain"}, 415},
		"logs":            {"http://otel-collector:4318/v1/logs", "", []string{kind}, 404},
	} {
		if got := kittest.Ask(t, l.machine, "POST", tt.url, tt.body, tt.headers...); got.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, tt.code)
		}
	}
	l.await(own, `otelcol_receiver_accepted_spans_total{receiver="otlp",transport="http"} 3`)
}

// TestFailures has an exporter try again, give up, and drop what there is no room for.
func TestFailures(t *testing.T) {
	l := start(t, relay)
	l.jaeger.fails.Store(status.New(codes.Unavailable, "not now"))
	for i := range 8 {
		if err := l.send(span("cart", fmt.Sprint(i), 0, 0)); err != nil {
			t.Fatal(err)
		}
		l.await(own, fmt.Sprintf(`otelcol_receiver_accepted_spans_total{receiver="otlp",transport="grpc"} %d`, i+1))
		if i < 3 {
			l.run.Await("Will retry the request")
		}
		l.awaitFlushed(i + 1)
	}
	l.await(own, `otelcol_exporter_queue_size{exporter="otlp/jaeger"} 3`, `otelcol_exporter_enqueue_failed_spans_total{exporter="otlp/jaeger"} 4`)
	l.jaeger.fails.Store(nil)
	l.await(own, `otelcol_exporter_sent_spans_total{exporter="otlp/jaeger"} 4`)
	l.jaeger.fails.Store(status.New(codes.InvalidArgument, "never"))
	if err := l.send(span("cart", "x", 0, 0)); err != nil {
		t.Fatal(err)
	}
	l.await(own, `otelcol_exporter_send_failed_spans_total{exporter="otlp/jaeger"} 1`)
	l.run.Await("Dropping data.")
}

// awaitFlushed waits until so many spans have left the batch processor: each was printed by itself.
func (l *lab) awaitFlushed(n int) {
	l.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); strings.Count(l.run.Stderr.String(), "\tTraces\t") < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d batches were not printed:\n%s", n, l.run.Stderr)
		}
	}
}

// TestManySeries counts spans with many names together.
func TestManySeries(t *testing.T) {
	l := start(t, relay)
	for i := range 40 {
		if err := l.send(span("cart", fmt.Sprint("GET /", i), 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	body := l.await(pages, `traces_span_metrics_calls_total{otel_metric_overflow="true"} 20`)
	if n := strings.Count(body, "traces_span_metrics_calls_total{"); n != 21 {
		t.Errorf("%d series", n)
	}
}

func TestMemoryLimiter(t *testing.T) {
	l := start(t, strings.Replace(relay, "limit_mib: 500", "limit_mib: 30", 1))
	if err := l.machine.Env().Memory.Add(40 << 20); err != nil {
		t.Fatal(err)
	}
	if err := l.send(span("cart", "x", 0, 0)); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
	l.await(own, `otelcol_receiver_refused_spans_total{receiver="otlp",transport="grpc"} 1`)
	l.run.Await("Refusing data")
}

// TestKafka asks a broker for the lag of a group.
func TestKafka(t *testing.T) {
	w := kittest.New(t)
	broker, m := w.Machine("kafka", "10.244.0.4"), w.Machine("otel-collector", "10.244.0.2")
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"),
		kfake.ListenFn(func(string, string) (net.Listener, error) {
			ln, err := broker.Env().Net.Listen("tcp", ":9092")
			return named{ln}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers("kafka:9092"), kgo.Dialer(m.Env().Net.DialContext), kgo.ConsumerGroup("fraud-detection"),
		kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range 5 {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var seen []*kgo.Record
	for len(seen) < 2 {
		seen = append(seen, client.PollRecords(t.Context(), 2-len(seen)).Records()...)
	}
	if err := client.CommitRecords(t.Context(), seen...); err != nil {
		t.Fatal(err)
	}
	m.Write("/conf/relay.yaml", `
receivers: {kafkametrics: {brokers: ["kafka:9092"], scrapers: [brokers, topics, consumers], collection_interval: 1s}}
exporters: {prometheus: {endpoint: "0.0.0.0:9464"}}
service: {pipelines: {metrics: {receivers: [kafkametrics], exporters: [prometheus]}}}
`)
	run := m.Start(Main, "/otelcol-contrib", "--config", "file:/conf/relay.yaml")
	run.Await("Everything is ready")
	l := &lab{t: t, machine: m, run: run}
	l.await(pages, `kafka_consumer_group_lag{group="fraud-detection",partition="0",topic="orders"} 3`,
		`kafka_partition_current_offset{partition="0",topic="orders"} 5`, "kafka_brokers{} 1")
}

// named is a listener that clients know by its name.
type named struct{ net.Listener }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func (named) Addr() net.Addr { return address("kafka:9092") }

func TestConfig(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(relay, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(relay, old, new, 1)
	}
	env := &kit.Env{Vars: map[string]string{}}
	for name, tt := range map[string]struct{ conf, want string }{
		"fine":                 {relay, ""},
		"the image's":          {defaultConfig, ""},
		"empty":                {"", "at least one pipeline"},
		"no YAML":              {"a: [", "cannot unmarshal"},
		"an unknown part":      {relay + "\nother: 1\n", "other not found"},
		"an unknown exporter":  {change("  debug:\n", "  debug:\n  opensearch: {}\n"), `'exporters' unknown type: "opensearch" for id: "opensearch"`},
		"an unknown processor": {change("  batch:", "  transform: {}\n  batch:"), `unknown type: "transform"`},
		"k8sattributes":        {change("  batch:", "  k8sattributes: {}\n  batch:"), `unknown type: "k8sattributes"`},
		"an unknown setting":   {change("timeout: 10ms", "time: 10ms"), "field time not found"},
		"not there":            {change("exporters: [otlp/jaeger, debug, spanmetrics]", "exporters: [otlp/other]"), `references exporter "otlp/other" which is not configured`},
		"logs":                 {change("    metrics:\n", "    logs: {receivers: [otlp], exporters: [debug]}\n    metrics:\n"), "pipelines of logs are not there"},
		"TLS":                  {change("tls: {insecure: true}", "timeout: 1s"), "TLS is not there"},
		"no limit":             {change("limit_mib: 500", "limit_mib: 0"), "must be above 0"},
		"no such action":       {change("action: upsert", "action: hash"), "needs a key, and an action"},
		"traces of metrics":    {change("receivers: [otlp]\n", "receivers: [otlp, spanmetrics]\n"), "gives metrics, not traces"},
		"a bad path":           {change("{endpoint: 0.0.0.0:13133}", "{path: '{x'}"), "is no path"},
		"aliases":              {"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nreceivers: *b\n", "cannot unmarshal"},
		"large":                {strings.Repeat("#", maxConfig+1), "more than"},
	} {
		_, err := parseConfig(env, []byte(tt.conf))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	m := kittest.New(t).Machine("m", "10.244.0.2")
	m.Write("/bad.yaml", "exporters: {zipkin: {}}")
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--config /bad.yaml", 1, `collector server run finished with error: failed to get config: 'exporters' unknown type: "zipkin"`},
		{"--config=/nosuch.yaml", 1, "no such file"},
		{"", 1, "at least one config flag"},
		{"--version", 0, "0.151.0"},
		{"--verbose", 1, "unknown flag: --verbose"},
	} {
		e, out := m.Env(append([]string{"/otelcol-contrib"}, strings.Fields(tt.args)...)...), &kittest.Buffer{}
		e.Stdout, e.Stderr = out, out
		if code := kit.Run(t.Context(), Main, e); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: exit %d\n%s", tt.args, code, out)
		}
	}
}

// FuzzConfig has no configuration end the process.
func FuzzConfig(f *testing.F) {
	f.Add(relay)
	f.Add(defaultConfig)
	f.Add("receivers: {otlp: }\nservice: {pipelines: {traces: }}")
	env := &kit.Env{Vars: map[string]string{}}
	f.Fuzz(func(_ *testing.T, conf string) { _, _ = parseConfig(env, []byte(conf)) })
}
