package service

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The protocols of OTLP, by the names that OTEL_EXPORTER_OTLP_PROTOCOL has for them.
const (
	OverGRPC = "grpc"
	OverHTTP = "http/protobuf"
)

const (
	exportEvery   = time.Second // how long a span waits for others to be sent with
	exportTimeout = 3 * time.Second
)

// startTraces begins to send spans to the collector the environment names. There may be none, and
// it may be down: spans are then dropped, as everywhere.
func (s *Service) startTraces(ctx context.Context, cfg Config) error {
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", s.Name),
			attribute.String("host.name", s.Env.Hostname),
			attribute.String("telemetry.sdk.language", "go"),
		)),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler(s.Env.Getenv("JAEGER_SAMPLE_RATIO")))),
	}
	if endpoint := cmp.Or(cfg.Collector, s.Env.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")); endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT %q is not a URL such as http://jaeger:4317", endpoint)
		}
		sender, err := s.sender(ctx, u, cmp.Or(s.Env.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), cfg.Protocol, OverGRPC))
		if err != nil {
			return err
		}
		batches := sdktrace.NewBatchSpanProcessor(&exporter{SpanExporter: sender, log: s.Log},
			sdktrace.WithBatchTimeout(exportEvery), sdktrace.WithExportTimeout(exportTimeout))
		opts = append(opts, sdktrace.WithSpanProcessor(batches))
		// It ends even if there is no time to wait for that; a provider that is shut down in no time would leave it.
		s.onClose(func(ctx context.Context) error {
			_ = batches.Shutdown(ctx) // A collector that is away is no failure of the service.
			return nil
		})
	}
	s.tracer = sdktrace.NewTracerProvider(opts...).Tracer("github.com/aiopslab/aiopslab/app/service")
	return nil
}

// sender sends spans to a collector.
func (s *Service) sender(ctx context.Context, collector *url.URL, protocol string) (sdktrace.SpanExporter, error) {
	switch protocol {
	case OverGRPC:
		conn, err := grpc.NewClient("passthrough:///"+collector.Host,
			append(s.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
		if err != nil {
			return nil, err
		}
		s.onClose(func(context.Context) error { return conn.Close() })
		return otlptracegrpc.New(ctx, otlptracegrpc.WithGRPCConn(conn),
			otlptracegrpc.WithTimeout(exportTimeout), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
	case OverHTTP:
		t := s.Env.HTTPTransport()
		s.onClose(func(context.Context) error {
			t.CloseIdleConnections()
			return nil
		})
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(collector.JoinPath("v1/traces").String()),
			otlptracehttp.WithHTTPClient(&http.Client{Transport: t, Timeout: exportTimeout}),
			otlptracehttp.WithTimeout(exportTimeout), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	}
	return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q is not known: want %s or %s", protocol, OverGRPC, OverHTTP)
}

// exporter tells the service's own log when spans begin to get lost. The SDK would tell the
// process', which is not the service's.
type exporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing bool // exports are not concurrent
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && !e.failing {
		e.log.WarnContext(ctx, "Failed to export spans", slog.Any("error", err))
	}
	e.failing = err != nil
	return nil
}

// sampler keeps the given share of traces; all by default.
func sampler(ratio string) sdktrace.Sampler {
	r, err := strconv.ParseFloat(ratio, 64)
	if err != nil || r >= 1 {
		return sdktrace.AlwaysSample()
	}
	return sdktrace.TraceIDRatioBased(r)
}

// EndSpan ends a span, marked as failed if err is not nil.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.Bool("error", true))
	}
	span.End()
}

// dialContext connects through the container's network. Its form is gRPC's.
func (s *Service) dialContext(ctx context.Context, address string) (net.Conn, error) {
	return s.Env.Net.DialContext(ctx, "tcp", address)
}

// log writes a line whose caller is the caller's caller.
func log(ctx context.Context, l *slog.Logger, level slog.Level, msg string, attrs ...slog.Attr) {
	if !l.Enabled(ctx, level) {
		return
	}
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	r := slog.NewRecord(time.Now(), level, msg, pc[0])
	r.AddAttrs(attrs...)
	_ = l.Handler().Handle(ctx, r)
}
