package observe

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Window is what part of the telemetry to export.
type Window struct {
	Namespace string
	From, To  time.Time
	Step      time.Duration // how far apart samples of metrics are; 0 for 15 seconds
	// Services asks for the [ServiceMetrics] as well.
	Services bool
}

// ContainerMetrics are the metrics that are exported, of each container and pod.
var ContainerMetrics = []string{
	"container_cpu_usage_seconds_total", "container_cpu_user_seconds_total", "container_cpu_system_seconds_total",
	"container_cpu_cfs_throttled_seconds_total", "container_cpu_cfs_throttled_periods_total",
	"container_cpu_cfs_periods_total",
	"container_cpu_load_average_10s",
	"container_memory_cache", "container_memory_usage_bytes", "container_memory_working_set_bytes",
	"container_memory_rss", "container_memory_mapped_file", "container_spec_cpu_period", "container_spec_cpu_quota",
	"container_spec_memory_limit_bytes", "container_spec_cpu_shares", "container_threads", "container_threads_max",
	"container_network_receive_errors_total", "container_network_receive_packets_dropped_total",
	"container_network_receive_packets_total", "container_network_receive_bytes_total",
	"container_network_transmit_bytes_total", "container_network_transmit_errors_total",
	"container_network_transmit_packets_dropped_total", "container_network_transmit_packets_total",
}

const (
	exportStep = 15 * time.Second
	exportSpan = 2 * time.Hour // the longest time of one query of metrics
	traceSpan  = 5 * time.Second
	maxTraces  = 1 << 20
)

// Export writes the metrics, traces and logs of a window below dir, in the layout of AIOpsLab's
// observer, and returns the new directory: telemetry_data_<time>/{metric,trace,log}.
func (o *Observer) Export(ctx context.Context, w Window, dir string, f Format) (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "telemetry_data_"+w.To.UTC().Format("20060102_150405"))
	if err := o.exportMetrics(ctx, w, filepath.Join(dir, "metric"), f); err != nil {
		return "", err
	}
	if _, err := o.exportTraces(ctx, w, filepath.Join(dir, "trace"), f); err != nil {
		return "", err
	}
	rows, err := o.logRows(ctx, w)
	if err != nil {
		return "", err
	}
	_, err = write(filepath.Join(dir, "log", fmt.Sprintf("log_%d", w.To.Unix())), f, batch(rows))
	return dir, err
}

// ExportMetrics writes the metrics of a window below dir as get_metrics does, one file each, and
// returns the new directory: metrics_output/metric_<time>.
func (o *Observer) ExportMetrics(ctx context.Context, w Window, dir string, f Format) (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "metrics_output", "metric_"+w.To.UTC().Format("20060102_150405"))
	return dir, o.exportMetrics(ctx, w, dir, f)
}

// ExportTraces writes the traces of a window below dir as get_traces does, and returns the new file:
// trace_output/traces_<time>.csv.
func (o *Observer) ExportTraces(ctx context.Context, w Window, dir string, f Format) (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	return o.exportTraces(ctx, w, filepath.Join(dir, "trace_output"), f)
}

func (o *Observer) exportMetrics(ctx context.Context, w Window, dir string, f Format) error {
	for _, sub := range []string{"container", "istio"} { // There is no Istio, but readers expect it.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for _, name := range ContainerMetrics {
		rows, err := o.metricRows(ctx, w, name)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if _, err := write(filepath.Join(dir, "container", "kpi_"+name), f, batch(rows)); err != nil {
			return err
		}
	}
	if w.Services {
		return o.exportServices(ctx, w, filepath.Join(dir, "service"), f)
	}
	return nil
}

// metricRows returns the samples of a metric.
func (o *Observer) metricRows(ctx context.Context, w Window, name string) (rows []MetricRow, err error) {
	err = o.queryRange(ctx, w, name, fmt.Sprintf("%s{namespace=%q}", name, w.Namespace), func(s *model.SampleStream) {
		pod, kpi := string(s.Metric["pod"]), name
		if strings.HasPrefix(pod, "loadgenerator-") || strings.HasPrefix(pod, "redis-cart") {
			return
		}
		if i := s.Metric["interface"]; i != "" {
			kpi += "." + string(i)
		}
		for _, p := range s.Values {
			rows = append(rows, MetricRow{
				p.Timestamp.Unix(), string(s.Metric["instance"]) + "." + pod, kpi,
				math.Round(float64(p.Value)*1000) / 1000,
			})
		}
	})
	return rows, err
}

