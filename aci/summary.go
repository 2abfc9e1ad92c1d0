package aci

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/observe"
)

// queries are what a summary is made of. In them, NS is a matcher of the namespace, WINDOW the whole
// time asked for, and BEFORE all of it but the last minute, which is seen at an offset of one.
var queries = map[string]string{
	"cpu":          `sum by (pod) (rate(container_cpu_usage_seconds_total{NS,container!=""}[WINDOW]))`,
	"cpu.now":      `sum by (pod) (rate(container_cpu_usage_seconds_total{NS,container!=""}[1m]))`,
	"cpu.before":   `sum by (pod) (rate(container_cpu_usage_seconds_total{NS,container!=""}[BEFORE] offset 1m))`,
	"memory":       `sum by (pod) (container_memory_working_set_bytes{NS,container!=""})`,
	"memory.start": `sum by (pod) (container_memory_working_set_bytes{NS,container!=""} offset BEFORE)`,
	"limit":        `sum by (pod) (container_spec_memory_limit_bytes{NS,container!=""}) > 0`,
	"throttled":    `sum by (pod) (rate(container_cpu_cfs_throttled_periods_total{NS,container!=""}[1m])) / sum by (pod) (rate(container_cpu_cfs_periods_total{NS,container!=""}[1m]))`,
	"restarts":     `sum by (pod) (kube_pod_container_status_restarts_total{NS})`,
	"restarted":    `sum by (pod) (increase(kube_pod_container_status_restarts_total{NS}[WINDOW]))`,
	"receive":      `sum by (pod) (rate(container_network_receive_bytes_total{NS}[WINDOW]))`,
	"transmit":     `sum by (pod) (rate(container_network_transmit_bytes_total{NS}[WINDOW]))`,
	"dropped":      `sum by (pod) (rate(container_network_receive_packets_dropped_total{NS}[WINDOW]) + rate(container_network_transmit_packets_dropped_total{NS}[WINDOW]))`,

	"requests":        `sum by (service) (rate(http_requests_total{NS}[1m])) or sum by (service) (rate(grpc_server_handled_total{NS}[1m]))`,
	"requests.before": `sum by (service) (rate(http_requests_total{NS}[BEFORE] offset 1m)) or sum by (service) (rate(grpc_server_handled_total{NS}[BEFORE] offset 1m))`,
	"errors":          `sum by (service) (rate(http_requests_total{NS,code=~"5.."}[1m])) or sum by (service) (rate(grpc_server_handled_total{NS,grpc_code=~"GRPC"}[1m]))`,
	"latency":         `histogram_quantile(0.95, sum by (service, le) (rate(http_request_duration_seconds_bucket{NS}[1m]))) or histogram_quantile(0.95, sum by (service, le) (rate(grpc_server_handling_seconds_bucket{NS}[1m])))`,
	"latency.before":  `histogram_quantile(0.95, sum by (service, le) (rate(http_request_duration_seconds_bucket{NS}[BEFORE] offset 1m))) or histogram_quantile(0.95, sum by (service, le) (rate(grpc_server_handling_seconds_bucket{NS}[BEFORE] offset 1m)))`,
	"store.errors":    `sum by (service) (rate(store_request_duration_seconds_count{NS,result="error"}[1m])) / sum by (service) (rate(store_request_duration_seconds_count{NS}[1m]))`,
}

// grpcErrors are the gRPC codes that blame the server.
const grpcErrors = "Unknown|DeadlineExceeded|ResourceExhausted|Aborted|Unimplemented|Internal|Unavailable|DataLoss"

const queriesAtOnce = 4

// numbers are the results of the queries: by query, and by pod or service.
type numbers map[string]map[string]float64

