package observe

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tempoTrace is a trace as Tempo tells it: front calls geo, which fails.
const tempoTrace = `{"batches":[
  {"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"front"}}]},"scopeSpans":[{"scope":{"name":"lib"},"spans":[
    {"traceId":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbfsPBsXM=","name":"GET /","kind":"SPAN_KIND_SERVER",
     "startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","status":{},
     "attributes":[{"key":"http.status_code","value":{"intValue":"500"}},{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"a"}]}}}]}]}]},
  {"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"geo"}}]},"instrumentationLibrarySpans":[{"spans":[
    {"traceId":"W47/95gDgQPSabYzgT/GDA==","spanId":"7uGbfsPBsXQ=","parentSpanId":"7uGbfsPBsXM=","name":"Nearby","kind":2,
     "startTimeUnixNano":"1544712660100000000","endTimeUnixNano":"1544712660200000000","status":{"code":"STATUS_CODE_ERROR","message":"no database"}}]}]}
]}`

const tempoID = "5b8efff798038103d269b633813fc60c"

func tempoAt(t *testing.T) *Observer {
	t.Helper()
	m := http.NewServeMux()
	m.HandleFunc("GET /t/api/search/tag/service.name/values", reply(`{"tagValues":["front","geo"],"metrics":{}}`))
	m.HandleFunc("GET /t/api/search", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("limit") != "50" {
			t.Errorf("asked for %s traces", q.Get("limit"))
		}
		switch q.Get("q") {
		case `{ resource.service.name = "front" }`, `{ resource.service.name = "geo" }`:
			reply(`{"traces":[{"traceID":"`+tempoID+`","rootServiceName":"front"},{"traceID":"gone"}]}`)(w, r)
		case `{ duration >= 1.5s && name = "a\"b" && resource.service.name = "x\" || true" && span."http.url" = "/" }`:
			reply(`{"traces":[]}`)(w, r)
		default:
			http.Error(w, "invalid TraceQL: "+q.Get("q"), http.StatusBadRequest)
		}
	})
	m.HandleFunc("GET /t/api/traces/"+tempoID, reply(tempoTrace))
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	o := fake(t, http.NotFoundHandler())
	if err := o.Use(External{Tempo: srv.URL + "/t"}); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTempo(t *testing.T) {
	traces := tempoAt(t).Jaeger("shop")
	list, err := traces.Search(t.Context(), TraceQuery{Service: "front", Limit: 1000})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	want := Trace{
		TraceID: tempoID,
		Spans: []Span{
			{
				TraceID: tempoID, SpanID: "eee19b7ec3c1b173", OperationName: "GET /", StartTime: 1544712660000000, Duration: 1000000, ProcessID: "p1",
				Tags: []Tag{{"http.status_code", "int64", "500"}, {"list", "string", `{"values":[{"stringValue":"a"}]}`}, {"span.kind", "string", "server"}},
			},
			{
				TraceID: tempoID, SpanID: "eee19b7ec3c1b174", OperationName: "Nearby", StartTime: 1544712660100000, Duration: 100000, ProcessID: "p2",
				References: []Reference{{"CHILD_OF", tempoID, "eee19b7ec3c1b173"}},
				Tags:       []Tag{{"span.kind", "string", "server"}, {"error", "bool", true}, {"otel.status_description", "string", "no database"}},
			},
		},
		Processes: map[string]Process{
			"p1": {"front", []Tag{{"service.name", "string", "front"}}}, "p2": {"geo", []Tag{{"service.name", "string", "geo"}}},
		},
	}
	if diff := cmp.Diff(want, list[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	links, err := traces.Dependencies(t.Context(), at, at.Add(time.Minute))
	if diff := cmp.Diff([]Link{{"front", "geo", 1}}, links); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	list, err = traces.Search(t.Context(), TraceQuery{
		Service: `x" || true`, Operation: `a"b`, MinDuration: 1500 * time.Millisecond, Tags: map[string]string{"http.url": "/"},
	})
	if err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := traces.Search(t.Context(), TraceQuery{Service: "none"}); err == nil || !strings.Contains(err.Error(), "400 Bad Request: invalid TraceQL") {
		t.Error(err)
	}
	if _, err := traces.Trace(t.Context(), "nowhere"); err == nil || err.Error() != "trace nowhere: not found" {
		t.Error(err)
	}
}

func TestOneHasTraces(t *testing.T) {
	err := External{Jaeger: "http://a", Tempo: "http://b"}.Check()
	if err == nil || !strings.Contains(err.Error(), "one of them") {
		t.Error(err)
	}
}

// Who wants to know who calls whom asks for all services, and not for the first few.
func TestTempoOfManyServices(t *testing.T) {
	var names []string
	for i := range 2 * externalRequests {
		names = append(names, fmt.Sprintf("s%02d", i))
	}
	asked := map[string]bool{}
	m := http.NewServeMux()
	m.HandleFunc("GET /api/search/tag/service.name/values", reply(`{"tagValues":["`+strings.Join(names, `","`)+`"]}`))
	m.HandleFunc("GET /api/search", func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Query().Get("q")] = true
		reply(`{"traces":[{"traceID":"`+tempoID+`"}]}`)(w, r)
	})
	m.HandleFunc("GET /api/traces/"+tempoID, reply(tempoTrace))
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	links, err := TempoAt(srv.Client(), srv.URL+"/").Dependencies(t.Context(), time.Now().Add(-time.Hour), time.Now())
	if err != nil || len(asked) != len(names) {
		t.Errorf("%d of %d services are asked for, %v", len(asked), len(names), err)
	}
	// The same trace of each of them counts once.
	if len(links) != 1 || links[0].CallCount != 1 {
		t.Errorf("links %+v", links)
	}
}
