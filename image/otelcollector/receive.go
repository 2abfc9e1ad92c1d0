package otelcollector

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

const (
	// maxMessage is the largest request that is taken.
	maxMessage = 4 << 20
	// itemCost is the CPU time that a span or a data point takes on its way through.
	itemCost = 15 * time.Microsecond
)

// inbound is the receiver otlp.
type inbound struct {
	c       *collector
	id      string
	traces  fanout // the pipelines that want spans
	metrics fanout

	accepted, refused [2][2]atomic.Int64 // by transport, then spans and data points
}

// Ways that data come by.
const (
	overGRPC = iota
	overHTTP
)

// receive gives a batch to the pipelines.
func (in *inbound) receive(ctx context.Context, way int, b batch) error {
	n := b.count()
	if n == 0 {
		return nil
	}
	to := in.metrics
	if b.spans != nil {
		to = in.traces
	}
	if err := in.c.meter.Spend(ctx, time.Duration(n)*itemCost); err != nil {
		return status.FromContextError(err).Err()
	}
	if err := to.consume(ctx, b); err != nil {
		in.refused[way][kindOf(b)].Add(int64(n))
		if errors.Is(err, errRefused) {
			return status.Error(codes.Unavailable, errRefused.Error())
		}
		return status.Error(codes.Unavailable, err.Error())
	}
	in.accepted[way][kindOf(b)].Add(int64(n))
	return nil
}

// traceServer and metricServer are the receiver over gRPC.
type (
	traceServer struct {
		traceservice.UnimplementedTraceServiceServer
		in *inbound
	}
	metricServer struct {
		metricservice.UnimplementedMetricsServiceServer
		in *inbound
	}
)

// Export implements OTLP.
func (s traceServer) Export(ctx context.Context, q *traceservice.ExportTraceServiceRequest) (
	*traceservice.ExportTraceServiceResponse, error,
) {
	return &traceservice.ExportTraceServiceResponse{}, s.in.receive(ctx, overGRPC, batch{spans: q.GetResourceSpans()})
}

// Export implements OTLP.
func (s metricServer) Export(ctx context.Context, q *metricservice.ExportMetricsServiceRequest) (
	*metricservice.ExportMetricsServiceResponse, error,
) {
	return &metricservice.ExportMetricsServiceResponse{},
		s.in.receive(ctx, overGRPC, batch{metrics: q.GetResourceMetrics()})
}

// routes are the receiver over HTTP.
func (in *inbound) routes() http.Handler {
	mux := http.NewServeMux()
	if in.traces != nil {
		mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
			q := &traceservice.ExportTraceServiceRequest{}
			in.serve(w, r, q, &traceservice.ExportTraceServiceResponse{}, func() batch {
				return batch{spans: q.GetResourceSpans()}
			})
		})
	}
	if in.metrics != nil {
		mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
			q := &metricservice.ExportMetricsServiceRequest{}
			in.serve(w, r, q, &metricservice.ExportMetricsServiceResponse{}, func() batch {
				return batch{metrics: q.GetResourceMetrics()}
			})
		})
	}
	return mux
}

// serve answers a request in the form that it came in.
func (in *inbound) serve(w http.ResponseWriter, r *http.Request, q, resp proto.Message, read func() batch) {
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
		data, _ := encode(m) // It is one of ours.
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = w.Write(data)
	}
	if err := decode(r, kind, q); err != nil {
		answer(http.StatusBadRequest, status.New(codes.InvalidArgument, err.Error()).Proto())
		return
	}
	if err := in.receive(r.Context(), overHTTP, read()); err != nil {
		answer(http.StatusServiceUnavailable, status.Convert(err).Proto())
		return
	}
	answer(http.StatusOK, resp)
}

// decode reads the body of a request.
func decode(r *http.Request, kind string, q proto.Message) error {
	body := io.Reader(r.Body)
	switch e := r.Header.Get("Content-Encoding"); e {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(io.LimitReader(body, maxMessage))
		if err != nil {
			return err
		}
		body = z
	default:
		return fmt.Errorf("the encoding %q is not known", e)
	}
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("the request has more than %d bytes", maxMessage)
	}
	if kind == "application/x-protobuf" {
		return proto.Unmarshal(data, q)
	}
	if nesting.Depth(string(data)) > 200 {
		return errors.New("the request is nested too deep")
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	if data, err = json.Marshal(withIDs(v)); err != nil {
		return err
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, q)
}

// withIDs turns the IDs of a document from OTLP's form, hexadecimal, to that of protobuf.
func withIDs(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withIDs(v[i])
		}
	case map[string]any:
		for k := range v {
			id, ok := v[k].(string)
			if ok && (k == "traceId" || k == "spanId" || k == "parentSpanId") {
				if raw, err := hex.DecodeString(id); err == nil {
					v[k] = base64.StdEncoding.EncodeToString(raw)
				}
				continue
			}
			v[k] = withIDs(v[k])
		}
	}
	return v
}
