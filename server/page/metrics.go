package page

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
)

const (
	chartPoints = 150
	chartStep   = 5 * time.Second // as often as Prometheus scrapes
	metricNames = 2000            // that are offered
)

// chart is a query that is drawn without being asked for.
type chart struct{ Title, Query string }

// charts are what a page shows of every application. NAMESPACE stands for its namespace.
var charts = []chart{
	{"Requests a second", `sum by (service) (rate(http_requests_total{namespace=NAMESPACE}[30s])) or ` +
		`sum by (service) (rate(grpc_server_handled_total{namespace=NAMESPACE}[30s]))`},
	{
		"Requests that fail, %",
		`100 * sum by (service) (service:http_errors:rate1m{namespace=NAMESPACE} / service:http_requests:rate1m) or ` +
			`100 * sum by (service) (service:grpc_errors:rate1m{namespace=NAMESPACE} / service:grpc_requests:rate1m)`,
	},
	{
		"What one request in twenty takes at least, seconds",
		`max by (service) (service:http_request_duration_seconds:p95{namespace=NAMESPACE}) or ` +
			`max by (service) (service:grpc_server_handling_seconds:p95{namespace=NAMESPACE})`,
	},
	{"Processor time, millicores", `1000 * sum by (pod) ` +
		`(rate(container_cpu_usage_seconds_total{namespace=NAMESPACE,container!=""}[30s]))`},
	{"Memory, MiB", `sum by (pod) (container_memory_working_set_bytes{namespace=NAMESPACE,container!=""}) / 2^20`},
	{"Pods that are not ready", `sum by (namespace) (kube_pod_status_ready{namespace=NAMESPACE,condition="false"})`},
}

// metricsPage is what Prometheus has.
type metricsPage struct {
	clusterPart
	Span    string
	Spans   []string
	Asked   *liveBox // nil before anybody asks
	Query   string
	Names   []string
	Charts  []*liveBox
	Example string
}

// liveBox is a query of now, drawn.
type liveBox struct {
	metricsBox
	Title string
	Ask   string // where it can be changed
	There string // where Prometheus' own page has it, or ""
}

// showMetrics answers with what Prometheus has.
func (s *Site) showMetrics(w http.ResponseWriter, r *http.Request) error {
	part, err := s.part("/metrics")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	over := spanOf(q.Get("range"))
	p := &metricsPage{
		clusterPart: part, Span: over.Name, Spans: spanNames(), Query: strings.TrimSpace(q.Get("query")),
		Example: charts[0].Query,
	}
	ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
	defer cancel()
	now := time.Now()
	var wg sync.WaitGroup
	draw := func(box **liveBox, title, query string) {
		wg.Go(func() {
			*box = s.Cluster.chart(ctx, query, over, now)
			(*box).Title, (*box).There = title, p.InPrometheus(query, over.Name)
			(*box).Ask = "?" + url.Values{"query": {query}, "range": {over.Name}}.Encode()
		})
	}
	fill := strings.NewReplacer("NAMESPACE", fmt.Sprintf("%q", p.App.Namespace))
	p.Example = fill.Replace(p.Example)
	if p.Query != "" {
		draw(&p.Asked, p.Query, p.Query)
	}
	p.Charts = make([]*liveBox, len(charts))
	for i, c := range charts {
		draw(&p.Charts[i], c.Title, fill.Replace(c.Query))
	}
	wg.Go(func() { p.Names = s.Cluster.names(ctx, now) })
	wg.Wait()
	render(w, r, http.StatusOK, "metrics", view{Title: "Metrics", Place: "cluster", Poll: 5000, Data: p})
	return nil
}

// names are the metrics that there are. Without an answer there are none to offer, and charts say why.
func (c *Cluster) names(ctx context.Context, now time.Time) (list []string) {
	values, _, err := c.Telemetry.Prometheus().LabelValues(ctx, model.MetricNameLabel, nil, now.Add(-time.Hour), now)
	if err != nil {
		return nil
	}
	for _, v := range values[:min(len(values), metricNames)] {
		list = append(list, visible(string(v)))
	}
	return list
}

// chart draws what Prometheus answers to a query over the last while.
func (c *Cluster) chart(ctx context.Context, query string, over span, now time.Time) *liveBox {
	box := &liveBox{metricsBox: metricsBox{Query: query}}
	if len(query) > maxQuery {
		box.Wrong = fmt.Sprintf("a query has %d characters at most", maxQuery)
		return box
	}
	step := max(chartStep, over.Length/chartPoints)
	to := now.Truncate(step)
	from := to.Add(-over.Length)
	v, _, err := c.Telemetry.Prometheus().QueryRange(ctx, query, promv1.Range{Start: from, End: to, Step: step})
	if err != nil {
		box.Wrong = err.Error()
		return box
	}
	matrix, ok := v.(model.Matrix)
	if !ok {
		box.Wrong = "the answer is no series"
		return box
	}
	box.draw(mostFirst(matrix), from, to, to, max(pause, 3*step/2))
	return box
}

// mostFirst is an answer of Prometheus' API as its engine has it: the series with the greatest values first.
func mostFirst(list model.Matrix) promql.Matrix {
	var m promql.Matrix
	means := map[string]float64{}
	for _, s := range list {
		set := map[string]string{}
		for k, v := range s.Metric {
			set[string(k)] = string(v)
		}
		one := promql.Series{Metric: labels.FromMap(set)}
		sum := 0.0
		for _, p := range s.Values {
			one.Floats = append(one.Floats, promql.FPoint{T: int64(p.Timestamp), F: float64(p.Value)})
			if f := float64(p.Value); !math.IsNaN(f) && !math.IsInf(f, 0) {
				sum += f
			}
		}
		means[one.Metric.String()] = sum
		m = append(m, one)
	}
	slices.SortStableFunc(m, func(a, b promql.Series) int {
		x, y := a.Metric.String(), b.Metric.String()
		return cmp.Or(-cmp.Compare(means[x], means[y]), cmp.Compare(x, y))
	})
	return m
}
