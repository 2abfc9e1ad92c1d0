package aci

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/aiopslab/aiopslab/observe"
)

// The queries mean what they should to the real engine.
func TestQueries(t *testing.T) {
	storage := promqltest.LoadedStorage(t, `load 5s
  container_cpu_usage_seconds_total{namespace="shop",pod="geo-1",container="geo"} 0+0.5x60 31+1x20
  container_memory_working_set_bytes{namespace="shop",pod="geo-1",container="geo"} 100x60 300x20
  container_spec_memory_limit_bytes{namespace="shop",pod="geo-1",container="geo"} 400x81
  container_cpu_cfs_throttled_periods_total{namespace="shop",pod="geo-1",container="geo"} 0+1x81
  container_cpu_cfs_periods_total{namespace="shop",pod="geo-1",container="geo"} 0+4x81
  kube_pod_container_status_restarts_total{namespace="shop",pod="geo-1",container="geo"} 2x81
  container_network_receive_bytes_total{namespace="shop",pod="geo-1",interface="eth0"} 0+50x81
  container_network_transmit_bytes_total{namespace="shop",pod="geo-1",interface="eth0"} 0+5x81
  container_network_receive_packets_dropped_total{namespace="shop",pod="geo-1",interface="eth0"} 0x81
  container_network_transmit_packets_dropped_total{namespace="shop",pod="geo-1",interface="eth0"} 0+5x81
  http_requests_total{namespace="shop",service="frontend",code="200"} 0+45x81
  http_requests_total{namespace="shop",service="frontend",code="503"} 0+5x81
  http_requests_total{namespace="other",service="else",code="503"} 0+5x81
  grpc_server_handled_total{namespace="shop",service="geo",grpc_code="OK"} 0+10x81
  grpc_server_handled_total{namespace="shop",service="geo",grpc_code="Internal"} 0+10x81
  grpc_server_handling_seconds_bucket{namespace="shop",service="geo",le="0.1"} 0+20x81
  grpc_server_handling_seconds_bucket{namespace="shop",service="geo",le="+Inf"} 0+20x81
  http_request_duration_seconds_bucket{namespace="shop",service="frontend",le="1"} 0+50x81
  http_request_duration_seconds_bucket{namespace="shop",service="frontend",le="+Inf"} 0+50x81
  store_request_duration_seconds_count{namespace="shop",service="geo",result="error"} 0+1x81
  store_request_duration_seconds_count{namespace="shop",service="geo",result="ok"} 0+3x81
`)
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	now := time.Unix(0, 0).Add(400 * time.Second)
	expand := placeholders(observe.Window{Namespace: "shop", From: now.Add(-5 * time.Minute), To: now})
	want := map[string]string{
		"cpu.now": "geo-1 0.2", "cpu.before": "geo-1 0.117", "memory": "geo-1 300", "memory.start": "geo-1 100", "limit": "geo-1 400", "throttled": "geo-1 0.25",
		"restarts": "geo-1 2", "restarted": "geo-1 0", "receive": "geo-1 10", "transmit": "geo-1 1", "dropped": "geo-1 1",
		"requests": "frontend 10 geo 4", "requests.before": "frontend 10 geo 4", "errors": "frontend 1 geo 2", "latency": "frontend 0.95 geo 0.095",
		"latency.before": "frontend 0.95 geo 0.095", "store.errors": "geo 0.25",
	}
	for name, query := range queries {
		q, err := engine.NewInstantQuery(t.Context(), storage, nil, expand.Replace(query), now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		vector, err := q.Exec(t.Context()).Vector()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := samples(vector); want[name] != "" && got != want[name] {
			t.Errorf("%s: %s, want %s", name, got, want[name])
		}
		if len(vector) == 0 {
			t.Errorf("%s has no result", name)
		}
		q.Close()
	}
}

func samples(v promql.Vector) string {
	text := ""
	for _, s := range v {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf("%s%s %v", s.Metric.Get("pod"), s.Metric.Get("service"), math.Round(1000*s.F)/1000)
	}
	return text
}
