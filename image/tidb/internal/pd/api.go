package pd

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aiopslab/aiopslab/image/tidb/internal/kv"
)

// pathGossip is where members tell each other what they know.
const pathGossip = "/pd/internal/members"

// requestCost is the CPU time that a request is stated to take.
const requestCost = 50 * time.Microsecond

// maxBody bounds a request.
const maxBody = 1 << 20

// gossip is what one member tells another.
type gossip struct {
	From   string `json:"from"`
	Shared shared `json:"shared"`
}

// handler serves PD's API on the client's port.
func (p *server) handler() http.Handler {
	mux := http.NewServeMux()
	s := p.state
	mux.HandleFunc("GET /pd/api/v1/members", func(w http.ResponseWriter, _ *http.Request) {
		answer := map[string]any{"header": p.header(), "members": s.members()}
		if l := s.leader(); l != nil {
			answer["leader"], answer["etcd_leader"] = l, l
		}
		write(w, answer)
	})
	mux.HandleFunc("DELETE /pd/api/v1/members/name/{name}", func(w http.ResponseWriter, r *http.Request) {
		if !s.remove(r.PathValue("name")) {
			http.Error(w, fmt.Sprintf("not found, pd: %s", r.PathValue("name")), http.StatusNotFound)
			return
		}
		p.log.Info("removed, pd", "name", r.PathValue("name"))
		write(w, "removed, pd: "+r.PathValue("name"))
	})
	mux.HandleFunc("GET /pd/api/v1/leader", func(w http.ResponseWriter, _ *http.Request) {
		l := s.leader()
		if l == nil {
			http.Error(w, "no leader", http.StatusServiceUnavailable)
			return
		}
		write(w, l)
	})
	for _, path := range []string{"GET /pd/api/v1/health", "GET /health"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { write(w, s.health()) })
	}
	mux.HandleFunc("GET /pd/api/v1/stores", func(w http.ResponseWriter, _ *http.Request) {
		list := s.listed()
		write(w, map[string]any{"count": len(list), "stores": list})
	})
	mux.HandleFunc("GET /pd/api/v1/store/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, st := range s.listed() {
			if strconv.FormatUint(st.Store.ID, 10) == r.PathValue("id") {
				write(w, st)
				return
			}
		}
		http.Error(w, fmt.Sprintf("store %s not found", r.PathValue("id")), http.StatusNotFound)
	})
	mux.HandleFunc("DELETE /pd/api/v1/store/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
		if err != nil || !s.leave(id) {
			http.Error(w, fmt.Sprintf("store %s not found", r.PathValue("id")), http.StatusNotFound)
			return
		}
		p.log.Print("WARN", "store has been offline", "store-id", id)
		write(w, "The store is set as Offline.")
	})
	mux.HandleFunc("GET /pd/api/v1/regions", func(w http.ResponseWriter, _ *http.Request) { write(w, s.regions()) })
	mux.HandleFunc("GET /pd/api/v1/stats/region", func(w http.ResponseWriter, _ *http.Request) { write(w, s.stats()) })
	mux.HandleFunc("GET /pd/api/v1/cluster", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{"id": p.header()["cluster_id"], "max_peer_count": 3})
	})
	mux.HandleFunc("GET /pd/api/v1/cluster/status", func(w http.ResponseWriter, _ *http.Request) {
		t := s.tell()
		write(w, map[string]any{
			"raft_bootstrap_time": time.Unix(t.Bootstrapped, 0).UTC(), "is_initialized": t.Bootstrapped != 0,
			"replication_status": "",
		})
	})
	for _, path := range []string{"GET /pd/api/v1/version", "GET /pd/api/v1/status"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			write(w, map[string]any{"version": p.version, "start_timestamp": p.env.Since().Unix()})
		})
	}
	p.schedulers(mux)
	mux.HandleFunc("GET "+kv.PathTSO, p.serveTSO)
	mux.HandleFunc("POST "+kv.PathStore, func(w http.ResponseWriter, r *http.Request) {
		var report kv.StoreReport
		if !read(w, r, &report) || report.ID == 0 {
			return
		}
		write(w, s.report(report))
	})
	mux.HandleFunc("POST "+pathGossip, func(w http.ResponseWriter, r *http.Request) {
		var g gossip
		if !read(w, r, &g) {
			return
		}
		s.learn(g.From, g.Shared)
		write(w, gossip{p.state.me.Name, s.tell()})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(p.metrics(), promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.env.CPU.Use(r.Context(), requestCost) == nil {
			mux.ServeHTTP(w, r)
		}
	})
}

// serveTSO tells the time, as the leader alone may.
func (p *server) serveTSO(w http.ResponseWriter, _ *http.Request) {
	if l := p.state.leader(); l == nil || l.Name != p.state.me.Name {
		http.Error(w, "not leader", http.StatusServiceUnavailable)
		return
	}
	write(w, kv.Timestamp{TSO: uint64(time.Now().UnixMilli()) << 18, Cluster: p.state.tell().Cluster})
}

func (p *server) header() map[string]any { return map[string]any{"cluster_id": p.state.tell().Cluster} }

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v)
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

