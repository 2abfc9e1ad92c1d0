package jaeger

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// maxMessage is the largest batch of spans that is taken, in bytes.
const maxMessage = 4 << 20

// Image returns the image.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"jaegertracing/all-in-one"},
		Tags:       `latest|1(\.\d+){0,2}`,
		Entrypoint: []string{"/go/bin/all-in-one-linux"},
		Cmd:        []string{"--sampling.strategies-file=/etc/jaeger/sampling_strategies.json"},
		Programs:   map[string]kit.Program{"/go/bin/all-in-one-linux": Main},
		Files:      map[string]string{"/etc/jaeger/sampling_strategies.json": "{}\n", "/tmp/": ""},
		User:       "10001",
		Memory:     24 << 20,
		Size:       68_000_000,
	}
}

// options are the command line. As in the original, each may be set by a variable too:
// --memory.max-traces by MEMORY_MAX_TRACES.
type options struct {
	maxTraces int
	maxBytes  int64
	grpc      string
	http      string
	query     string
	admin     string
	basePath  string
}

func parseFlags(env *kit.Env) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("all-in-one", flag.ContinueOnError)
	f.SetOutput(env.Stderr)
	f.IntVar(&o.maxTraces, "memory.max-traces", 0,
		"The maximum amount of traces to store in memory. The default number of traces is unbounded.")
	f.Int64Var(&o.maxBytes, "memory.max-bytes", 32<<20, "The memory that stored traces may take, in bytes.")
	f.StringVar(&o.grpc, "collector.otlp.grpc.host-port", ":4317", "The host:port of the collector's OTLP gRPC server")
	f.StringVar(&o.http, "collector.otlp.http.host-port", ":4318", "The host:port of the collector's OTLP HTTP server")
	f.StringVar(&o.query, "query.http-server.host-port", ":16686", "The host:port of the query's HTTP server")
	f.StringVar(&o.admin, "admin.http.host-port", ":14269",
		"The host:port for the admin server, including health check and /metrics")
	f.StringVar(&o.basePath, "query.base-path", "/", "The base path for all HTTP routes, e.g. /jaeger")
	f.Bool("collector.otlp.enabled", true, "Enables OpenTelemetry OTLP receiver; it always is")
	f.String("collector.zipkin.host-port", "", "The host:port of the collector's Zipkin server; there is none")
	f.String("sampling.strategies-file", "", "The path for the sampling strategies file; clients decide here")
	f.String("span-storage.type", "memory", "The storage type; there is only memory")
	f.String("log-level", "info", "Minimal allowed log level")
	var bad error
	f.VisitAll(func(fl *flag.Flag) {
		name := strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToUpper(fl.Name))
		if v, ok := env.Vars[name]; ok {
			if err := fl.Value.Set(v); err != nil {
				bad = fmt.Errorf("invalid value %q for %s: %w", v, name, err)
			}
		}
	})
	if bad != nil {
		return nil, bad
	}
	if err := f.Parse(env.Args[1:]); err != nil {
		return nil, kit.Exit(1)
	}
	return o, nil
}

// Main is the program.
func Main(ctx context.Context, env *kit.Env) error {
	o, err := parseFlags(env)
	if err != nil {
		return err
	}
	s := &server{env: env, store: newStore(o.maxTraces, o.maxBytes), started: env.Since()}
	env.Keep(kit.NotKept)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	listen := func(what, address string, serve func(net.Listener) error, stop func()) error {
		ln, err := env.Net.Listen("tcp", address)
		if err != nil {
			cancel()
			return err
		}
		s.log("info", "Starting "+what+" server", map[string]any{"host-port": address})
		context.AfterFunc(ctx, stop)
		wg.Go(func() { _ = serve(ln) })
		return nil
	}
	rpc := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	collector.RegisterTraceServiceServer(rpc, s)
	err = errors.Join(
		listen("OTLP GRPC", o.grpc, rpc.Serve, rpc.Stop),
		s.http(listen, "OTLP HTTP", o.http, s.receiverRoutes()),
		s.http(listen, "query HTTP", o.query, s.whenRecalled(s.queryRoutes(o.basePath))),
		s.http(listen, "admin", o.admin, s.adminRoutes()),
	)
	if err != nil {
		return err
	}
	env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		s.recalling.Lock()
		wg.Go(func() { s.recall(ctx, p) })
		return nil
	})
	s.log("info", "Health Check state change", map[string]any{"status": "ready"})
	<-ctx.Done()
	return nil
}

// server is a running Jaeger.
type server struct {
	collector.UnimplementedTraceServiceServer
	env     *kit.Env
	store   *store
	started time.Time

	recalling sync.RWMutex // held while traces of the past are made

	logging sync.Mutex
	held    held
}

func (s *server) http(listen func(string, string, func(net.Listener) error, func()) error, what, address string,
	h http.Handler,
) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	return listen(what, address, srv.Serve, func() { srv.Close() })
}

// log writes a line as the original's logger does.
func (s *server) log(level, msg string, fields map[string]any) {
	line := map[string]any{"level": level, "ts": float64(time.Now().UnixMicro()) / 1e6, "msg": msg}
	for k, v := range fields {
		line[k] = v
	}
	b, _ := json.Marshal(line)
	s.logging.Lock()
	defer s.logging.Unlock()
	_, _ = s.env.Stderr.Write(append(b, '\n'))
}

func (s *server) adminRoutes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{
			"status": "Server available", "upSince": s.started.Format(time.RFC3339Nano),
			"uptime": time.Since(s.started).String(),
		})
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		c := s.store.counts()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, x := range []struct {
			name, kind, help string
			value            int64
		}{
			{"jaeger_collector_spans_received_total", "counter", "Spans received.", c.received},
			{"jaeger_memory_spans", "gauge", "Spans held.", c.spans},
			{"jaeger_memory_traces", "gauge", "Traces held.", c.traces},
			{"jaeger_memory_bytes", "gauge", "Memory the traces take.", c.bytes},
			{"jaeger_memory_traces_evicted_total", "counter", "Traces dropped to make room.", c.evicted},
		} {
			fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", x.name, x.help, x.name, x.kind, x.name, x.value)
		}
	})
	return m
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// held keeps the container's ledger in step with what the store holds.
type held struct {
	mu sync.Mutex
	n  int64
}

func (h *held) set(m kit.Memory, n int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := m.Add(n - h.n)
	h.n = n
	return err
}

func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err == nil && len(b) > maxMessage {
		err = fmt.Errorf("a request may have %d bytes", maxMessage)
	}
	return b, err
}
