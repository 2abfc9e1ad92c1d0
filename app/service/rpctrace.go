package service

import (
	"context"
	"path"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Spans of calls have the names and attributes of OpenTelemetry's conventions for gRPC. Its own
// instrumentation costs three times as much: it looks at every message, and counts what nobody reads.

// callSpans has what the spans of a kind start with, by the full name of the method.
type callSpans struct {
	kind    trace.SpanKind
	methods sync.Map // to []trace.SpanStartOption
}

// start begins the span of a call.
func (c *callSpans) start(ctx context.Context, t trace.Tracer, method string) (context.Context, trace.Span) {
	opts, ok := c.methods.Load(method)
	if !ok {
		opts, _ = c.methods.LoadOrStore(method,
			[]trace.SpanStartOption{trace.WithSpanKind(c.kind), trace.WithAttributes(
				attribute.String("rpc.system", "grpc"),
				attribute.String("rpc.service", strings.TrimPrefix(path.Dir(method), "/")),
				attribute.String("rpc.method", path.Base(method)),
			)})
	}
	return t.Start(ctx, strings.TrimPrefix(method, "/"), opts.([]trace.SpanStartOption)...)
}

// endCall ends the span of a call. Failed says whether an error is one of this side.
func endCall(span trace.Span, err error, failed func(codes.Code) bool) {
	st, _ := status.FromError(err)
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(st.Code())))
	if err != nil && failed(st.Code()) {
		span.SetStatus(otelcodes.Error, st.Message())
		span.SetAttributes(attribute.Bool("error", true))
	}
	span.End()
}

// healthMethods is what the full names of the methods of gRPC's health check begin with.
const healthMethods = "/grpc.health.v1.Health/"

// incoming reads, and outgoing writes, the headers of a call.
type incoming struct{ ctx context.Context }

func (c incoming) Get(key string) string {
	if v := metadata.ValueFromIncomingContext(c.ctx, key); len(v) > 0 {
		return v[0]
	}
	return ""
}
func (incoming) Set(string, string) {}
func (incoming) Keys() []string     { return nil }

type outgoing struct{ ctx context.Context }

func (*outgoing) Get(string) string { return "" }
func (c *outgoing) Set(key, value string) {
	c.ctx = metadata.AppendToOutgoingContext(c.ctx, key, value)
}
func (*outgoing) Keys() []string { return nil }

// traceServed continues the caller's trace. Health checks leave none.
func (s *Service) traceServed(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	next grpc.UnaryHandler,
) (any, error) {
	if strings.HasPrefix(info.FullMethod, healthMethods) {
		return next(ctx, req)
	}
	ctx, span := s.served.start(s.propagate.Extract(ctx, incoming{ctx}), s.tracer, info.FullMethod)
	resp, err := next(ctx, req)
	endCall(span, err, blamesServer)
	return resp, err
}

// traceCalled sends the trace along with a call.
func (s *Service) traceCalled(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	ctx, span := s.called.start(ctx, s.tracer, method)
	out := &outgoing{ctx}
	s.propagate.Inject(ctx, out)
	err := invoke(out.ctx, method, req, reply, cc, opts...)
	endCall(span, err, func(codes.Code) bool { return true })
	return err
}

// blamesServer reports whether a code says that the server, not its caller, is wrong.
func blamesServer(c codes.Code) bool {
	switch c {
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	}
	return false
}
