package runbook

import (
	"fmt"
	"strconv"
	"strings"
)

// The limits beyond which a value is a symptom.
const (
	highErrors   = 0.03 // part of the requests
	highLatency  = 1.0  // seconds, 95th percentile
	highThrottle = 0.5  // part of the periods
	highMemory   = 0.9  // part of the limit
)

// The names of what is measured.
const (
	httpErrors   = "http-errors"
	httpLatency  = "http-p95"
	rpcErrors    = "rpc-errors"
	rpcLatency   = "rpc-p95"
	storeErrors  = "store-errors"
	storeLatency = "store-p95"
	cpuThrottled = "throttled"
	memoryUsed   = "memory"
)

// query is one thing that is asked of Prometheus. The result has a label that says of whom.
type query struct {
	name  string
	label string
	expr  string
}

const bad = `grpc_code=~"Unknown|DeadlineExceeded|ResourceExhausted|Aborted|Unimplemented|Internal|Unavailable|DataLoss"`

// queries are about the last seconds, and only return what is beyond the limits.
func queries(namespace string, seconds int) []query {
	window := fmt.Sprintf("%ds", seconds)
	ns := fmt.Sprintf(`namespace=%q`, namespace)
	ratio := func(of, metric, which string) string {
		return fmt.Sprintf(`sum by (%[1]s) (rate(%[2]s{%[3]s,%[4]s}[%[6]s])) / sum by (%[1]s) (rate(%[2]s{%[4]s}[%[6]s])) > %[5]v`, of, metric, which, ns, highErrors, window)
	}
	p95 := func(of, metric string) string {
		return fmt.Sprintf(`histogram_quantile(0.95, sum by (%s, le) (rate(%s_bucket{%s}[%s]))) > %v`, of, metric, ns, window, highLatency)
	}
	return []query{
		{httpErrors, "service", ratio("service", "http_requests_total", `code=~"5.."`)},
		{rpcErrors, "service", ratio("service", "grpc_server_handled_total", bad)},
		{storeErrors, "service", ratio("service", "store_request_duration_seconds_count", `result="error"`)},
		{httpLatency, "service", p95("service", "http_request_duration_seconds")},
		{rpcLatency, "service", p95("service", "grpc_server_handling_seconds")},
		{storeLatency, "service", p95("service", "store_request_duration_seconds")},
		{cpuThrottled, "pod", fmt.Sprintf(`sum by (pod) (rate(container_cpu_cfs_throttled_periods_total{%[1]s}[%[3]s])) / sum by (pod) (rate(container_cpu_cfs_periods_total{%[1]s}[%[3]s])) > %[2]v`, ns, highThrottle, window)},
		{memoryUsed, "pod", fmt.Sprintf(`sum by (pod) (container_memory_working_set_bytes{%[1]s,container!=""}) / sum by (pod) (container_spec_memory_limit_bytes{%[1]s,container!=""} > 0) > %[2]v`, ns, highMemory)},
	}
}

// metricsCommand asks Prometheus, and prints "name who value".
func (s *system) metricsCommand(seconds int) string {
	var b strings.Builder
	b.WriteString("q() { curl -s -G --max-time 5 http://" + s.prometheus + `/api/v1/query --data-urlencode "query=$3" | jq -r ".data.result[] | \"$1 \\(.metric.$2) \\(.value[1])\""; }`)
	for _, q := range queries(s.namespace, seconds) {
		fmt.Fprintf(&b, "\nq %s %s '%s'", q.name, q.label, q.expr)
	}
	return b.String()
}

// sample is a value beyond its limit.
type sample struct {
	name, who string
	value     float64
}

// latency reports whether the value is a time.
func (m sample) latency() bool {
	return m.name == httpLatency || m.name == rpcLatency || m.name == storeLatency
}

func readSamples(text string) (list []sample) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		v, err := strconv.ParseFloat(f[2], 64)
		if err != nil || v != v {
			continue
		}
		list = append(list, sample{f[0], f[1], v})
	}
	return list
}
