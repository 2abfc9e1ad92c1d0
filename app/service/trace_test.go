package service

import (
	"io"
	"net/http"
	"strings"
	"testing"

	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

// Spans arrive over HTTP from services whose SDKs do so, or that are told to.
func TestSpansOverHTTP(t *testing.T) {
	w := kittest.New(t)
	collector, m := w.Machine("collector", "10.244.0.2"), w.Machine("quote", "10.244.0.3")
	ln, err := collector.Env("collector").Net.Listen("tcp", ":4318")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		q := &traceservice.ExportTraceServiceRequest{}
		if err := proto.Unmarshal(data, q); err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			got <- "no spans"
			return
		}
		got <- r.URL.Path + " " + q.ResourceSpans[0].ScopeSpans[0].Spans[0].Name
	})}
	go srv.Serve(ln)
	defer srv.Close()
	for name, tt := range map[string]struct {
		cfg  Config
		vars map[string]string
	}{
		"its SDK":        {Config{Protocol: OverHTTP}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}},
		"a variable":     {Config{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}},
		"another source": {Config{Protocol: OverHTTP, Collector: "http://collector:4318"}, nil},
	} {
		env := m.Env("quote")
		env.Vars = tt.vars
		tt.cfg.Name = "quote"
		s, err := New(t.Context(), env, tt.cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, span := s.Span(t.Context(), "GET /quote")
		span.End()
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if g := <-got; g != "/v1/traces GET /quote" {
			t.Errorf("%s: %s", name, g)
		}
	}
	env := m.Env("quote")
	env.Vars = map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
	if _, err := New(t.Context(), env, Config{Name: "quote"}); err == nil || !strings.Contains(err.Error(), "want grpc or http/protobuf") {
		t.Errorf("an unknown protocol: %v", err)
	}
}