// ask makes all queries.
func (i *Interface) ask(ctx context.Context, w observe.Window) (numbers, error) {
	expand := placeholders(w)
	all := numbers{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(queriesAtOnce)
	for name, query := range queries {
		g.Go(func() error {
			v, _, err := i.o.Observer.Prometheus().Query(ctx, expand.Replace(query), w.To)
			if err != nil {
				return fmt.Errorf("query Prometheus: %w", err)
			}
			result := map[string]float64{}
			vector, _ := v.(model.Vector)
			for _, s := range vector {
				key := string(s.Metric["pod"]) + string(s.Metric["service"])
				if f := float64(s.Value); key != "" && !math.IsNaN(f) {
					result[key] = f
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all[name] = result
			return nil
		})
	}
	return all, g.Wait()
}

// placeholders replaces the words in capitals in the queries.
func placeholders(w observe.Window) *strings.Replacer {
	window := w.To.Sub(w.From)
	return strings.NewReplacer(
		"NS", fmt.Sprintf("namespace=%q", w.Namespace), "WINDOW", seconds(window), "BEFORE",
		seconds(max(window-time.Minute, time.Minute)), "GRPC", grpcErrors,
	)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }

// summarise shows what the metrics of a window come down to.
func (i *Interface) summarise(ctx context.Context, w observe.Window) (string, error) {
	n, err := i.ask(ctx, w)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Metrics of %s, the last %d minutes.\n\n", w.Namespace, int(w.To.Sub(w.From).Minutes()))
	pods := n.keys("cpu", "memory", "restarts")
	services := n.keys("requests", "latency", "store.errors")
	if len(pods) == 0 && len(services) == 0 {
		fmt.Fprintf(&b, "There are no metrics of this namespace. The application is in %q.\n", i.o.App.Namespace)
		return b.String(), nil
	}
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "POD\tCPU (cores)\tMEMORY\tLIMIT\tTHROTTLED\tRESTARTS\tRECEIVED/s\tSENT/s\tDROPPED/s")
	for _, p := range pods {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p, n.text("cpu", p, "%.3f"), n.bytes("memory", p),
			n.bytes("limit", p),
			n.percent("throttled", p), n.text("restarts", p, "%.0f"), n.bytes("receive", p), n.bytes("transmit", p),
			n.text("dropped", p, "%.2f"))
	}
	tw.Flush()
	fmt.Fprintln(&b)
	fmt.Fprintln(tw, "SERVICE (last minute)\tREQUESTS/s\tERRORS\tP95 (ms)\tSTORE ERRORS")
	for _, s := range services {
		errors := "-"
		if rate, ok := n["requests"][s]; ok && rate > 0 {
			errors = fmt.Sprintf("%.1f%%", 100*n["errors"][s]/rate)
		}
		latency := "-"
		if v, ok := n["latency"][s]; ok {
			latency = fmt.Sprintf("%.1f", 1000*v)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", s, n.text("requests", s, "%.1f"), errors, latency,
			n.percent("store.errors", s))
	}
	tw.Flush()
	fmt.Fprintln(&b, "\nWhat stands out in the last minute against the time before:")
	findings := n.findings(pods, services)
	for _, f := range findings {
		fmt.Fprintf(&b, "  - %s\n", f)
	}
	if len(findings) == 0 {
		fmt.Fprintln(&b, "  (nothing)")
	}
	return b.String(), nil
}

// What makes a change worth a word.
const (
	muchThrottled = 0.25
	manyErrors    = 0.05
	nearLimit     = 0.9
	muchMore      = 2.0
	muchSlower    = 3.0
	someCPU       = 0.05 // cores
	someRate      = 1.0  // requests per second
	slow          = 0.05 // seconds
)

// findings say what stands out.
func (n numbers) findings(pods, services []string) (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, p := range pods {
		if now, before := n["cpu.now"][p], n["cpu.before"][p]; now > someCPU && now > muchMore*before {
			say("%s uses %.3f cores, %.3f before", p, now, before)
		}
		if v := n["throttled"][p]; v > muchThrottled {
			say("%s is throttled in %.0f%% of its CPU periods", p, 100*v)
		}
		if used, limit := n["memory"][p], n["limit"][p]; limit > 0 && used > nearLimit*limit {
			say("%s uses %.0f%% of its memory limit", p, 100*used/limit)
		}
		if now, start := n["memory"][p], n["memory.start"][p]; start > 0 && now > muchMore*start {
			say("%s holds %s of memory, %s at the start", p, human(now), human(start))
		}
		if v := n["restarted"][p]; v >= 0.5 {
			say("%s restarted %s in this time", p, count(int(math.Round(v)), "time"))
		}
		if v := n["dropped"][p]; v > 0 {
			say("%s loses %.2f packets per second", p, v)
		}
	}
	for _, s := range services {
		rate, before := n["requests"][s], n["requests.before"][s]
		if v := n["errors"][s]; rate > 0 && v/rate > manyErrors {
			say("%s fails %.1f%% of its requests", s, 100*v/rate)
		}
		if v := n["store.errors"][s]; v > manyErrors {
			say("%s fails %.1f%% of its requests to stores", s, 100*v)
		}
		if before > someRate && rate < before/muchMore {
			say("%s gets %.1f requests per second, %.1f before", s, rate, before)
		}
		if before > 0 && rate > someRate && rate > 2*muchMore*before {
			say("%s gets %.1f requests per second, %.1f before", s, rate, before)
		}
		if now, then := n["latency"][s], n["latency.before"][s]; now > slow && now > muchSlower*then {
			say("%s answers in %.1f ms (p95), %.1f ms before", s, 1000*now, 1000*then)
		}
	}
	return list
}

// keys are the pods or services that any of some queries knows, sorted.
func (n numbers) keys(names ...string) []string {
	set := map[string]bool{}
	for _, name := range names {
		for k := range n[name] {
			set[k] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (n numbers) text(name, key, format string) string {
	v, ok := n[name][key]
	if !ok {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

func (n numbers) percent(name, key string) string {
	v, ok := n[name][key]
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*v)
}

func (n numbers) bytes(name, key string) string {
	v, ok := n[name][key]
	if !ok {
		return "-"
	}
	return human(v)
}

// human is a number of bytes.
func human(v float64) string {
	for _, unit := range []string{"B", "KiB", "MiB"} {
		if v < 1024 {
			return fmt.Sprintf("%.4g%s", v, unit)
		}
		v /= 1024
	}
	return fmt.Sprintf("%.4gGiB", v)
}
