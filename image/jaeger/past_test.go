package jaeger

import (
	"encoding/binary"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/aiopslab/aiopslab/kit/past"
)

// spansOf is a trace of a call from the front to geo.
func spansOf(n uint64, at time.Time, took time.Duration, whole bool) []*tracepb.ResourceSpans {
	id := func(x uint64) []byte { return binary.BigEndian.AppendUint64(nil, x) }
	trace := append(id(n), id(n)...)
	from := func(service, pod string, sp *tracepb.Span) *tracepb.ResourceSpans {
		sp.TraceId, sp.StartTimeUnixNano = trace, uint64(at.UnixNano())
		sp.EndTimeUnixNano = sp.StartTimeUnixNano + uint64(took)
		return &tracepb.ResourceSpans{
			Resource: &resource.Resource{Attributes: []*common.KeyValue{
				stringTag("service.name", service), stringTag("host.name", pod),
			}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{sp}}},
		}
	}
	list := []*tracepb.ResourceSpans{from("front", "front-new", &tracepb.Span{SpanId: id(2*n + 1), Name: "GET /"})}
	if whole {
		list = append(list, from("geo", "geo-1", &tracepb.Span{SpanId: id(2*n + 2), ParentSpanId: id(2*n + 1), Name: "Nearby"}))
	}
	return list
}

// TestTracesGoBack holds that there are traces of hours, as many of the last minute as come now, like those that are
// complete, of the pods of their time; and that those of the start are gone.
func TestTracesGoBack(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{100 * time.Millisecond, 5 * time.Millisecond} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			goBack(t, every)
		})
	}
}

// goBack looks at the past of a system in which a trace comes every so often.
func goBack(t *testing.T, every time.Duration) {
	join := time.Now()
	born := join.Add(-10 * time.Minute)
	p := past.New(7, join.Add(-2*time.Second), join, past.Cast{Gone: []past.Gone{
		{Successor: "front-new", Pod: "front-old", From: join.Add(-30 * time.Hour), To: born},
	}})
	p.Began = join.Add(-6 * time.Second)
	s := newStore(0, 0)
	for i := range uint64(2 * time.Second / every) {
		s.add(spansOf(i+1, join.Add(-5*time.Second), time.Second, true)) // while the application became warm
		s.add(spansOf(i+1001, join.Add(-time.Duration(i)*every), 5*time.Millisecond, i%4 != 0))
	}
	if _, ok := s.recall(p, join.Add(-20*24*time.Hour)); !ok {
		t.Fatal("there is no past")
	}
	all := s.search(query{service: "front", to: join.Add(time.Second)})
	recent, old := 0, 0
	for _, x := range all {
		services := map[string]bool{}
		for _, sp := range x.Spans {
			at := time.UnixMicro(int64(sp.StartTime))
			process := x.Processes[sp.ProcessID]
			services[process.ServiceName] = true
			want := "front-new"
			if at.Before(born) {
				want = "front-old"
			}
			if host := process.Tags[0].Value; process.ServiceName == "front" && host != want {
				t.Fatalf("at %v the front is %v, want %s", at, host, want)
			}
			if sp.Duration > uint64((20*time.Millisecond).Microseconds()) && p.Slow(at) == 0 {
				t.Fatalf("a trace of %v is as slow as at the start: %d", at, sp.Duration)
			}
			if ago := join.Sub(at); sp.SpanID == x.Spans[0].SpanID && ago > 2*time.Second {
				if ago < 12*time.Second {
					recent++
				}
				if ago > time.Hour {
					old++
				}
			}
		}
		if at := time.UnixMicro(int64(x.Spans[0].StartTime)); at.Before(join.Add(-2*time.Second)) && len(services) != 2 {
			t.Fatalf("a trace of %v is not complete: %v", at, services)
		}
	}
	if want := int(10 * time.Second / every); recent < want*2/3 || recent > want*4/3 {
		t.Errorf("%d traces of ten seconds, want about %d", recent, want)
	}
	if old < 20 || len(all) > 9000 {
		t.Errorf("%d traces, %d of them older than an hour", len(all), old)
	}
	if got := s.counts(); got.received < int64(20*24*time.Hour/every) || got.evicted < got.received/4 {
		t.Errorf("it has received %d spans and evicted %d traces in 20 days", got.received, got.evicted)
	}
	if got := s.counts(); got.traces != int64(len(s.traces)) || got.traces != int64(len(all)) {
		t.Errorf("%d traces are counted, there are %d and %d", got.traces, len(s.traces), len(all))
	}
	other := newStore(0, 0)
	if _, ok := other.recall(p, join); ok {
		t.Error("nothing has a past")
	}
	if n := other.counts().traces; n != 0 {
		t.Errorf("%d traces of nothing", n)
	}
}
