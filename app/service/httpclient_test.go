package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/propagation"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// A request and a message carry the trace that they are part of.
func TestTraceIsSentAlong(t *testing.T) {
	w := kittest.New(t)
	server, client := w.Machine("web", "10.244.0.2"), w.Machine("shop", "10.244.0.3")
	server.Start(func(ctx context.Context, env *kit.Env) error {
		s, err := New(ctx, env, Config{Name: "web"})
		if err != nil {
			return err
		}
		defer s.Close()
		return s.ServeHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Header.Get("traceparent"))
		}), ":8080")
	}, "web")
	server.WaitListen(":8080")
	s, err := New(t.Context(), client.Env("shop"), Config{Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, span := s.Span(t.Context(), "buy")
	defer span.End()
	trace := span.SpanContext().TraceID().String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://web:8080/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.HTTPClient(StoreTimeout).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got strings.Builder
	if err := resp.Write(&got); err != nil || !strings.Contains(got.String(), "00-"+trace+"-") {
		t.Errorf("want trace %s: %s, %v", trace, got.String(), err)
	}
	headers := propagation.MapCarrier{}
	s.Inject(ctx, headers)
	_, child := s.Span(s.Extract(t.Context(), headers), "keep")
	defer child.End()
	if child.SpanContext().TraceID().String() != trace {
		t.Errorf("a message belongs to %v, not to %s", child.SpanContext().TraceID(), trace)
	}
}

// A service that says that it is not well fails its health check.
func TestWell(t *testing.T) {
	w := kittest.New(t)
	server, client := w.Machine("geo", "10.244.0.2"), w.Machine("search", "10.244.0.3")
	var ill atomic.Bool
	server.Start(func(ctx context.Context, env *kit.Env) error {
		s, err := New(ctx, env, Config{Name: "geo"})
		if err != nil {
			return err
		}
		defer s.Close()
		s.Well = func(context.Context) bool { return !ill.Load() }
		return s.ServeGRPC(ctx, s.GRPCServer(nil), ":8083", nil)
	}, "geo")
	server.WaitListen(":8083")
	s, err := New(t.Context(), client.Env("search"), Config{Name: "search"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := s.DialPlain("passthrough:///geo:8083")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{
		healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING,
	} {
		ill.Store(want != healthpb.HealthCheckResponse_SERVING)
		r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil || r.Status != want {
			t.Errorf("%v, %v; want %v", r.GetStatus(), err, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestInsist: what nobody has answered is sent again, a few times, and no longer than the time there is.
func TestInsist(t *testing.T) {
	for _, c := range []struct {
		name          string
		failures      int
		limit         time.Duration
		sent          int
		answered      bool
		contextsEnded bool
	}{
		{"at once", 0, time.Minute, 1, true, false},
		{"after a while", 3, time.Minute, 4, true, false},
		{"never", 100, time.Minute, sends, false, true},
		{"in time", 100, 100 * time.Millisecond, 2, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			var last context.Context
			client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				if sent++; sent <= c.failures {
					return nil, errors.New("connection refused")
				}
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("yes"))}, nil
			})}
			resp, err := Insist(t.Context(), client, c.limit, func(ctx context.Context) (*http.Request, error) {
				last = ctx
				return http.NewRequestWithContext(ctx, http.MethodGet, "http://geo:80/", nil)
			})
			if sent != c.sent || (err == nil) != c.answered || (last.Err() != nil) != c.contextsEnded {
				t.Errorf("%s: sent %d times, %v, and then %v", c.name, sent, err, last.Err())
			}
			if err == nil {
				if resp.Body.Close(); last.Err() == nil {
					t.Errorf("%s: its context goes on when the answer was read", c.name)
				}
			}
		})
	}
}
