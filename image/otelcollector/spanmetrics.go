package otelcollector

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// defaultBuckets are those of the original.
var defaultBuckets = []time.Duration{
	2 * time.Millisecond, 4 * time.Millisecond, 6 * time.Millisecond, 8 * time.Millisecond, 10 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
	800 * time.Millisecond, time.Second, 1400 * time.Millisecond, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	15 * time.Second,
}

// seriesBytes is what a series takes.
const seriesBytes = 1 << 10

// spanSeries counts the spans that are alike.
type spanSeries struct {
	labels  []*commonpb.KeyValue
	calls   int64
	sum     float64
	buckets []uint64
}

// spanMetrics is the connector spanmetrics.
type spanMetrics struct {
	c      *collector
	conf   *spanmetricsConnector
	bounds []float64 // milliseconds
	next   consumer
	start  time.Time

	mu     sync.Mutex
	series map[string]*spanSeries
}

func newSpanMetrics(c *collector, conf *spanmetricsConnector, next consumer) *spanMetrics {
	s := &spanMetrics{c: c, conf: conf, next: next, start: time.Now(), series: map[string]*spanSeries{}}
	buckets := conf.Histogram.Explicit.Buckets
	if len(buckets) == 0 {
		buckets = defaultBuckets
	}
	for _, b := range buckets {
		s.bounds = append(s.bounds, float64(b)/float64(time.Millisecond))
	}
	slices.Sort(s.bounds)
	s.remember()
	return s
}

func (s *spanMetrics) consume(_ context.Context, b batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range b.spans {
		service := asText(find(r.GetResource().GetAttributes(), "service.name"))
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.count(service, r, span)
			}
		}
	}
	return nil
}

// count takes in a span. Those of services and names beyond the limit are counted together.
func (s *spanMetrics) count(service string, r *tracepb.ResourceSpans, span *tracepb.Span) {
	status := span.GetStatus().GetCode().String()
	name := span.GetName()
	if len(name) > maxText {
		name = name[:maxText]
	}
	labels := []*commonpb.KeyValue{
		attribute("service.name", service), attribute("span.name", name),
		attribute("span.kind", span.GetKind().String()), attribute("status.code", status),
	}
	for _, d := range s.conf.Dimensions {
		v := find(span.GetAttributes(), d.Name)
		if v == nil {
			v = find(r.GetResource().GetAttributes(), d.Name)
		}
		switch {
		case v != nil:
			labels = append(labels, attribute(d.Name, asText(v)))
		case d.Default != nil:
			labels = append(labels, attribute(d.Name, *d.Default))
		}
	}
	var key strings.Builder
	for _, l := range labels {
		key.WriteString(l.GetKey() + "\x00" + asText(l.GetValue()) + "\x00")
	}
	k := key.String()
	one := s.series[k]
	if one == nil && len(s.series) >= s.conf.Limit {
		k = "overflow"
		labels = []*commonpb.KeyValue{attribute("otel.metric.overflow", "true")}
		one = s.series[k]
	}
	if one == nil {
		if s.c.holder.Add(seriesBytes) != nil {
			return
		}
		one = &spanSeries{labels: labels, buckets: make([]uint64, len(s.bounds)+1)}
		s.series[k] = one
	}
	took := 0.0
	if span.GetEndTimeUnixNano() > span.GetStartTimeUnixNano() {
		took = float64(span.GetEndTimeUnixNano()-span.GetStartTimeUnixNano()) / 1e6
	}
	one.calls++
	one.sum += took
	at, _ := slices.BinarySearch(s.bounds, took)
	one.buckets[at]++
}

// run gives the metrics on until ctx ends.
func (s *spanMetrics) run(ctx context.Context) {
	t := time.NewTicker(s.conf.Flush)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			if b := s.metrics(now); b.metrics != nil {
				_ = s.next.consume(ctx, b) // Those after count what they drop.
			}
		}
	}
}

// metrics are what was counted since the start.
func (s *spanMetrics) metrics(now time.Time) batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.series) == 0 {
		return batch{}
	}
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	calls := &metricspb.Sum{IsMonotonic: true, AggregationTemporality: cumulative}
	took := &metricspb.Histogram{AggregationTemporality: cumulative}
	start, at := uint64(s.start.UnixNano()), uint64(now.UnixNano())
	for _, one := range s.series {
		calls.DataPoints = append(calls.DataPoints, &metricspb.NumberDataPoint{
			Attributes: one.labels, StartTimeUnixNano: start, TimeUnixNano: at,
			Value: &metricspb.NumberDataPoint_AsInt{AsInt: one.calls},
		})
		sum := one.sum
		took.DataPoints = append(took.DataPoints, &metricspb.HistogramDataPoint{
			Attributes: one.labels, StartTimeUnixNano: start, TimeUnixNano: at, Count: uint64(one.calls), Sum: &sum,
			BucketCounts: slices.Clone(one.buckets), ExplicitBounds: s.bounds,
		})
	}
	prefix := ""
	if s.conf.Namespace != "" {
		prefix = s.conf.Namespace + "."
	}
	return batch{metrics: []*metricspb.ResourceMetrics{{
		ScopeMetrics: []*metricspb.ScopeMetrics{{
			Scope: &commonpb.InstrumentationScope{Name: "spanmetricsconnector"},
			Metrics: []*metricspb.Metric{
				{Name: prefix + "calls", Data: &metricspb.Metric_Sum{Sum: calls}},
				{Name: prefix + "duration", Unit: "ms", Data: &metricspb.Metric_Histogram{Histogram: took}},
			},
		}},
	}}}
}
