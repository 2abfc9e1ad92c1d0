package service

import (
	"context"
	"io"
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

// A request that nobody has answered is sent again, for as long as it may take until a Service has heard that a pod has
// gone.
const (
	sends     = 5
	sendAgain = 60 * time.Millisecond
)

// Insist sends a request, again if nobody has answered it, and returns the first answer. Request makes it anew each
// time. All of it, until the answer was read, takes as long as limit at most.
func Insist(ctx context.Context, c *http.Client, limit time.Duration,
	request func(context.Context) (*http.Request, error),
) (resp *http.Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	for n := range sends {
		req, err := request(ctx)
		if err != nil {
			return nil, err
		}
		if resp, err = c.Do(req); err == nil {
			resp.Body = &cancelling{resp.Body, cancel}
			return resp, nil
		}
		if n == sends-1 || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(sendAgain << n):
		case <-ctx.Done():
			return nil, err
		}
	}
	return nil, err
}

// cancelling ends the context of a request when its answer was read.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
