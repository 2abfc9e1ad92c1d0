package redis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// stats are the server's counters.
type stats struct {
	connections, rejected, processed int64
	expired, evicted, hits, misses   int64
	peak                             int64
	input, output                    atomic.Int64
	errors                           map[string]int64
	commands                         map[string]*commandStats

	sampled    time.Time // for rates
	at         rates
	opsPerSec  int64
	kbIn, kbUp float64
}

type rates struct{ processed, input, output int64 }

type commandStats struct {
	calls, failed int64
	took          time.Duration
}

// sample measures the rates over the last second or so.
func (s *stats) sample(now time.Time) {
	if d := now.Sub(s.sampled).Seconds(); d >= 1 {
		n := rates{s.processed, s.input.Load(), s.output.Load()}
		if !s.sampled.IsZero() {
			s.opsPerSec = int64(float64(n.processed-s.at.processed) / d)
			s.kbIn = float64(n.input-s.at.input) / 1024 / d
			s.kbUp = float64(n.output-s.at.output) / 1024 / d
		}
		s.sampled, s.at = now, n
	}
}

func (s *stats) reset() {
	s.connections, s.rejected, s.processed, s.expired, s.evicted, s.hits, s.misses = 0, 0, 0, 0, 0, 0, 0
	s.input.Store(0)
	s.output.Store(0)
	s.errors, s.commands = map[string]int64{}, map[string]*commandStats{}
	s.at = rates{}
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// human is a number of bytes as redis writes it.
func human(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if n >= u.size {
			return fmt.Sprintf("%.2f%s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// sections are the parts of INFO. The last ones are only shown if asked for.
var sections = []struct {
	name  string
	extra bool
	write func(*instance, func(string, any))
}{
	{"server", false, (*instance).infoServer},
	{"clients", false, (*instance).infoClients},
	{"memory", false, (*instance).infoMemory},
	{"persistence", false, (*instance).infoPersistence},
	{"stats", false, (*instance).infoStats},
	{"replication", false, (*instance).infoReplication},
	{"cpu", false, (*instance).infoCPU},
	{"commandstats", true, (*instance).infoCommands},
	{"modules", false, func(*instance, func(string, any)) {}},
	{"errorstats", false, (*instance).infoErrors},
	{"cluster", false, func(_ *instance, add func(string, any)) { add("cluster_enabled", 0) }},
	{"keyspace", false, (*instance).infoKeyspace},
}

func (c *client) info(args []string) []byte {
	want := "default"
	if len(args) == 2 {
		want = strings.ToLower(args[1])
	}
	var b strings.Builder
	for _, s := range sections {
		if s.name == want || want == "all" || want == "everything" || want == "default" && !s.extra {
			if b.Len() > 0 {
				b.WriteString("\r\n")
			}
			fmt.Fprintf(&b, "# %s\r\n", strings.ToUpper(s.name[:1])+s.name[1:])
			s.write(c.instance, func(name string, value any) { fmt.Fprintf(&b, "%s:%v\r\n", name, value) })
		}
	}
	s := b.String()
	s = strings.Replace(s, "# Cpu\r\n", "# CPU\r\n", 1)
	if c.peer.Resp3 {
		return fmt.Appendf(nil, "=%d\r\ntxt:%s\r\n", len(s)+4, s)
	}
	return text(s)
}

func (s *instance) infoServer(add func(string, any)) {
	up := time.Since(s.started)
	add("redis_version", s.brand.compatible)
	if s.brand == valkeyBrand {
		add("server_name", s.brand.name)
		add("valkey_version", s.brand.version)
		add("valkey_release_stage", "ga")
	}
	add("redis_git_sha1", "00000000")
	add("redis_git_dirty", 0)
	add("redis_build_id", buildID)
	add("redis_mode", "standalone")
	add("os", "Linux 5.15.0 x86_64")
	add("arch_bits", 64)
	add("multiplexing_api", "epoll")
	add("process_id", s.env.PID)
	add("run_id", s.runID)
	add("tcp_port", s.config.values["port"])
	add("server_time_usec", time.Now().UnixMicro())
	add("uptime_in_seconds", int64(up/time.Second))
	add("uptime_in_days", int64(up/(24*time.Hour)))
	add("hz", 10)
	add("configured_hz", s.config.values["hz"])
	add("lru_clock", time.Now().Unix()&(1<<24-1))
	add("executable", s.env.Path(s.brand.name+"-server"))
	add("config_file", s.config.file)
}

func (s *instance) infoClients(add func(string, any)) {
	blocked := 0
	for c := range s.clients {
		if c.blocked {
			blocked++
		}
	}
	add("connected_clients", len(s.clients))
	add("cluster_connections", 0)
	add("maxclients", s.config.values["maxclients"])
	add("blocked_clients", blocked)
}

func (s *instance) infoMemory(add func(string, any)) {
	used, m := s.memory(), s.env.Memory.Info()
	add("used_memory", used)
	add("used_memory_human", human(used))
	add("used_memory_rss", max(m.Used, used))
	add("used_memory_rss_human", human(max(m.Used, used)))
	peak := max(s.stats.peak, used)
	add("used_memory_peak", peak)
	add("used_memory_peak_human", human(peak))
	add("used_memory_peak_perc", fmt.Sprintf("%.2f%%", 100*float64(used)/float64(peak)))
	add("used_memory_overhead", used-s.data.total)
	add("used_memory_startup", baseMemory)
	add("used_memory_dataset", s.data.total)
	add("used_memory_dataset_perc", fmt.Sprintf("%.2f%%", 100*float64(s.data.total)/float64(max(used-baseMemory, 1))))
	add("total_system_memory", m.Total)
	add("total_system_memory_human", human(m.Total))
	limit := s.config.int("maxmemory")
	add("maxmemory", limit)
	add("maxmemory_human", human(limit))
	add("maxmemory_policy", s.config.values["maxmemory-policy"])
	add("mem_fragmentation_ratio", fmt.Sprintf("%.2f", float64(max(m.Used, used))/float64(used)))
	add("mem_allocator", "jemalloc-5.1.0")
}

func status(bad bool) string {
	if bad {
		return "err"
	}
	return "ok"
}

func (s *instance) infoPersistence(add func(string, any)) {
	add("loading", 0)
	add("rdb_changes_since_last_save", s.dirty)
	add("rdb_bgsave_in_progress", 0)
	add("rdb_last_save_time", s.lastSave.Unix())
	add("rdb_last_bgsave_status", status(s.saveFailed))
	enabled := 0
	if s.aof.file != nil {
		enabled = 1
	}
	add("aof_enabled", enabled)
	add("aof_rewrite_in_progress", 0)
	add("aof_last_bgrewrite_status", "ok")
	add("aof_last_write_status", status(s.aof.err != nil || s.aof.syncErr != nil))
	if enabled == 1 {
		add("aof_current_size", s.aof.size)
		add("aof_base_size", s.aof.base)
	}
}

func (s *instance) infoStats(add func(string, any)) {
	errors := int64(0)
	for _, n := range s.stats.errors {
		errors += n
	}
	add("total_connections_received", s.stats.connections)
	add("total_commands_processed", s.stats.processed)
	add("instantaneous_ops_per_sec", s.stats.opsPerSec)
	add("total_net_input_bytes", s.stats.input.Load())
	add("total_net_output_bytes", s.stats.output.Load())
	add("instantaneous_input_kbps", fmt.Sprintf("%.2f", s.stats.kbIn))
	add("instantaneous_output_kbps", fmt.Sprintf("%.2f", s.stats.kbUp))
	add("rejected_connections", s.stats.rejected)
	add("sync_full", 0)
	add("sync_partial_ok", 0)
	add("sync_partial_err", 0)
	add("expired_keys", s.stats.expired)
	add("evicted_keys", s.stats.evicted)
	add("keyspace_hits", s.stats.hits)
	add("keyspace_misses", s.stats.misses)
	add("pubsub_channels", len(parseReply(s.data.do(0, "PUBSUB", "CHANNELS")).items))
	add("pubsub_patterns", parseReply(s.data.do(0, "PUBSUB", "NUMPAT")).text)
	add("total_forks", s.saves)
	add("total_error_replies", errors)
}

func (s *instance) infoReplication(add func(string, any)) {
	add("role", "master")
	add("connected_slaves", 0)
	add("master_failover_state", "no-failover")
	add("master_replid", s.runID)
	add("master_repl_offset", 0)
	add("repl_backlog_active", 0)
}

func (s *instance) infoCPU(add func(string, any)) {
	used := s.env.CPU.Info().Used.Seconds()
	add("used_cpu_sys", fmt.Sprintf("%.6f", used/3))
	add("used_cpu_user", fmt.Sprintf("%.6f", used*2/3))
	add("used_cpu_sys_children", "0.000000")
	add("used_cpu_user_children", "0.000000")
}

func (s *instance) infoCommands(add func(string, any)) {
	for _, n := range slices.Sorted(maps.Keys(s.stats.commands)) {
		c := s.stats.commands[n]
		add("cmdstat_"+n, fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=0,failed_calls=%d",
			c.calls, c.took.Microseconds(), float64(c.took.Microseconds())/float64(c.calls), c.failed))
	}
}

func (s *instance) infoErrors(add func(string, any)) {
	for _, n := range slices.Sorted(maps.Keys(s.stats.errors)) {
		add("errorstat_"+n, fmt.Sprintf("count=%d", s.stats.errors[n]))
	}
}

func (s *instance) infoKeyspace(add func(string, any)) {
	now := time.Now()
	expires, left := map[int]int{}, map[int]time.Duration{}
	for n, e := range s.data.volatile {
		expires[n.db]++
		left[n.db] += e.expires.Sub(now)
	}
	for _, db := range slices.Sorted(maps.Keys(s.data.perDB)) {
		average := int64(0)
		if n := expires[db]; n > 0 {
			average = left[db].Milliseconds() / int64(n)
		}
		add(fmt.Sprintf("db%d", db), fmt.Sprintf("keys=%d,expires=%d,avg_ttl=%d", s.data.perDB[db], expires[db],
			average))
	}
}
