package kv

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// status serves what a store tells of itself: /status, /config and /metrics.
func (s *Store) status(version string) http.Handler {
	reg := prometheus.NewRegistry()
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			return f()
		}))
	}
	gauge("tikv_raftstore_leader", "Whether the store leads the region.", func() float64 {
		if s.leader == s.ID {
			return 1
		}
		return 0
	})
	gauge("tikv_raftstore_applied_index", "The index of the last entry that was applied.",
		func() float64 { return float64(s.applied) })
	gauge("tikv_raftstore_term", "The term of the region.", func() float64 { return float64(s.term) })
	gauge("tikv_raftstore_region_peers", "The members of the region.", func() float64 { return float64(len(s.peers)) })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{
			"version": strings.TrimPrefix(version, "v"), "store_id": s.ID, "leader": s.peers[s.leader],
			"is_leader": s.leader == s.ID, "term": s.term, "applied_index": s.applied, "peers": len(s.peers),
		})
	})
	return mux
}
