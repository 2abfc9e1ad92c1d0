package prometheus

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aiopslab/aiopslab/kit/page"
)

//go:embed page.html
var html string

// shutdownTimeout is how long requests may take to end.
const shutdownTimeout = time.Second

// serve serves HTTP until the context ends.
func (s *server) serve(ctx context.Context, ln net.Listener) {
	srv := &http.Server{Handler: s.routes()}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		end, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if srv.Shutdown(end) != nil {
			_ = srv.Close()
		}
	})
	_ = srv.Serve(ln)
	if !stop() {
		<-stopped
	}
	s.quit() // Without its API the server is of no use.
}

func (s *server) routes() http.Handler {
	m := http.NewServeMux()
	m.Handle("/api/v1/", s.apiRoutes())
	m.Handle("GET /metrics", promhttp.HandlerFor(s, promhttp.HandlerOpts{}))
	m.HandleFunc("/-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Prometheus Server is Healthy.")
	})
	m.HandleFunc("/-/ready", s.whenReady(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Prometheus Server is Ready.")
	}))
	m.HandleFunc("POST /-/reload", s.lifecycle(s.reload))
	m.HandleFunc("PUT /-/reload", s.lifecycle(s.reload))
	m.HandleFunc("POST /-/quit", s.lifecycle(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "Requesting termination... Goodbye!")
		s.quit()
	}))
	shown := page.New(html)
	for _, path := range []string{"/{$}", "/query", "/graph", "/alerts", "/targets"} { // as Prometheus' own
		m.Handle("GET "+path, shown)
	}
	return m
}

func (s *server) lifecycle(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.opts.lifecycle {
			http.Error(w, "Lifecycle API is not enabled.", http.StatusForbidden)
			return
		}
		h(w, r)
	}
}

func (s *server) reload(w http.ResponseWriter, r *http.Request) {
	answer := make(chan error, 1)
	select {
	case s.reloads <- answer:
	case <-r.Context().Done():
		return
	}
	if err := <-answer; err != nil {
		http.Error(w, "failed to reload config: "+err.Error(), http.StatusInternalServerError)
	}
}

func (s *server) whenReady(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			w.Header().Set("X-Prometheus-Stopping", "false")
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
			return
		}
		h(w, r)
	}
}

// registerProcess registers what the container tells about the process.
func (s *server) registerProcess() {
	loaded := func(f func() float64) func() float64 {
		return func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return f()
		}
	}
	s.reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "process_start_time_seconds",
			Help: "Start time of the process since unix epoch in seconds.",
		},
			func() float64 { return float64(s.env.Started.UnixMilli()) / 1e3 }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "process_cpu_seconds_total",
			Help: "Total user and system CPU time spent in seconds.",
		},
			func() float64 { return s.env.CPU.Info().Used.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "process_resident_memory_bytes",
			Help: "Resident memory size in bytes.",
		},
			func() float64 { return float64(s.env.Memory.Info().Used) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "prometheus_build_info",
			Help:        "A metric with a constant '1' value.",
			ConstLabels: prometheus.Labels{"version": Version, "goversion": runtime.Version()},
		},
			func() float64 { return 1 }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "prometheus_config_last_reload_successful",
			Help: "Whether the last configuration reload attempt was successful.",
		},
			loaded(func() float64 {
				if s.loadedOK {
					return 1
				}
				return 0
			})),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "prometheus_config_last_reload_success_timestamp_seconds",
			Help: "Timestamp of the last successful configuration reload.",
		},
			loaded(func() float64 { return float64(s.loadedAt.Unix()) })),
	)
}
