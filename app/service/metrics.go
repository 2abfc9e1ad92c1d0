package service

import (
	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// buckets of durations, in seconds.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics are what every service counts.
type metrics struct {
	registry *prometheus.Registry
	exposed  *past.Gatherer // the registry, with what was counted before it
	grpc     *grpcprom.ServerMetrics
	client   *grpcprom.ClientMetrics
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	store    *prometheus.HistogramVec
}

func newMetrics(env *kit.Env) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		grpc: grpcprom.NewServerMetrics(
			grpcprom.WithServerHandlingTimeHistogram(grpcprom.WithHistogramBuckets(buckets))),
		client: grpcprom.NewClientMetrics(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "HTTP requests served, by handler, method and status code.",
		}, []string{"handler", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "How long HTTP requests took.", Buckets: buckets,
		}, []string{"handler", "method", "code"}),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "store_request_duration_seconds", Help: "How long requests to stores took.", Buckets: buckets,
		}, []string{"system", "operation", "result"}),
	}
	m.exposed = env.Remembering(m.registry)
	m.registry.MustRegister(m.grpc, m.client, m.requests, m.duration, m.store,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "process_start_time_seconds", Help: "When the process started, in seconds since the epoch.",
		}, func() float64 { return float64(env.Started.UnixMilli()) / 1e3 }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "process_cpu_seconds_total", Help: "CPU time spent.",
		}, func() float64 { return env.CPU.Info().Used.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "process_resident_memory_bytes", Help: "Resident memory.",
		}, func() float64 { return float64(env.Memory.Info().Used) }),
	)
	return m
}
