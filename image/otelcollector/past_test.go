package otelcollector

import (
	"context"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestSpansHaveLived holds that a collector that is told its past has counted spans all the time, but no failures.
func TestSpansHaveLived(t *testing.T) {
	env := kittest.New(t).Machine("otel-collector", "10.244.0.2").Env("otelcol")
	env.Started = time.Now().Add(-2 * time.Hour)
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	s := newSpanMetrics(&collector{env: env, holder: kit.NewHolder(env)}, &spanmetricsConnector{Limit: 10}, nil)
	count := func(code tracepb.Status_StatusCode, n int) {
		for range n {
			spans := span("cart", "GetCart", code, 3*time.Millisecond).ResourceSpans
			if err := s.consume(t.Context(), batch{spans: spans}); err != nil {
				t.Fatal(err)
			}
		}
	}
	count(tracepb.Status_STATUS_CODE_OK, 5)
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	count(tracepb.Status_STATUS_CODE_OK, 10)
	count(tracepb.Status_STATUS_CODE_ERROR, 10)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	want := int64(10 * p.Work(env.Started, join))
	for _, one := range s.series {
		code := asText(find(one.labels, "status.code"))
		if code == failed {
			if one.calls != 10 {
				t.Errorf("%d calls failed in two hours, want the 10 of now", one.calls)
			}
			continue
		}
		inBuckets := uint64(0)
		for _, n := range one.buckets {
			inBuckets += n
		}
		if one.calls < want-1 || one.calls > want+1 || inBuckets != uint64(one.calls) {
			t.Errorf("%s: %d calls, %d in buckets, want about %d", code, one.calls, inBuckets, want)
		}
		if mean := one.sum / float64(one.calls); mean < 2.9 || mean > 3.1 {
			t.Errorf("a call took %v ms, want 3", mean)
		}
	}
	if !s.start.Equal(env.Started) {
		t.Errorf("counted since %v, want %v", s.start, env.Started)
	}
}
