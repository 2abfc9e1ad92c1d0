package jaeger

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a machine that runs Jaeger.
type lab struct {
	t       *testing.T
	machine *kittest.Machine
	client  *http.Client
	run     *kittest.Run
}

func start(t *testing.T, flags ...string) *lab {
	m := kittest.New(t).Machine("jaeger", "10.244.0.2")
	l := &lab{t: t, machine: m, client: m.Client()}
	l.run = m.Start(Main, append([]string{"all-in-one"}, flags...)...)
	l.run.Await("Health Check state change")
	return l
}

// get asks the query API.
func (l *lab) get(path string, params ...string) (int, string) {
	l.t.Helper()
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	res, err := l.client.Get("http://localhost:16686" + path + "?" + v.Encode())
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// traces returns the roots' operation names of what a search finds, in its order.
func (l *lab) traces(params ...string) []string {
	l.t.Helper()
	code, body := l.get("/api/traces", params...)
	var answer struct{ Data []traceJSON }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusOK {
		l.t.Fatalf("%d %s: %v", code, body, err)
	}
	names := []string{}
	for _, t := range answer.Data {
		names = append(names, t.Spans[0].OperationName)
	}
	return names
}

// provider is a service that traces.
func provider(t *testing.T, service string, e *otlptrace.Exporter) *sdktrace.TracerProvider {
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", service), attribute.String("k8s.pod.name", service+"-0"))))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

// The official exporters are the clients: a frontend over gRPC calls a store over HTTP.
func TestExporters(t *testing.T) {
	l := start(t)
	ctx := context.Background()
	env := l.machine.Env()
	dial := func(ctx context.Context, addr string) (net.Conn, error) { return env.Net.DialContext(ctx, "tcp", addr) }
	overGRPC, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint("localhost:4317"), otlptracegrpc.WithInsecure(),
		otlptracegrpc.WithDialOption(grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatal(err)
	}
	overHTTP, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint("localhost:4318"), otlptracehttp.WithInsecure(),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithHTTPClient(l.client))
	if err != nil {
		t.Fatal(err)
	}
	frontend, store := provider(t, "frontend", overGRPC).Tracer("app"), provider(t, "store", overHTTP).Tracer("app")

	at := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	ctx, root := frontend.Start(ctx, "HTTP GET /cart", oteltrace.WithSpanKind(oteltrace.SpanKindServer), oteltrace.WithTimestamp(at),
		oteltrace.WithAttributes(attribute.Int("http.status_code", 500), attribute.Float64("load", 0.5), attribute.StringSlice("list", []string{"a", "b"})))
	_, child := store.Start(ctx, "find", oteltrace.WithSpanKind(oteltrace.SpanKindClient), oteltrace.WithTimestamp(at.Add(time.Millisecond)))
	child.AddEvent("retry", oteltrace.WithTimestamp(at.Add(2*time.Millisecond)), oteltrace.WithAttributes(attribute.Bool("last", true)))
	child.SetStatus(codes.Error, "no reachable servers")
	child.End(oteltrace.WithTimestamp(at.Add(5 * time.Millisecond)))
	root.End(oteltrace.WithTimestamp(at.Add(9 * time.Millisecond)))

	code, body := l.get("/api/traces/" + root.SpanContext().TraceID().String())
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	id, us := root.SpanContext().TraceID().String(), at.UnixMicro()
	want := fmt.Sprintf(`{"data":[{"traceID":"%[1]s","spans":[
	{"traceID":"%[1]s","spanID":"%[2]s","operationName":"HTTP GET /cart","references":[],"startTime":%[4]d,"duration":9000,
	 "tags":[{"key":"http.status_code","type":"int64","value":500},{"key":"load","type":"float64","value":0.5},
	  {"key":"list","type":"string","value":"[\"a\",\"b\"]"},
	  {"key":"otel.scope.name","type":"string","value":"app"},{"key":"span.kind","type":"string","value":"server"},
	  {"key":"internal.span.format","type":"string","value":"otlp"}],"logs":[],"processID":"p2","warnings":null},
	{"traceID":"%[1]s","spanID":"%[3]s","operationName":"find","references":[{"refType":"CHILD_OF","traceID":"%[1]s","spanID":"%[2]s"}],
	 "startTime":%[5]d,"duration":4000,
	 "tags":[{"key":"otel.scope.name","type":"string","value":"app"},{"key":"span.kind","type":"string","value":"client"},
	  {"key":"otel.status_code","type":"string","value":"ERROR"},{"key":"error","type":"bool","value":true},
	  {"key":"otel.status_description","type":"string","value":"no reachable servers"},
	  {"key":"internal.span.format","type":"string","value":"otlp"}],
	 "logs":[{"timestamp":%[6]d,"fields":[{"key":"event","type":"string","value":"retry"},{"key":"last","type":"bool","value":true}]}],
	 "processID":"p1","warnings":null}],
	"processes":{"p1":{"serviceName":"store","tags":[{"key":"k8s.pod.name","type":"string","value":"store-0"}]},
	 "p2":{"serviceName":"frontend","tags":[{"key":"k8s.pod.name","type":"string","value":"frontend-0"}]}},"warnings":null}],
	"total":0,"limit":0,"offset":0,"errors":null}`, id, root.SpanContext().SpanID(), child.SpanContext().SpanID(), us, us+1000, us+2000)
	if diff := cmp.Diff(decode(t, want), decode(t, body)); diff != "" {
		t.Errorf("trace (-want +got):\n%s", diff)
	}

	for path, want := range map[string]string{
		"/api/services":                     `["frontend","store"]`,
		"/api/services/frontend/operations": `["HTTP GET /cart"]`,
		"/api/operations?service=store":     `[{"name":"find","spanKind":"client"}]`,
		"/api/dependencies":                 `[{"parent":"frontend","child":"store","callCount":1}]`,
	} {
		res, err := l.client.Get("http://localhost:16686" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.HasPrefix(string(b), `{"data":`+want+`,`) {
			t.Errorf("%s: %s", path, b)
		}
	}
	if l.machine.Resources.Memory() <= 0 {
		t.Error("the spans take no memory")
	}
	l.run.Signal(syscall.SIGTERM)
	if code := l.run.Wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, l.run.Stderr)
	}
}

