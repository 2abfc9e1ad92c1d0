package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// MetricsPort is where a service serves its metrics, under /metrics, unless
	// OTEL_EXPORTER_PROMETHEUS_PORT says otherwise.
	MetricsPort = 9464
	// drain is how long a service that was told to stop finishes what it has begun.
	drain = 5 * time.Second
	// farewell is how long it may take to say goodbye to a store or a collector, which may be gone.
	farewell = 500 * time.Millisecond
)

// Config says what a service is called, how it logs, and how its spans are sent.
type Config struct {
	Name string       // in traces and metrics
	Log  *slog.Logger // default: [NewLog] on standard output
	// Protocol is how spans are sent, OverGRPC unless it says otherwise: the SDKs of some languages prefer one, those
	// of others the other. OTEL_EXPORTER_OTLP_PROTOCOL has the last word.
	Protocol string
	// Collector is the URL that spans are sent to. Default: OTEL_EXPORTER_OTLP_ENDPOINT.
	Collector string
}

// Service is one running microservice. Its methods may be called concurrently.
type Service struct {
	Name string
	Env  *kit.Env
	Log  *slog.Logger
	// Well is asked at each of gRPC's health checks whether the service serves. It may be nil; it is set before the
	// server is made.
	Well func(context.Context) bool

	metrics   *metrics
	tracer    trace.Tracer
	propagate propagation.TextMapPropagator
	served    callSpans // of calls to the service
	called    callSpans // of its own
	closers   []func(context.Context) error
	killed    func() bool  // by SIGKILL
	server    *http.Server // of the metrics
	health    map[*grpc.Server]*health.Server
	serving   sync.WaitGroup
}

// New starts the log, the traces and the metrics of a service. Close ends them.
func New(ctx context.Context, env *kit.Env, cfg Config) (*Service, error) {
	s := &Service{
		Name: cfg.Name, Env: env, Log: cfg.Log, metrics: newMetrics(env),
		propagate: propagation.TraceContext{}, health: map[*grpc.Server]*health.Server{},
	}
	s.served.kind, s.called.kind = trace.SpanKindServer, trace.SpanKindClient
	s.killed = func() bool {
		k, ok := errors.AsType[kit.Killed](context.Cause(ctx))
		return ok && k.Signal == syscall.SIGKILL
	}
	if s.Log == nil {
		s.Log = NewLog(env.Stdout, slog.LevelInfo)
	}
	if err := s.startTraces(ctx, cfg); err != nil {
		return nil, err
	}
	ln, err := env.Net.Listen("tcp", ":"+cmp.Or(env.Getenv("OTEL_EXPORTER_PROMETHEUS_PORT"), strconv.Itoa(MetricsPort)))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Metrics())
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: drain}
	s.serving.Go(func() { _ = s.server.Serve(ln) })
	return s, nil
}

// Close sends the last spans and closes what the service opened. One that was killed sends nothing: its network is
// gone, and whoever it would take leave of may be as well.
func (s *Service) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), farewell)
		if s.killed() {
			ctx, cancel = context.WithCancel(context.Background()) // What has a deadline is waited for.
			cancel()
		}
		errs = append(errs, s.closers[i](ctx))
		cancel()
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	s.serving.Wait()
	return errors.Join(errs...)
}

// Registerer is where a service registers metrics of its own.
func (s *Service) Registerer() prometheus.Registerer { return s.metrics.registry }

// Span starts a span inside the service. End it with [EndSpan].
func (s *Service) Span(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	return s.tracer.Start(ctx, name, opts...)
}

// Fatal logs why the service cannot go on and returns the error that ends it with exit code 1.
func (s *Service) Fatal(ctx context.Context, msg string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() // It was told to stop; nothing is wrong.
	}
	log(ctx, s.Log, LevelFatal, msg, slog.Any("error", err))
	return kit.Exit(1)
}

// OnClose has Close do something, before what was opened earlier is closed. It may take half a second.
func (s *Service) OnClose(f func(context.Context) error) { s.onClose(f) }

// onClose registers what Close does, last first.
func (s *Service) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// Metrics serves the metrics, for a service that has them on a port of its own as well.
func (s *Service) Metrics() http.Handler {
	return promhttp.HandlerFor(s.metrics.exposed, promhttp.HandlerOpts{})
}
