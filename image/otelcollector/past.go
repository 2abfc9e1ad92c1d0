package otelcollector

import (
	"context"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// failed is the status of spans that tell of a failure. That there were some when all was started does not mean that
// there always are.
var failed = tracepb.Status_STATUS_CODE_ERROR.String()

// remember has the connector go on counting from a past, if it is told one.
func (s *spanMetrics) remember() {
	marked := map[string]spanSeries{}
	s.c.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, one := range s.series {
			m := *one
			m.buckets = slices.Clone(one.buckets)
			marked[key] = m
		}
		return nil
	})
	s.c.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		times := p.Times(s.c.env.Started)
		if times == 0 {
			return nil
		}
		s.start = s.c.env.Started
		for key, one := range s.series {
			if asText(find(one.labels, "status.code")) != failed {
				one.age(marked[key], times)
			}
		}
		return nil
	})
}

// age adds what would have been counted, had it always been as much as since there was the usual load. There are as
// many calls as the buckets say.
func (o *spanSeries) age(marked spanSeries, times float64) {
	o.sum += past.More(o.sum, marked.sum, times)
	o.calls = 0
	for i, n := range o.buckets {
		then := 0.0
		if i < len(marked.buckets) {
			then = float64(marked.buckets[i])
		}
		o.buckets[i] += uint64(past.More(float64(n), then, times))
		o.calls += int64(o.buckets[i])
	}
}
