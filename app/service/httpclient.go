package service

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Inject writes the trace of a context into the headers of a message, whatever carries them.
func (s *Service) Inject(ctx context.Context, headers propagation.TextMapCarrier) {
	s.propagate.Inject(ctx, headers)
}

// Extract returns a context that continues the trace in the headers of a message.
func (s *Service) Extract(ctx context.Context, headers propagation.TextMapCarrier) context.Context {
	return s.propagate.Extract(ctx, headers)
}

// idleConnections are how many connections to another service are kept.
const idleConnections = 32

// HTTPClient returns a client of other services, whose requests are traced. Close closes its connections.
func (s *Service) HTTPClient(timeout time.Duration) *http.Client {
	t := s.Env.HTTPTransport()
	t.MaxIdleConnsPerHost, t.DisableCompression = idleConnections, true
	s.onClose(func(context.Context) error {
		t.CloseIdleConnections()
		return nil
	})
	return &http.Client{Transport: &tracedTransport{s, t}, Timeout: timeout}
}

// tracedTransport sends the trace along with a request.
type tracedTransport struct {
	s    *Service
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper]. The span ends when the head of the answer has come.
func (t *tracedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := t.s.tracer.Start(r.Context(), "HTTP "+r.Method, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("http.method", r.Method), attribute.String("http.url", r.URL.String())))
	r = r.Clone(ctx)
	t.s.propagate.Inject(ctx, propagation.HeaderCarrier(r.Header))
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		EndSpan(span, err)
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.status_code", resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, resp.Status)
		span.SetAttributes(attribute.Bool("error", true))
	}
	span.End()
	return resp, nil
}
