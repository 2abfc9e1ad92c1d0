package service

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aiopslab/aiopslab/kit"
)

// HandleFunc adds a handler to mux that is traced and counted under its pattern's path, and costs
// CPU time.
func (s *Service) HandleFunc(mux *http.ServeMux, pattern, name string, cost time.Duration, h http.HandlerFunc) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx := s.propagate.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := s.tracer.Start(ctx, "HTTP "+r.Method+" "+name, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(
				attribute.String("http.method", r.Method), attribute.String("http.url", r.URL.RequestURI())))
		rec := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		if s.Env.CPU.Use(ctx, cost) == nil {
			h(rec, r.WithContext(ctx))
		} else {
			rec.status = 499 // The client went away while the request waited for the processor.
		}
		code := strconv.Itoa(rec.status)
		s.metrics.requests.WithLabelValues(name, r.Method, code).Inc()
		s.metrics.duration.WithLabelValues(name, r.Method, code).Observe(time.Since(start).Seconds())
		span.SetAttributes(attribute.Int("http.status_code", rec.status))
		if rec.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(rec.status))
			span.SetAttributes(attribute.Bool("error", true))
		}
		span.End()
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(code int) {
	r.status = code
	r.ResponseWriter.WriteHeader(code)
}

// ServeHTTP listens and serves until the context ends, then finishes the requests it has.
func (s *Service) ServeHTTP(ctx context.Context, h http.Handler, address string) error {
	ln, err := s.Env.Net.Listen("tcp", address)
	if err != nil {
		return s.Fatal(ctx, "cannot listen", err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.Background(), drain)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
	})()
	if err := kit.IgnoreClosed(srv.Serve(ln)); err != nil {
		return s.Fatal(ctx, "server failed", err)
	}
	if ctx.Err() != nil {
		<-stopped
	}
	return nil
}
