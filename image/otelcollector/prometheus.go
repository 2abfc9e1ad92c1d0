package otelcollector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
)

// maxSeries is how many series the exporter keeps.
const maxSeries = 10_000

// sample is a series with its last value. A histogram has buckets.
type sample struct {
	labels string
	value  float64
	counts []uint64
	bounds []float64
	count  uint64
	seen   time.Time
}

// family is a metric with its series.
type family struct {
	kind   string
	help   string
	series map[string]*sample
}

// scraped is the exporter prometheus.
type scraped struct {
	c    *collector
	conf *prometheusExporter

	mu       sync.Mutex
	families map[string]*family
	n        int
	dropped  int64
}

func newScraped(c *collector, conf *prometheusExporter) *scraped {
	return &scraped{c: c, conf: conf, families: map[string]*family{}}
}

// clean makes a name one of Prometheus.
func clean(name string) string {
	b := []byte(name)
	if len(b) > maxText {
		b = b[:maxText]
	}
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || c >= '0' && c <= '9' && i > 0) {
			b[i] = '_'
		}
	}
	return string(b)
}

// units are the suffixes of metrics by their units.
var units = map[string]string{
	"ms": "milliseconds", "s": "seconds", "us": "microseconds", "ns": "nanoseconds", "By": "bytes", "KiBy": "kibibytes",
	"MiBy": "mebibytes", "%": "percent",
}

// nameOf is what a metric is called in Prometheus.
func (s *scraped) nameOf(m *metricspb.Metric) string {
	name := clean(m.GetName())
	if s.conf.Namespace != "" {
		name = clean(s.conf.Namespace) + "_" + name
	}
	if unit := units[m.GetUnit()]; unit != "" && !strings.HasSuffix(name, "_"+unit) {
		name += "_" + unit
	}
	if sum := m.GetSum(); sum != nil && sum.GetIsMonotonic() && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return name
}

// labelsOf writes labels, sorted by name.
func labelsOf(lists ...[]*commonpb.KeyValue) string {
	all := map[string]string{}
	for _, list := range lists {
		for _, kv := range list {
			if len(all) < 50 {
				all[strings.ReplaceAll(clean(kv.GetKey()), ":", "_")] = asText(kv.GetValue())
			}
		}
	}
	var b strings.Builder
	for i, k := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(k + `="` + escape(all[k]) + `"`)
	}
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(s, "\ufffd"))
}

func (s *scraped) consume(_ context.Context, b batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, r := range b.metrics {
		resource := r.GetResource().GetAttributes()
		var common []*commonpb.KeyValue
		if name := asText(find(resource, "service.name")); name != "" {
			if space := asText(find(resource, "service.namespace")); space != "" {
				name = space + "/" + name
			}
			common = append(common, attribute("job", name))
		}
		if id := find(resource, "service.instance.id"); id != nil {
			common = append(common, &commonpb.KeyValue{Key: "instance", Value: id})
		}
		if s.conf.Resource.Enabled {
			common = append(common, resource...)
		}
		for _, scope := range r.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				s.take(m, common, now)
			}
		}
	}
	return nil
}

// take keeps the values of a metric.
func (s *scraped) take(m *metricspb.Metric, common []*commonpb.KeyValue, now time.Time) {
	name := s.nameOf(m)
	number := func(p *metricspb.NumberDataPoint) float64 {
		if v, ok := p.GetValue().(*metricspb.NumberDataPoint_AsInt); ok {
			return float64(v.AsInt)
		}
		return p.GetAsDouble()
	}
	const delta = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	switch data := m.GetData().(type) {
	case *metricspb.Metric_Gauge:
		for _, p := range data.Gauge.GetDataPoints() {
			s.keep(name, "gauge", m, &sample{labels: labelsOf(common, p.GetAttributes()), value: number(p)}, now)
		}
	case *metricspb.Metric_Sum:
		kind := "gauge"
		if data.Sum.GetIsMonotonic() {
			kind = "counter"
		}
		if data.Sum.GetAggregationTemporality() == delta {
			s.dropped += int64(points(m))
			return
		}
		for _, p := range data.Sum.GetDataPoints() {
			s.keep(name, kind, m, &sample{labels: labelsOf(common, p.GetAttributes()), value: number(p)}, now)
		}
	case *metricspb.Metric_Histogram:
		for _, p := range data.Histogram.GetDataPoints() {
			if data.Histogram.GetAggregationTemporality() == delta || len(p.GetExplicitBounds()) > 100 ||
				len(p.GetBucketCounts()) != len(p.GetExplicitBounds())+1 {
				s.dropped++
				continue
			}
			s.keep(name, "histogram", m, &sample{
				labels: labelsOf(common, p.GetAttributes()), value: p.GetSum(), count: p.GetCount(),
				counts: p.GetBucketCounts(), bounds: p.GetExplicitBounds(),
			}, now)
		}
	default:
		s.dropped += int64(points(m))
	}
}

func (s *scraped) keep(name, kind string, m *metricspb.Metric, v *sample, now time.Time) {
	f := s.families[name]
	if f == nil {
		help := m.GetDescription()
		if len(help) > maxText {
			help = help[:maxText]
		}
		f = &family{kind: kind, help: escape(help), series: map[string]*sample{}}
		s.families[name] = f
	}
	if f.kind != kind {
		s.dropped++
		return
	}
	if f.series[v.labels] == nil {
		if s.n >= maxSeries || s.c.holder.Add(seriesBytes) != nil {
			s.dropped++
			return
		}
		s.n++
	}
	v.seen = now
	f.series[v.labels] = v
}

// expire forgets series that nobody sends any more.
func (s *scraped) expire(now time.Time) {
	for name, f := range s.families {
		for key, v := range f.series {
			if now.Sub(v.seen) > s.conf.Expire {
				delete(f.series, key)
				s.n--
				_ = s.c.holder.Add(-seriesBytes)
			}
		}
		if len(f.series) == 0 {
			delete(s.families, name)
		}
	}
}

// ServeHTTP implements http.Handler: it is /metrics.
func (s *scraped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.expire(time.Now())
	text := s.text()
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(text))
}

func (s *scraped) text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		f := s.families[name]
		if f.help != "" {
			fmt.Fprintf(&b, "# HELP %s %s\n", name, f.help)
		}
		fmt.Fprintf(&b, "# TYPE %s %s\n", name, f.kind)
		for _, key := range slices.Sorted(maps.Keys(f.series)) {
			v := f.series[key]
			if f.kind != "histogram" {
				fmt.Fprintf(&b, "%s{%s} %s\n", name, v.labels, float(v.value))
				continue
			}
			comma, total := "", uint64(0)
			if v.labels != "" {
				comma = ","
			}
			for i, n := range v.counts {
				total += n
				bound := math.Inf(1)
				if i < len(v.bounds) {
					bound = v.bounds[i]
				}
				fmt.Fprintf(&b, "%s_bucket{%s%sle=\"%s\"} %d\n", name, v.labels, comma, float(bound), total)
			}
			fmt.Fprintf(&b, "%s_sum{%s} %s\n%s_count{%s} %d\n", name, v.labels, float(v.value), name, v.labels,
				cmp.Or(v.count, total))
		}
	}
	return b.String()
}

func float(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