func decode(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return v
}

// span makes spans for the store itself.
func span(service, name string, trace, id, parent byte, start time.Time, d time.Duration, tags ...*common.KeyValue) []*tracepb.ResourceSpans {
	s := &tracepb.Span{
		TraceId: append(make([]byte, 15), trace), SpanId: append(make([]byte, 7), id), Name: name, Attributes: tags,
		StartTimeUnixNano: uint64(start.UnixNano()), EndTimeUnixNano: uint64(start.Add(d).UnixNano()),
	}
	if parent != 0 {
		s.ParentSpanId = append(make([]byte, 7), parent)
	}
	return []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*common.KeyValue{stringTag("service.name", service), stringTag("zone", "a")}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{s}}},
	}}
}

func TestSearch(t *testing.T) {
	now := time.Now()
	s := newStore(0, 0)
	s.add(span("web", "GET /a", 1, 1, 0, now.Add(-3*time.Hour), 10*time.Millisecond, stringTag("user", "1")))
	s.add(span("web", "GET /b", 2, 1, 0, now.Add(-2*time.Minute), 20*time.Millisecond, stringTag("user", "2")))
	s.add(span("web", "GET /a", 3, 1, 0, now.Add(-time.Minute), 300*time.Millisecond, stringTag("user", "2")))
	s.add(span("db", "find", 3, 2, 1, now.Add(-time.Minute), 30*time.Millisecond))
	for _, c := range []struct {
		name   string
		params string
		want   []string // trace IDs
	}{
		{"service", "service=web", []string{"3", "2", "1"}},
		{"other service", "service=db", []string{"3"}},
		{"no such service", "service=cache", nil},
		{"exclude", "service=web&exclude=db&exclude=cache", []string{"2", "1"}},
		{"operation", "service=web&operation=GET+/a", []string{"3", "1"}},
		{"lookback", "service=web&lookback=1h", []string{"3", "2"}},
		{"lookback in days", "service=web&lookback=2d", []string{"3", "2", "1"}},
		{"limit", "service=web&limit=1", []string{"3"}},
		{"min", "service=web&minDuration=15ms", []string{"3", "2"}},
		{"max", "service=web&maxDuration=15ms", []string{"1"}},
		// The duration is that of the service's own span, not of the trace.
		{"min of another", "service=db&minDuration=100ms", nil},
		{"tags as JSON", `service=web&tags={"user":"2"}`, []string{"3", "2"}},
		{"tags as pairs", "service=web&tags=user:1", []string{"1"}},
		{"tag", "service=web&tag=user:1", []string{"1"}},
		{"tag of the process", "service=db&tag=zone:a", []string{"3"}},
		{"all tags", `service=web&tags={"user":"2","zone":"b"}`, nil},
		{"start", fmt.Sprintf("service=web&start=%d", now.Add(-90*time.Second).UnixMicro()), []string{"3"}},
		{"end", fmt.Sprintf("service=web&end=%d", now.Add(-90*time.Second).UnixMicro()), []string{"2", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := url.ParseQuery(strings.ReplaceAll(c.params, `"`, "%22"))
			if err != nil {
				t.Fatal(err)
			}
			q, err := parseQuery(v, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, j := range s.search(q) {
				got = append(got, strings.TrimLeft(j.TraceID, "0"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBadQueries(t *testing.T) {
	l := start(t, "--query.base-path=/jaeger/ui")
	for path, want := range map[string]int{
		"/jaeger/ui/api/traces":                                         400,
		"/jaeger/ui/api/traces?service=a&limit=x":                       400,
		"/jaeger/ui/api/traces?service=a&lookback=soon":                 400,
		"/jaeger/ui/api/traces?service=a&tags=%7Bx":                     400,
		"/jaeger/ui/api/traces?service=a&tag=x":                         400,
		"/jaeger/ui/api/traces?service=a&minDuration=2s&maxDuration=1s": 400,
		"/jaeger/ui/api/traces/xyz":                                     400,
		"/jaeger/ui/api/traces/1":                                       404,
		"/jaeger/ui/api/operations":                                     400,
		"/jaeger/ui/api/dependencies?endTs=x":                           400,
		"/jaeger/ui/api/services":                                       200,
		"/api/services":                                                 404,
		"/jaeger/ui/":                                                   200,
		"/jaeger/ui/search?service=a":                                   200,
		"/jaeger/ui/trace/1":                                            200, // by a redirect to the page
		"/jaeger/ui/traces":                                             404,
	} {
		res, err := l.client.Get("http://localhost:16686" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, res.StatusCode, b, want)
		}
		if want == 400 && !strings.Contains(string(b), `"errors":[{"code":400,"msg":`) {
			t.Errorf("%s: no error in %s", path, b)
		}
	}
	res, err := l.client.Get("http://localhost:14269/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); !strings.Contains(string(b), `"status":"Server available"`) {
		t.Errorf("health: %s", b)
	}
}

func TestJSONReceiver(t *testing.T) {
	l := start(t)
	post := func(kind, body string) int {
		res, err := l.client.Post("http://localhost:4318/v1/traces", kind, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	const doc = `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"js"}}]},"scopeSpans":[{"spans":[
		{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"click","startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","new":1}]}]}]}`
	if code := post("application/json", doc); code != 200 {
		t.Errorf("JSON: %d", code)
	}
	if code := post("application/json", "{"); code != 400 {
		t.Errorf("broken JSON: %d", code)
	}
	if code := post("application/x-protobuf", "\xff"); code != 400 {
		t.Errorf("broken protobuf: %d", code)
	}
	if code := post("text/plain", doc); code != 415 {
		t.Errorf("text: %d", code)
	}
	if code, body := l.get("/api/traces/5b8efff798038103d269b633813fc60c"); code != 200 || !strings.Contains(body, `"spanID":"eee19b7ec3c1b174"`) || !strings.Contains(body, `"duration":1000000`) {
		t.Errorf("%d %s", code, body)
	}
	if got := l.traces("service", "js", "start", "1544712600000000", "end", "1544712700000000"); !slices.Equal(got, []string{"click"}) {
		t.Errorf("found %v", got)
	}
}

// The oldest traces make room, by number and by size.
func TestEviction(t *testing.T) {
	now := time.Now()
	s := newStore(3, 0)
	for i := byte(1); i <= 5; i++ {
		s.add(span("web", "GET", i, 1, 0, now.Add(time.Duration(i)*time.Second), time.Second))
	}
	if c := s.counts(); c.traces != 3 || c.spans != 3 || c.evicted != 2 || c.received != 5 {
		t.Errorf("by number: %+v", c)
	}
	if list := s.get(traceIDOf([]byte{1}), traceIDOf([]byte{3})); len(list) != 1 || list[0].TraceID != "0000000000000003" {
		t.Errorf("got %v", list)
	}

	const limit = 64 << 10
	s = newStore(0, limit)
	for i := range 5000 {
		list := span("web", "GET", 0, 1, 0, now, time.Second, stringTag("url", fmt.Sprintf("/item/%d", i)))
		list[0].ScopeSpans[0].Spans[0].TraceId = fmt.Appendf(nil, "%016d", i)
		if _, bytes := s.add(list); bytes > limit {
			t.Fatalf("%d bytes are held after %d traces", bytes, i)
		}
	}
	c := s.counts()
	if c.traces < 100 || c.traces+c.evicted != 5000 {
		t.Errorf("by size: %+v", c)
	}
	// A value that is different in every span must not stay in the table for good.
	if len(s.table.list) > 2*maxValues {
		t.Errorf("the table has %d strings", len(s.table.list))
	}
}

func TestFlags(t *testing.T) {
	m := kittest.New(t).Machine("jaeger", "10.244.0.2")
	m.Vars = map[string]string{"MEMORY_MAX_TRACES": "7", "COLLECTOR_OTLP_ENABLED": "true"}
	if o, err := parseFlags(m.Env("all-in-one")); err != nil || o.maxTraces != 7 {
		t.Errorf("%+v, %v", o, err)
	}
	m.Vars["MEMORY_MAX_TRACES"] = "many"
	if code := m.Start(Main, "all-in-one").Wait(); code != 1 {
		t.Errorf("a bad variable: exit code %d", code)
	}
	if code := m.Start(Main, "all-in-one", "--frobnicate").Wait(); code != 1 {
		t.Errorf("a bad flag: exit code %d", code)
	}
}

func BenchmarkAdd(b *testing.B) {
	s := newStore(0, 16<<20)
	now := time.Now()
	for i := 0; b.Loop(); i++ {
		list := span("web", "GET", 0, byte(i), 0, now, time.Second, stringTag("http.method", "GET"), stringTag("http.url", fmt.Sprintf("/item/%d", i)))
		list[0].ScopeSpans[0].Spans[0].TraceId = fmt.Appendf(nil, "%016d", i/20)
		s.add(list)
	}
	c := s.counts()
	b.ReportMetric(float64(c.bytes)/float64(c.spans), "B/span")
}