// queryRange asks for the series of a query in a window, and calls each with every part of every one.
func (o *Observer) queryRange(ctx context.Context, w Window, name, query string, each func(*model.SampleStream)) error {
	step := cmp.Or(w.Step, exportStep)
	for from := w.From; !from.After(w.To); from = from.Add(exportSpan) {
		to := from.Add(exportSpan - step)
		if to.After(w.To) {
			to = w.To
		}
		v, _, err := o.prometheus.QueryRange(ctx, query, promv1.Range{Start: from, End: to, Step: step})
		if err != nil {
			return fmt.Errorf("query %s: %w", name, err)
		}
		m, ok := v.(model.Matrix)
		if !ok {
			return fmt.Errorf("query %s: Prometheus answers with a %s", name, v.Type())
		}
		for _, s := range m {
			each(s)
		}
	}
	return nil
}

func (o *Observer) exportTraces(ctx context.Context, w Window, dir string, f Format) (string, error) {
	return write(filepath.Join(dir, fmt.Sprintf("traces_%d", w.To.Unix())), f, o.traceRows(ctx, w))
}

// traceRows returns the spans of all traces that have one in the window, each once. It asks for a
// few seconds at a time, because many traces take much memory.
func (o *Observer) traceRows(ctx context.Context, w Window) batches[TraceRow] {
	return func(yield func([]TraceRow, error) bool) {
		j := o.Jaeger(w.Namespace)
		services, err := j.Services(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		services = slices.DeleteFunc(services, func(s string) bool { return s == "jaeger-all-in-one" })
		seen := map[string]bool{}
		span, most := o.traceLimits(w)
		for from := w.From; from.Before(w.To); from = from.Add(span) {
			to := from.Add(span)
			if to.After(w.To) {
				to = w.To
			}
			var rows []TraceRow
			for i, s := range services {
				traces, err := j.Search(ctx,
					TraceQuery{Service: s, From: from, To: to, Limit: most, exclude: services[:i]})
				if err != nil {
					yield(nil, err)
					return
				}
				for i := range traces {
					if t := &traces[i]; !seen[t.TraceID] {
						seen[t.TraceID] = true
						rows = append(rows, spanRows(t)...)
					}
				}
			}
			slices.SortStableFunc(rows, func(a, b TraceRow) int { return cmp.Compare(a.StartTime, b.StartTime) })
			if !yield(rows, nil) {
				return
			}
		}
	}
}

// traceLimits are how much time one request for traces is about, and how many it may return. A Jaeger that is
// somebody's has other users, refuses what is too much, and may know of many more requests.
func (o *Observer) traceLimits(w Window) (span time.Duration, most int) {
	if o.external == nil {
		return traceSpan, maxTraces
	}
	return max(traceSpan, w.To.Sub(w.From)/externalRequests), externalTraces
}

func spanRows(t *Trace) []TraceRow {
	var rows []TraceRow
	for i := range t.Spans {
		s := &t.Spans[i]
		r := TraceRow{
			TraceID: t.TraceID, SpanID: s.SpanID, ParentSpan: "ROOT", ServiceName: t.Processes[s.ProcessID].ServiceName,
			OperationName: s.OperationName, StartTime: s.StartTime, Duration: s.Duration,
			HasError: s.Tag("error") == "true", Response: "Unknown",
		}
		if p := s.Parent(); p != "" {
			r.ParentSpan = p
		}
		for _, key := range []string{"http.status_code", "response_class"} {
			if v := s.Tag(key); v != "" {
				r.Response = v
				break
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func (o *Observer) logRows(ctx context.Context, w Window) ([]LogRow, error) {
	lines, err := o.Logs(ctx, LogQuery{Namespace: w.Namespace, From: w.From, To: w.To, Previous: true})
	if err != nil {
		return nil, err
	}
	var rows []LogRow
	count := map[string]int{}
	for _, l := range lines {
		id := l.Pod + "/" + l.Container
		count[id]++
		rows = append(rows, LogRow{
			LogID: fmt.Sprintf("%s/%d", id, count[id]), Timestamp: l.Time.Unix(),
			Date: l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), PodName: l.Pod, ContainerName: l.Container,
			Namespace: l.Namespace, NodeName: l.Node, Message: l.Text,
		})
	}
	return rows, nil
}
