package workload

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters and histograms a load exposes to Prometheus.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics(mix *Mix) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "workload_requests_total",
			Help: "Requests by operation and result: ok, or the class of failure.",
		}, []string{"operation", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "workload_request_duration_seconds",
			Help:    "Latency of successful requests, from when they were wanted.",
			Buckets: prometheus.ExponentialBucketsRange(0.0005, 30, 24),
		}, []string{"operation"}),
	}
	for _, o := range mix.Operations { // A counter that begins at 0 has a rate from its first event.
		m.requests.WithLabelValues(o.Name, "ok")
	}
	return m
}

func (m *metrics) record(operation string, o outcome) {
	if o.failure != "" {
		m.requests.WithLabelValues(operation, string(o.failure)).Inc()
		return
	}
	m.requests.WithLabelValues(operation, "ok").Inc()
	m.latency.WithLabelValues(operation).Observe(o.latency.Seconds())
}

var (
	inFlightDesc = prometheus.NewDesc("workload_in_flight", "Requests under way.", nil, nil)
	lagDesc      = prometheus.NewDesc("workload_lag_seconds", "How late the generator itself began with requests.", []string{"quantile"}, nil)
	rateDesc     = prometheus.NewDesc("workload_sli_rate", "Requests per second over a window.", []string{"operation", "window"}, nil)
	successDesc  = prometheus.NewDesc("workload_sli_success_ratio", "Part of the requests that succeeded over a window.", []string{"operation", "window"}, nil)
	latencyDesc  = prometheus.NewDesc("workload_sli_latency_seconds", "Latency over a window.", []string{"operation", "window", "quantile"}, nil)
)

var _ prometheus.Collector = (*Generator)(nil)

// Describe implements prometheus.Collector.
func (g *Generator) Describe(ch chan<- *prometheus.Desc) {
	g.metrics.requests.Describe(ch)
	g.metrics.latency.Describe(ch)
	for _, d := range []*prometheus.Desc{inFlightDesc, lagDesc, rateDesc, successDesc, latencyDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *Generator) Collect(ch chan<- prometheus.Metric) {
	g.metrics.requests.Collect(ch)
	g.metrics.latency.Collect(ch)
	s := g.Snapshot()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(inFlightDesc, float64(s.InFlight))
	gauge(lagDesc, s.Lag.P50.Seconds(), "0.5")
	gauge(lagDesc, s.Lag.P99.Seconds(), "0.99")
	for _, w := range s.Windows {
		for _, i := range w.Operations {
			gauge(rateDesc, i.Rate, i.Operation, w.Name)
			if i.Requests == 0 {
				continue // There is nothing to tell a ratio or a latency of.
			}
			gauge(successDesc, i.Success, i.Operation, w.Name)
			if i.Failed == i.Requests {
				continue
			}
			for q, v := range map[string]time.Duration{"0.5": i.P50, "0.95": i.P95, "0.99": i.P99} {
				gauge(latencyDesc, v.Seconds(), i.Operation, w.Name, q)
			}
		}
	}
}
