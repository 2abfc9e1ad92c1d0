package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/app/hotel/hotelpb"
	"github.com/aiopslab/aiopslab/image/memcached"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLogLines(t *testing.T) {
	var b bytes.Buffer
	log := NewLog(&b, slog.LevelInfo)
	log.Debug("not shown")
	log.With("service", "geo").Info("hello", "n", 3, "text", "two words", "empty", "", slog.Group("g", "k", "v"))
	log.WithGroup("db").Error("failed", "error", errors.New(`a "quoted" cause`))
	want := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ INF service/service_test\.go:\d+ > hello service=geo n=3 text="two words" empty="" g\.k=v
\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERR service/service_test\.go:\d+ > failed db\.error="a \\"quoted\\" cause"
$`)
	if !want.Match(b.Bytes()) {
		t.Errorf("%s", b.String())
	}
}

// A service that is told to stop takes its leave; one that is killed does not. Neither leaves anything running.
func TestLeave(t *testing.T) {
	for _, tt := range []struct {
		signal syscall.Signal
		want   error
	}{{syscall.SIGTERM, nil}, {syscall.SIGKILL, context.Canceled}} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			server := kittest.New(t).Machine("web", "10.244.0.2")
			left := make(chan error, 1)
			run := server.Start(func(ctx context.Context, env *kit.Env) error {
				s, err := New(ctx, env, Config{Name: "web", Collector: "http://10.244.0.2:4317"})
				if err != nil {
					return err
				}
				defer s.Close()
				s.OnClose(func(ctx context.Context) error {
					left <- ctx.Err()
					return nil
				})
				return s.ServeHTTP(ctx, http.NewServeMux(), ":8080")
			}, "web")
			server.WaitListen(":8080")
			run.Signal(tt.signal)
			if got := <-left; !errors.Is(got, tt.want) {
				t.Errorf("the context to take leave in has the error %v, want %v", got, tt.want)
			}
			run.Wait()
		})
	}
}

// geo is a gRPC service that fails south of the equator.
type geo struct {
	hotelpb.UnimplementedGeoServer
}

func (geo) Nearby(_ context.Context, req *hotelpb.NearbyRequest) (*hotelpb.NearbyResult, error) {
	if req.Lat < 0 {
		return nil, fmt.Errorf("ask the store: %w", status.Error(codes.Unavailable, "it is down"))
	}
	return &hotelpb.NearbyResult{}, nil
}

func TestHTTPServer(t *testing.T) {
	w := kittest.New(t)
	server, user := w.Machine("web", "10.244.0.2"), w.Machine("user", "10.244.0.3")
	run := server.Start(func(ctx context.Context, env *kit.Env) error {
		s, err := New(ctx, env, Config{Name: "web"})
		if err != nil {
			return err
		}
		defer s.Close()
		mux := http.NewServeMux()
		s.HandleFunc(mux, "/ok", "/ok", time.Millisecond, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") })
		s.HandleFunc(mux, "/bad", "/bad", 0, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
		return s.ServeHTTP(ctx, mux, ":8080")
	}, "web")
	server.WaitListen(":8080")
	if got := kittest.Get(t, user, "http://web:8080/ok").Body; got != "yes" {
		t.Errorf("%q", got)
	}
	kittest.Get(t, user, "http://web:8080/bad")
	metrics := kittest.Get(t, user, fmt.Sprintf("http://web:%d/metrics", MetricsPort)).Body
	for _, want := range []string{
		`http_requests_total{code="200",handler="/ok",method="GET"} 1`,
		`http_requests_total{code="502",handler="/bad",method="GET"} 1`,
		`http_request_duration_seconds_count{code="200",handler="/ok",method="GET"} 1`,
		`process_cpu_seconds_total 0.001`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("told to stop, it exits %d", code)
	}
}

func TestGRPC(t *testing.T) {
	w := kittest.New(t)
	server, client := w.Machine("geo", "10.244.0.2"), w.Machine("search", "10.244.0.3")
	serve := func(ctx context.Context, env *kit.Env) error {
		s, err := New(ctx, env, Config{Name: "geo"})
		if err != nil {
			return err
		}
		defer s.Close()
		srv := s.GRPCServer(Costs{"Nearby": 2 * time.Millisecond})
		hotelpb.RegisterGeoServer(srv, geo{})
		return s.ServeGRPC(ctx, srv, ":8083", nil)
	}
	run := server.Start(serve, "geo")
	server.WaitListen(":8083")
	s, err := New(t.Context(), client.Env("search"), Config{Name: "search"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	conn, err := s.DialGRPC("passthrough:///geo:8083", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	c := hotelpb.NewGeoClient(conn)
	if _, err := c.Nearby(t.Context(), &hotelpb.NearbyRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Nearby(t.Context(), &hotelpb.NearbyRequest{Lat: -1}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "ask the store: ") {
		t.Errorf("a failure upstream: %v", err)
	}
	if !strings.Contains(run.Stdout.String(), "Nearby failed error=") {
		t.Errorf("the server logs %s", run.Stdout)
	}
	metrics := kittest.Get(t, client, fmt.Sprintf("http://geo:%d/metrics", MetricsPort)).Body
	if want := `grpc_server_handled_total{grpc_code="OK",grpc_method="Nearby",grpc_service="geo.Geo",grpc_type="unary"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}

	// A server that comes back is found again; in between the error says why it cannot be reached.
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("told to stop, it exits %d", code)
	}
	if _, err := c.Nearby(t.Context(), &hotelpb.NearbyRequest{}); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "connect: connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	server.Start(serve, "geo")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := c.Nearby(t.Context(), &hotelpb.NearbyRequest{}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestCached(t *testing.T) {
	w := kittest.New(t)
	cache, user := w.Machine("memcached", "10.244.0.2"), w.Machine("rate", "10.244.0.3")
	cache.User = kit.User{UID: 11211}
	run := cache.Start(memcached.Main, "memcached")
	cache.WaitListen(":11211")
	env := user.Env("rate")
	s, err := New(t.Context(), env, Config{Name: "rate"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := s.Memcached("memcached:11211")
	var loaded []string
	ask := func(keys ...string) map[string]int {
		t.Helper()
		loaded = nil
		m, err := Cached(t.Context(), s, c, keys, func(_ context.Context, missing []string) (map[string]int, error) {
			loaded = missing
			return map[string]int{"a": 1, "b": 2}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := ask("a", "b"); m["a"] != 1 || len(loaded) != 2 {
		t.Errorf("%v, loaded %v", m, loaded)
	}
	if m := ask("a", "b"); m["b"] != 2 || len(loaded) != 0 {
		t.Errorf("%v, loaded %v", m, loaded)
	}
	run.Signal(syscall.SIGKILL)
	run.Wait()
	if m := ask("a", "b"); m["b"] != 2 || len(loaded) != 2 {
		t.Errorf("without a cache: %v, loaded %v", m, loaded)
	}
	if out := env.Stdout.(*kittest.Buffer).String(); !strings.Contains(out, "Memcached error while trying to get") {
		t.Errorf("the log: %s", out)
	}
	if err := s.Store(t.Context(), "memcached", "get", func(context.Context) error { return memcache.ErrCacheMiss }); !errors.Is(err, memcache.ErrCacheMiss) {
		t.Errorf("%v", err)
	}
}
