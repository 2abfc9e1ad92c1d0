package otelcollector

import (
	"context"
	"errors"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// batch is what goes through a pipeline: spans, or metrics. Nobody changes one that others have, too.
type batch struct {
	spans   []*tracepb.ResourceSpans
	metrics []*metricspb.ResourceMetrics
}

// count is how many spans or data points a batch has.
func (b batch) count() (n int) {
	for _, r := range b.spans {
		for _, s := range r.GetScopeSpans() {
			n += len(s.GetSpans())
		}
	}
	for _, r := range b.metrics {
		for _, s := range r.GetScopeMetrics() {
			for _, m := range s.GetMetrics() {
				n += points(m)
			}
		}
	}
	return n
}

// points is how many data points a metric has.
func points(m *metricspb.Metric) int {
	return len(m.GetGauge().GetDataPoints()) + len(m.GetSum().GetDataPoints()) + len(m.GetHistogram().GetDataPoints()) +
		len(m.GetExponentialHistogram().GetDataPoints()) + len(m.GetSummary().GetDataPoints())
}

func (b batch) size() (n int) {
	for _, r := range b.spans {
		n += proto.Size(r)
	}
	for _, r := range b.metrics {
		n += proto.Size(r)
	}
	return n
}

// resources are those of a batch.
func (b batch) resources() (list []*resourcepb.Resource) {
	for _, r := range b.spans {
		if r.Resource == nil {
			r.Resource = &resourcepb.Resource{}
		}
		list = append(list, r.Resource)
	}
	for _, r := range b.metrics {
		if r.Resource == nil {
			r.Resource = &resourcepb.Resource{}
		}
		list = append(list, r.Resource)
	}
	return list
}

// clone is a batch that may be changed.
func (b batch) clone() (c batch) {
	for _, r := range b.spans {
		c.spans = append(c.spans, proto.CloneOf(r))
	}
	for _, r := range b.metrics {
		c.metrics = append(c.metrics, proto.CloneOf(r))
	}
	return c
}

// consumer takes batches. It does not wait for long.
type consumer interface {
	consume(ctx context.Context, b batch) error
}

// errRefused tells a client to try again later.
var errRefused = errors.New("data refused due to high memory usage")

// fanout gives a batch to several.
type fanout []consumer

func (f fanout) consume(ctx context.Context, b batch) error {
	var errs []error
	for _, c := range f {
		errs = append(errs, c.consume(ctx, b))
	}
	return errors.Join(errs...)
}

// limiter refuses batches while memory is short.
type limiter struct {
	c     *collector
	limit int64
	next  consumer
}

func newLimiter(c *collector, m *memoryLimiter, next consumer) *limiter {
	limit, spike := m.Limit<<20, m.Spike<<20
	if limit == 0 {
		info := c.env.Memory.Info()
		all := info.Limit
		if all == 0 {
			all = info.Total
		}
		limit, spike = all/100*m.Percentage, all/100*m.SpikePercentage
	}
	if spike == 0 || spike >= limit {
		spike = limit / 5
	}
	return &limiter{c: c, limit: limit - spike, next: next}
}

func (l *limiter) consume(ctx context.Context, b batch) error {
	if used := l.c.env.Memory.Info().Used; used > l.limit {
		l.c.warnSometimes("Memory usage is above soft limit. Refusing data.", "cur_mem_mib", used>>20)
		return errRefused
	}
	return l.next.consume(ctx, b)
}

// changer changes the attributes of resources.
type changer struct {
	p    *resourceProcessor
	next consumer
}

func (r changer) consume(ctx context.Context, b batch) error {
	b = b.clone()
	for _, res := range b.resources() {
		for _, a := range r.p.Attributes {
			at := -1
			var from *commonpb.AnyValue
			for i, kv := range res.Attributes {
				if kv.GetKey() == a.Key {
					at = i
				}
				if kv.GetKey() == a.From {
					from = kv.GetValue()
				}
			}
			value := from
			if a.From == "" {
				value = anyValue(a.Value)
			}
			switch {
			case a.Action == "delete" && at >= 0:
				res.Attributes = append(res.Attributes[:at:at], res.Attributes[at+1:]...)
			case a.Action == "delete" || value == nil:
			case at < 0 && a.Action != "update":
				res.Attributes = append(res.Attributes, &commonpb.KeyValue{Key: a.Key, Value: value})
			case at >= 0 && a.Action != "insert":
				res.Attributes[at].Value = value
			}
		}
	}
	return r.next.consume(ctx, b)
}

// batcher gathers batches into larger ones.
type batcher struct {
	p    *batchProcessor
	c    *collector
	next consumer

	mu      sync.Mutex
	pending batch
	n, held int
	timer   *time.Timer
}

func (b *batcher) consume(ctx context.Context, in batch) error {
	size := in.size()
	if err := b.c.holder.Add(size); err != nil {
		return errRefused
	}
	b.mu.Lock()
	b.pending.spans = append(b.pending.spans, in.spans...)
	b.pending.metrics = append(b.pending.metrics, in.metrics...)
	b.n += in.count()
	b.held += size
	full := b.n >= max(b.p.Size, 1) || b.held > maxMessage
	if !full && b.timer == nil {
		b.timer = time.AfterFunc(max(b.p.Timeout, time.Millisecond), func() { b.flush(context.WithoutCancel(ctx)) })
	}
	b.mu.Unlock()
	if full {
		b.flush(ctx)
	}
	return nil
}

// flush sends what was gathered. Whoever has sent it here was answered long ago; those after count what they drop.
func (b *batcher) flush(ctx context.Context) {
	b.mu.Lock()
	out, held := b.pending, b.held
	b.pending, b.n, b.held = batch{}, 0, 0
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.mu.Unlock()
	if out.spans != nil || out.metrics != nil {
		_ = b.next.consume(ctx, out)
	}
	_ = b.c.holder.Add(-held)
}
