package flagd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/evaluation/v1/evaluationv1grpc"
	evaluation "buf.build/gen/go/open-feature/flagd/protocolbuffers/go/flagd/evaluation/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// The services under whose names clients ask; the second is the older.
const (
	serviceName    = "flagd.evaluation.v1.Service"
	oldServiceName = "schema.v1.Service"
)

var (
	marshal   = protojson.MarshalOptions{EmitUnpopulated: true}
	unmarshal = protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: 100}
)

// statusOf is the HTTP status of an error, as the Connect protocol has it.
var statusOf = map[codes.Code]int{
	codes.InvalidArgument: http.StatusBadRequest, codes.NotFound: http.StatusNotFound,
	codes.ResourceExhausted: http.StatusTooManyRequests, codes.Unimplemented: http.StatusNotImplemented,
	codes.Canceled: 499, codes.DeadlineExceeded: http.StatusGatewayTimeout,
}

// nameOf are the codes in the words of the Connect protocol.
var nameOf = map[codes.Code]string{
	codes.InvalidArgument: "invalid_argument", codes.NotFound: "not_found",
	codes.ResourceExhausted: "resource_exhausted", codes.Unimplemented: "unimplemented",
	codes.Canceled: "canceled", codes.DeadlineExceeded: "deadline_exceeded",
	codes.DataLoss: "data_loss", codes.Internal: "internal",
}

// connectError writes an error.
func connectError(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	code, ok := statusOf[s.Code()]
	if !ok {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(errorBody(s))
}

func errorBody(s *status.Status) []byte {
	name, ok := nameOf[s.Code()]
	if !ok {
		name = "unknown"
	}
	data, _ := json.Marshal(map[string]string{"code": name, "message": s.Message()}) // It is made of texts.
	return data
}

// connect answers what browsers ask: POST /flagd.evaluation.v1.Service/ResolveFloat with JSON.
func (s service) connect(w http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if name != serviceName && name != oldServiceName {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if method == "EventStream" {
		s.connectStream(w, r, kind)
		return
	}
	if kind != "application/json" && kind != "application/proto" {
		w.Header().Set("Accept-Post", "application/json, application/proto")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		connectError(w, status.Errorf(codes.ResourceExhausted, "the request has more than %d bytes", maxRequest))
		return
	}
	if err != nil {
		return
	}
	resp, err := s.call(r.Context(), method, func(m proto.Message) error {
		if kind == "application/proto" {
			return proto.Unmarshal(body, m)
		}
		return unmarshal.Unmarshal(body, m)
	})
	if err != nil {
		connectError(w, err)
		return
	}
	data, err := marshal.Marshal(resp)
	if kind == "application/proto" {
		data, err = proto.Marshal(resp)
	}
	if err != nil {
		connectError(w, status.Error(codes.Internal, "the flag cannot be told"))
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data)
}

// call runs a method by its name.
func (s service) call(ctx context.Context, method string, decode func(proto.Message) error) (proto.Message, error) {
	for _, m := range evaluationv1grpc.Service_ServiceDesc.Methods {
		if m.MethodName != method {
			continue
		}
		resp, err := m.Handler(s, ctx, func(q any) error {
			if err := decode(q.(proto.Message)); err != nil {
				return status.Errorf(codes.InvalidArgument, "the request cannot be read: %v", err)
			}
			return nil
		}, nil)
		if err != nil {
			return nil, err
		}
		return resp.(proto.Message), nil
	}
	return nil, status.Errorf(codes.Unimplemented, "there is no method %q", method)
}

// endOfStream marks the last part of a stream.
const endOfStream = 2

// connectStream tells a browser of changes. Each message has its size before it.
func (s service) connectStream(w http.ResponseWriter, r *http.Request, kind string) {
	encode := marshal.Marshal
	switch kind {
	case "application/connect+json":
	case "application/connect+proto":
		encode = proto.Marshal
	default:
		w.Header().Set("Accept-Post", "application/connect+json, application/connect+proto")
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	// The request says nothing that matters.
	if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxRequest)); err != nil {
		return
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(http.StatusOK)
	part := func(mark byte, data []byte) error {
		head := binary.BigEndian.AppendUint32([]byte{mark}, uint32(len(data)))
		if _, err := w.Write(append(head, data...)); err != nil {
			return err
		}
		return out.Flush()
	}
	err := s.stream(r.Context(), func(m *evaluation.EventStreamResponse) error {
		data, err := encode(m)
		if err != nil {
			return err
		}
		return part(0, data)
	})
	end := []byte("{}")
	if err != nil {
		end = append(append([]byte(`{"error":`), errorBody(status.Convert(err))...), '}')
	}
	_ = part(endOfStream, end) // The client may be gone.
}