type memberHealth struct {
	Name       string   `json:"name"`
	MemberID   uint64   `json:"member_id"`
	ClientURLs []string `json:"client_urls"`
	Health     bool     `json:"health"`
}

func (s *state) health() (list []memberHealth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.sorted() {
		list = append(list, memberHealth{m.Name, m.MemberID, m.ClientURLs, s.healthy(m.Name)})
	}
	return list
}

// storeInfo is a store as the API has it.
type storeInfo struct {
	Store struct {
		ID             uint64 `json:"id"`
		Address        string `json:"address"`
		Version        string `json:"version"`
		StatusAddress  string `json:"status_address"`
		StartTimestamp int64  `json:"start_timestamp"`
		LastHeartbeat  int64  `json:"last_heartbeat"`
		StateName      string `json:"state_name"`
	} `json:"store"`
	Status struct {
		Capacity        string `json:"capacity"`
		Available       string `json:"available"`
		UsedSize        string `json:"used_size"`
		LeaderCount     int    `json:"leader_count"`
		RegionCount     int    `json:"region_count"`
		StartTS         string `json:"start_ts"`
		LastHeartbeatTS string `json:"last_heartbeat_ts"`
		Uptime          string `json:"uptime"`
	} `json:"status"`
}

// listed are the stores by ID. One whose end is long past is not shown.
func (s *state) listed() []storeInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []storeInfo{}
	for _, id := range slices.Sorted(maps.Keys(s.stores)) {
		st := s.stores[id]
		var i storeInfo
		i.Store.ID, i.Store.Address, i.Store.Version = st.ID, st.Address, st.Version
		i.Store.StatusAddress, i.Store.StartTimestamp = st.StatusAddress, st.Started
		i.Store.LastHeartbeat, i.Store.StateName = st.last.UnixNano(), s.stateOf(st)
		if i.Store.StateName == storeTombstone {
			continue
		}
		i.Status.Capacity, i.Status.Available = bytesText(st.Capacity), bytesText(st.Available)
		i.Status.UsedSize = bytesText(st.Used)
		i.Status.StartTS = time.Unix(st.Started, 0).UTC().Format(time.RFC3339)
		i.Status.LastHeartbeatTS = st.last.UTC().Format(time.RFC3339Nano)
		i.Status.Uptime = st.last.Sub(time.Unix(st.Started, 0)).Round(time.Second).String()
		if st.Leader {
			i.Status.LeaderCount = 1
		}
		if st.Member {
			i.Status.RegionCount = 1
		}
		list = append(list, i)
	}
	return list
}

// leading is the store that says it leads, with the highest term.
func (s *state) leading() (leader *store) {
	for _, st := range s.stores {
		if st.Leader && s.now().Sub(st.last) < connectedFor && (leader == nil || st.Term > leader.Term) {
			leader = st
		}
	}
	return leader
}

func (s *state) regions() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leading()
	if l == nil {
		return map[string]any{"count": 0, "regions": []any{}}
	}
	var peers []any
	var lead any
	for i, p := range l.Peers {
		peer := map[string]any{"id": i + 3, "store_id": p.ID, "role_name": "Voter"}
		if peers = append(peers, peer); p.ID == l.ID {
			lead = peer
		}
	}
	return map[string]any{"count": 1, "regions": []any{map[string]any{
		"id": 2, "start_key": "", "end_key": "", "epoch": map[string]any{"version": l.Term, "conf_ver": len(l.Peers)},
		"peers": peers, "leader": lead,
	}}}
}

func (s *state) stats() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := map[string]any{"count": 0, "empty_count": 0}
	if l := s.leading(); l != nil {
		perStore := map[string]int{}
		for _, p := range l.Peers {
			perStore[strconv.FormatUint(p.ID, 10)] = 1
		}
		answer["count"], answer["store_peer_count"] = 1, perStore
		answer["store_leader_count"] = map[string]int{strconv.FormatUint(l.ID, 10): 1}
	}
	return answer
}

// bytesText is a size as PD writes it.
func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'g', 4, 64), ".0") + units[u]
}

func (p *server) metrics() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	count := func(name, help string, f func() int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
			func() float64 { return float64(f()) }))
	}
	count("pd_cluster_members", "The members of the PD cluster.", func() int { return len(p.state.members()) })
	count("pd_cluster_healthy_members", "The members of the PD cluster that answer.", func() (n int) {
		for _, h := range p.state.health() {
			if h.Health {
				n++
			}
		}
		return n
	})
	count("pd_server_is_leader", "Whether this server leads.", func() int {
		if l := p.state.leader(); l != nil && l.Name == p.state.me.Name {
			return 1
		}
		return 0
	})
	for _, name := range []string{storeUp, storeDisconnected, storeDown, storeOffline} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pd_cluster_status", Help: "The stores of the cluster.",
			ConstLabels: prometheus.Labels{"type": "store_" + strings.ToLower(name) + "_count"},
		}, func() float64 {
			n := 0
			for _, st := range p.state.listed() {
				if st.Store.StateName == name {
					n++
				}
			}
			return float64(n)
		}))
	}
	return reg
}
