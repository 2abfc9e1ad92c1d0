package sql

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what a server counts, under TiDB's names.
type metrics struct {
	exposed  prometheus.Gatherer
	queries  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidb_server_query_total", Help: "Counter of queries.",
		}, []string{"type", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tidb_server_handle_query_duration_seconds", Help: "Histogram of the processing time of queries.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{"sql_type"}),
	}
	registry := prometheus.NewRegistry()
	m.exposed = s.env.Remembering(registry)
	registry.MustRegister(m.queries, m.duration, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidb_server_connections", Help: "Number of connections.",
	}, func() float64 { return float64(s.connections()) }))
	return m
}

// done counts a statement.
func (m *metrics) done(kind string, d time.Duration, err error) {
	result := "OK"
	if err != nil {
		result = "Error"
	}
	m.queries.WithLabelValues(kind, result).Inc()
	m.duration.WithLabelValues(kind).Observe(d.Seconds())
}

func (s *Server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// status serves what the server tells of itself.
func (s *Server) status() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"connections": s.connections(), "version": s.mysqlVersion(), "git_hash": "",
		})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.exposed, promhttp.HandlerOpts{}))
	return mux
}

// variables are the system variables there are.
func (s *Server) variables() map[string]string {
	list := map[string]string{
		"version":                       s.mysqlVersion(),
		"version_comment":               "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
		"max_allowed_packet":            strconv.Itoa(maxPacket),
		"sql_mode":                      "STRICT_TRANS_TABLES",
		"tx_isolation":                  "READ-COMMITTED",
		"transaction_isolation":         "READ-COMMITTED",
		"character_set_client":          "utf8mb4",
		"character_set_connection":      "utf8mb4",
		"character_set_results":         "utf8mb4",
		"character_set_server":          "utf8mb4",
		"collation_connection":          "utf8mb4_bin",
		"collation_server":              "utf8mb4_bin",
		"time_zone":                     "SYSTEM",
		"system_time_zone":              "UTC",
		"port":                          strconv.Itoa(Port),
		"hostname":                      s.env.Hostname,
		"max_connections":               strconv.Itoa(maxConnections),
		"wait_timeout":                  "28800",
		"interactive_timeout":           "28800",
		"innodb_lock_wait_timeout":      "3",
		"lower_case_table_names":        "0",
		"tidb_current_ts":               s.timestamp(),
		"net_write_timeout":             "60",
		"auto_increment_increment":      "1",
		"license":                       "Apache License 2.0",
		"init_connect":                  "",
		"query_cache_size":              "0",
		"query_cache_type":              "OFF",
		"performance_schema":            "OFF",
		"net_buffer_length":             "16384",
		"tidb_idle_transaction_timeout": "2",
	}
	if s.pd == nil {
		list["version_comment"], list["port"] = "MySQL Community Server", strconv.Itoa(MySQLPort)
		delete(list, "tidb_current_ts")
		delete(list, "tidb_idle_transaction_timeout")
		delete(list, "license")
	}
	return list
}

func (s *Server) timestamp() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.tso, 10)
}

// statusVariables are what SHOW STATUS shows.
func (s *Server) statusVariables() map[string]string {
	return map[string]string{
		"Uptime": strconv.FormatInt(seconds(s.env.Since()), 10), "Threads_connected": strconv.Itoa(s.connections()),
		"server_id": s.env.Hostname,
	}
}
