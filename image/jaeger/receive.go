package jaeger

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// spanCost is the CPU time to take in a span.
const spanCost = 20 * time.Microsecond

// Export implements OTLP over gRPC.
func (s *server) Export(ctx context.Context,
	req *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	if err := s.receive(ctx, req.ResourceSpans); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *server) receive(ctx context.Context, list []*tracepb.ResourceSpans) error {
	n, bytes := s.store.add(list)
	if err := s.held.set(s.env.Memory, bytes); err != nil {
		return err
	}
	return s.env.CPU.Use(ctx, time.Duration(n)*spanCost)
}

func (s *server) receiverRoutes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /v1/traces", s.receiveHTTP)
	return m
}

// receiveHTTP is OTLP over HTTP. It answers in the form it was asked in.
func (s *server) receiveHTTP(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/x-protobuf" && kind != "application/json" {
		http.Error(w, fmt.Sprintf("415 unsupported media type, supported: [application/json, "+
			"application/x-protobuf], got %q", kind), http.StatusUnsupportedMediaType)
		return
	}
	answer := func(code int, m proto.Message) {
		encode := proto.Marshal
		if kind == "application/json" {
			encode = protojson.Marshal
		}
		b, _ := encode(m)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = w.Write(b)
	}
	req, err := decodeHTTP(r, kind)
	if err != nil {
		answer(http.StatusBadRequest, status.New(codes.InvalidArgument, err.Error()).Proto())
		return
	}
	if err := s.receive(r.Context(), req.ResourceSpans); err != nil {
		answer(http.StatusServiceUnavailable, status.New(codes.Unavailable, err.Error()).Proto())
		return
	}
	answer(http.StatusOK, &collector.ExportTraceServiceResponse{})
}

func decodeHTTP(r *http.Request, kind string) (*collector.ExportTraceServiceRequest, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = z
	}
	b, err := readAll(body)
	if err != nil {
		return nil, err
	}
	req := &collector.ExportTraceServiceRequest{}
	if kind == "application/x-protobuf" {
		return req, proto.Unmarshal(b, req)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	if b, err = json.Marshal(protoIDs(v)); err != nil {
		return nil, err
	}
	return req, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, req)
}

// protoIDs turns the IDs in a JSON document from OTLP's form, hexadecimal, to that of protobuf.
func protoIDs(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = protoIDs(v[i])
		}
	case map[string]any:
		for k := range v {
			id, ok := v[k].(string)
			if b, err := hex.DecodeString(id); ok && err == nil &&
				(k == "traceId" || k == "spanId" || k == "parentSpanId") {
				v[k] = base64.StdEncoding.EncodeToString(b)
				continue
			}
			v[k] = protoIDs(v[k])
		}
	}
	return v
}
