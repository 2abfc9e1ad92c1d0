package flagd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"buf.build/gen/go/open-feature/flagd/grpc/go/flagd/evaluation/v1/evaluationv1grpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
)

// maxConns is how many connections each port takes.
const maxConns = 500

// daemon is flagd.
type daemon struct {
	env      *kit.Env
	log      *journal
	settings settings
	meter    *meter.Meter
	flags    *flags
	metrics  prometheus.Gatherer
	asked    *prometheus.CounterVec
	reasons  *prometheus.CounterVec
	ready    atomic.Bool
	done     chan struct{} // closed when the daemon is about to end
}

// Main is flagd.
func Main(ctx context.Context, env *kit.Env) error {
	args := env.Args[1:]
	switch {
	case len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h":
		fmt.Fprint(env.Stdout, usage)
		return nil
	case args[0] == "version":
		fmt.Fprintf(env.Stdout, "flagd %s\n", Version)
		return nil
	case args[0] != "start":
		fmt.Fprintf(env.Stderr, "Error: unknown command %q for \"flagd\"\nRun 'flagd --help' for usage.\n", args[0])
		return kit.Exit(1)
	}
	d := &daemon{env: env, meter: meter.New(env.CPU), done: make(chan struct{})}
	if err := d.settings.read(env, args[1:]); errors.Is(err, pflag.ErrHelp) {
		_, text, _ := strings.Cut(err.Error(), "\n")
		fmt.Fprint(env.Stdout, text)
		return nil
	} else if err != nil {
		fmt.Fprintf(env.Stderr, "Error: %v\n", err)
		return kit.Exit(1)
	}
	d.log = &journal{out: env.Stdout, json: d.settings.json}
	return d.run(ctx)
}

func (d *daemon) run(ctx context.Context) error {
	holder := kit.NewHolder(d.env)
	defer holder.Release()
	d.log.info("flagd version: %s", Version)
	var err error
	if d.flags, err = newFlags(d.env, d.log, holder, d.settings.files); err != nil {
		return err
	}
	if err := d.flags.load(); err != nil {
		d.log.error("%v", err)
		return kit.Exit(1)
	}
	d.startCounting()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 3)
	var servers []*http.Server
	defer func() {
		close(d.done)
		for _, s := range servers {
			d.shutdown(s)
		}
	}()
	s := service{d}
	for _, one := range []struct {
		what    string
		port    uint16
		handler http.Handler
	}{
		{"Flag IResolver", d.settings.port, d.evaluation(s)},
		{"ofrep service", d.settings.ofrep, s.ofrep()},
		{"metrics and probes", d.settings.management, d.management()},
	} {
		ln, err := d.env.Net.Listen("tcp", fmt.Sprintf(":%d", one.port))
		if err != nil {
			d.log.error("cannot listen: %v", err)
			return kit.Exit(1)
		}
		srv := newServer(one.handler)
		servers = append(servers, srv)
		d.log.info("%s listening at [::]:%d", one.what, one.port)
		wg.Go(func() {
			if err := kit.IgnoreClosed(srv.Serve(netutil.LimitListener(ln, maxConns))); err != nil {
				failed <- err
			}
		})
	}
	wg.Go(func() { d.flags.watch(ctx) })
	d.ready.Store(true)
	select {
	case err := <-failed:
		d.log.error("cannot serve: %v", err)
		return kit.Exit(1)
	case <-ctx.Done():
		d.log.info("Shutting down")
		return nil
	}
}

// shutdownTimeout is how long those who are served may take at the end.
const shutdownTimeout = time.Second

func (*daemon) shutdown(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		s.Close()
	}
}

// newServer speaks HTTP/1.1, and HTTP/2 without TLS to those who begin with it, as gRPC does.
func newServer(h http.Handler) *http.Server {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: h, Protocols: &p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 100},
	}
}

// evaluation serves gRPC and Connect on one port.
func (d *daemon) evaluation(s service) http.Handler {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest))
	evaluationv1grpc.RegisterServiceServer(g, s)
	old := evaluationv1grpc.Service_ServiceDesc
	old.ServiceName = oldServiceName
	g.RegisterService(&old, s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			g.ServeHTTP(w, r)
			return
		}
		s.connect(w, r)
	})
}

// startCounting makes the counters.
func (d *daemon) startCounting() {
	registry := prometheus.NewRegistry()
	d.metrics = d.env.Remembering(registry)
	d.asked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "feature_flag_flagd_impression_total", Help: "Evaluations by flag and variant.",
	}, []string{"feature_flag_key", "feature_flag_variant", "feature_flag_reason"})
	d.reasons = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "feature_flag_flagd_result_reason_total", Help: "Evaluations by reason.",
	}, []string{"feature_flag_reason"})
	registry.MustRegister(d.asked, d.reasons)
}

// count notes an evaluation. Flags that nobody has defined have no counter of their own.
func (d *daemon) count(key, variant, reason string, err error) {
	if err != nil {
		reason = "ERROR"
	} else {
		d.asked.WithLabelValues(key, variant, reason).Inc()
	}
	d.reasons.WithLabelValues(reason).Inc()
}

// management serves probes and metrics.
func (d *daemon) management() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !d.ready.Load() {
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.metrics, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	return mux
}
