package otelcollector

import (
	"cmp"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	// maxQueue is how many batches may wait for an exporter, maxQueueBytes how large they may be together.
	maxQueue      = 10_000
	maxQueueBytes = 16 << 20
)

// item waits for an exporter.
type item struct {
	batch
	n, size int
}

// sender is the exporter otlp.
type sender struct {
	c    *collector
	id   string
	conf *otlpExporter
	conn *grpc.ClientConn

	mu      sync.Mutex
	queue   []item
	bytes   int
	limit   int
	arrived chan struct{}

	sent, failed, dropped [2]atomic.Int64 // spans, and data points
}

func newSender(c *collector, id string, conf *otlpExporter) (*sender, error) {
	target := strings.TrimPrefix(conf.Endpoint, "http://")
	conn, err := grpc.NewClient("passthrough:///"+target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return c.env.Net.DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		return nil, err
	}
	return &sender{
		c: c, id: id, conf: conf, conn: conn, limit: cmp.Or(conf.Queue.Size, 1000), arrived: make(chan struct{}, 1),
	}, nil
}

func kindOf(b batch) int {
	if b.spans != nil {
		return 0
	}
	return 1
}

// consume puts a batch into the queue, or drops it if that is full.
func (s *sender) consume(_ context.Context, b batch) error {
	it := item{batch: b, n: b.count(), size: b.size()}
	s.mu.Lock()
	full := len(s.queue) >= s.limit || s.bytes+it.size > maxQueueBytes
	if !full && s.c.holder.Add(it.size) != nil {
		full = true
	}
	if !full {
		s.queue = append(s.queue, it)
		s.bytes += it.size
	}
	s.mu.Unlock()
	if full {
		s.dropped[kindOf(b)].Add(int64(it.n))
		s.c.warnSometimes("Exporting failed. Rejecting data. sending queue is full", "otelcol.component.id", s.id)
		return nil // It is counted; the client can do nothing about it.
	}
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return nil
}

func (s *sender) take() (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return item{}, false
	}
	it := s.queue[0]
	s.queue[0] = item{}
	s.queue = s.queue[1:]
	return it, true
}

func (s *sender) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// run sends what waits until ctx ends.
func (s *sender) run(ctx context.Context) {
	defer s.conn.Close()
	for {
		it, ok := s.take()
		if !ok {
			select {
			case <-s.arrived:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := s.deliver(ctx, it)
		if err != nil {
			s.failed[kindOf(it.batch)].Add(int64(it.n))
			s.c.warnSometimes("Exporting failed. Dropping data.", "otelcol.component.id", s.id, "error",
				status.Convert(err).Message(), "dropped_items", it.n)
		} else {
			s.sent[kindOf(it.batch)].Add(int64(it.n))
		}
		s.mu.Lock()
		s.bytes -= it.size
		s.mu.Unlock()
		_ = s.c.holder.Add(-it.size)
		if ctx.Err() != nil {
			return
		}
	}
}

// again are the errors after which it is worth trying again.
var again = map[codes.Code]bool{
	codes.Canceled: true, codes.DeadlineExceeded: true, codes.Aborted: true, codes.OutOfRange: true,
	codes.Unavailable: true, codes.DataLoss: true, codes.ResourceExhausted: true,
}

// deliver sends one batch, and tries again if that may help.
func (s *sender) deliver(ctx context.Context, it item) error {
	pause, longest := cmp.Or(s.conf.Retry.Initial, 5*time.Second), cmp.Or(s.conf.Retry.Max, 30*time.Second)
	until := time.Now().Add(cmp.Or(s.conf.Retry.Elapsed, 5*time.Minute))
	for {
		err := s.send(ctx, it.batch)
		retry := s.conf.Retry.Enabled == nil || *s.conf.Retry.Enabled
		if err == nil || !retry || !again[status.Code(err)] || time.Now().Add(pause).After(until) {
			return err
		}
		s.c.warnSometimes("Exporting failed. Will retry the request after interval.", "otelcol.component.id", s.id,
			"error", status.Convert(err).Message(), "interval", pause.String())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause = min(pause*3/2, longest)
	}
}

func (s *sender) send(ctx context.Context, b batch) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.conf.Timeout, 5*time.Second))
	defer cancel()
	if b.spans != nil {
		_, err := traceservice.NewTraceServiceClient(s.conn).Export(ctx,
			&traceservice.ExportTraceServiceRequest{ResourceSpans: b.spans})
		return err
	}
	_, err := metricservice.NewMetricsServiceClient(s.conn).Export(ctx,
		&metricservice.ExportMetricsServiceRequest{ResourceMetrics: b.metrics})
	return err
}

// printer is the exporter debug.
type printer struct {
	c  *collector
	id string
}

func (p printer) consume(_ context.Context, b batch) error {
	if b.spans != nil {
		p.c.log("info", "Traces", "otelcol.component.id", p.id, "resource spans", len(b.spans), "spans", b.count())
	} else {
		p.c.log("info", "Metrics", "otelcol.component.id", p.id, "resource metrics", len(b.metrics), "data points",
			b.count())
	}
	return nil
}
