package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	// maxRequest is how many bytes of spans are sent at once. One span may be more.
	maxRequest = 4 << 20
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
	// attempts are how often a request is sent to an endpoint that asks for patience, and maxWait how long it may ask
	// for.
	attempts       = 5
	firstWait      = 500 * time.Millisecond
	maxWait        = 30 * time.Second
	requestTimeout = time.Minute
)

// Endpoint is where spans are sent with OTLP over HTTP. It is a Writer.
type Endpoint struct {
	url    string
	header http.Header
	client *http.Client
}

// NewEndpoint checks an address. One without a path means the path of the protocol, /v1/traces. Headers are as in the
// variable OTEL_EXPORTER_OTLP_HEADERS: key=value, with commas between them.
func NewEndpoint(address, headers string) (*Endpoint, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is no URL; write for instance http://localhost:4318")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: it is no URL of http or https; write for instance http://localhost:4318", u.Redacted())
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	h := http.Header{}
	for _, pair := range strings.Split(headers, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS: want key=value, with commas between them")
		}
		h.Set(strings.TrimSpace(key), value)
	}
	h.Set("Content-Type", "application/x-protobuf")
	return &Endpoint{u.String(), h, &http.Client{Timeout: requestTimeout}}, nil
}

// Write sends the spans of a run.
func (e *Endpoint) Write(ctx context.Context, r *Run) error {
	all := r.Spans()
	list := all.ScopeSpans[0].Spans
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && (n == 0 || size+proto.Size(list[n]) <= maxRequest) {
			size += proto.Size(list[n])
			n++
		}
		err := e.send(ctx, &tracepb.ResourceSpans{
			Resource: all.Resource, ScopeSpans: []*tracepb.ScopeSpans{{
				Scope: &commonpb.InstrumentationScope{Name: all.ScopeSpans[0].Scope.Name}, Spans: list[:n],
			}},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", r.File, err)
		}
		list = list[n:]
	}
	return nil
}

// Close closes idle connections.
func (e *Endpoint) Close() error {
	e.client.CloseIdleConnections()
	return nil
}

// send sends spans, again if the endpoint asks for that.
func (e *Endpoint) send(ctx context.Context, s *tracepb.ResourceSpans) error {
	body, err := proto.Marshal(&traceservice.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{s}})
	if err != nil {
		return err
	}
	wait := firstWait
	for n := 1; ; n++ {
		again, after, err := e.post(ctx, body)
		if err == nil || !again || n == attempts {
			return err
		}
		select {
		case <-time.After(max(wait, min(after, maxWait))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		wait *= 2
	}
}

// post sends a request once. It says whether it can be sent again, and after which time.
func (e *Endpoint) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	req.Header = e.header.Clone()
	resp, err := e.client.Do(req)
	if err != nil {
		return false, 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return false, 0, err
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, rejected(answer, resp.Header.Get("Content-Type"))
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		n, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		again, after = true, time.Duration(max(n, 0))*time.Second
	}
	return again, after, fmt.Errorf("the endpoint answers %s%s", resp.Status, inWords(answer, resp.Header))
}

// inWords is an answer that is a text.
func inWords(answer []byte, h http.Header) string {
	if t := h.Get("Content-Type"); !strings.HasPrefix(t, "text/") && !strings.HasPrefix(t, "application/json") {
		return ""
	}
	text := []rune(strings.Join(strings.Fields(string(answer)), " "))
	return ": " + string(text[:min(len(text), 200)])
}

// rejected is an error if the endpoint did not take all spans.
func rejected(answer []byte, kind string) error {
	var r traceservice.ExportTraceServiceResponse
	if !strings.HasPrefix(kind, "application/x-protobuf") || proto.Unmarshal(answer, &r) != nil {
		return nil
	}
	if p := r.GetPartialSuccess(); p.GetRejectedSpans() > 0 {
		return fmt.Errorf("the endpoint refused %d spans: %s", p.RejectedSpans, p.ErrorMessage)
	}
	return nil
}
