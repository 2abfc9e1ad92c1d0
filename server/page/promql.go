package page

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/aiopslab/aiopslab/report"
)

const (
	queryTimeout  = 10 * time.Second
	querySamples  = 5_000_000
	queryLookback = 15 * time.Second
	maxQuery      = 2000
	shownSeries   = 6
	pause         = 30 * time.Second // for which a series may say nothing
)

// defaultQuery is what a page shows before anybody asks for something else.
const defaultQuery = `topk(5, rate(container_cpu_usage_seconds_total[30s]))`

// series are kept samples, by what Prometheus calls them. Those of a container have the labels instance, pod and maybe
// interface, those of a service the label service.
type series struct {
	byName map[string]map[string]*oneSeries // by metric, then by whose they are
	total  int
}

type oneSeries struct {
	labels labels.Labels
	points []chunks.Sample
}

func newSeries() *series { return &series{byName: map[string]map[string]*oneSeries{}} }

func (s *series) add(at time.Time, of, metric string, v float64) {
	if s.total++; s.total > maxSamples {
		return
	}
	name, device, _ := strings.Cut(metric, ".")
	key := of + "\x00" + device
	if s.byName[name] == nil {
		s.byName[name] = map[string]*oneSeries{}
	}
	one := s.byName[name][key]
	if one == nil {
		set := map[string]string{model.MetricNameLabel: name}
		if i := strings.LastIndexByte(of, '.'); strings.HasPrefix(name, "container_") && i >= 0 {
			set["instance"], set["pod"] = of[:i], of[i+1:]
		} else {
			set["service"] = of
		}
		if device != "" {
			set["interface"] = device
		}
		one = &oneSeries{labels: labels.FromMap(set)}
		s.byName[name][key] = one
	}
	t := at.UnixMilli()
	if n := len(one.points); n > 0 && one.points[n-1].T() >= t {
		return // Rows of a pod's containers may have one name; the first counts.
	}
	one.points = append(one.points, sampled{t, v})
}

// sampled is a sample as Prometheus reads it.
type sampled struct {
	t int64
	v float64
}

func (s sampled) T() int64                      { return s.t }
func (s sampled) ST() int64                     { return 0 }
func (s sampled) F() float64                    { return s.v }
func (s sampled) H() *histogram.Histogram       { return nil }
func (s sampled) FH() *histogram.FloatHistogram { return nil }
func (s sampled) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sampled) Copy() chunks.Sample           { return s }

var _ storage.Queryable = (*series)(nil)

// Querier makes the series those of a Prometheus.
func (s *series) Querier(int64, int64) (storage.Querier, error) { return s, nil }

// Close has nothing to release.
func (s *series) Close() error { return nil }

// LabelValues is not needed by queries.
func (s *series) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error,
) {
	return nil, nil, nil
}

// LabelNames is not needed by queries.
func (s *series) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string,
	annotations.Annotations, error,
) {
	return nil, nil, nil
}

// Select returns the series that match.
func (s *series) Select(_ context.Context, _ bool, _ *storage.SelectHints,
	matchers ...*labels.Matcher,
) storage.SeriesSet {
	var found []storage.Series
	for _, name := range sortedKeys(s.byName) {
		for _, key := range sortedKeys(s.byName[name]) {
			one := s.byName[name][key]
			other := func(m *labels.Matcher) bool { return !m.Matches(one.labels.Get(m.Name)) }
			if !slices.ContainsFunc(matchers, other) {
				found = append(found, storage.NewListSeries(one.labels, one.points))
			}
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &matching{list: found, at: -1}
}

// matching goes over series.
type matching struct {
	list []storage.Series
	at   int
}

func (f *matching) Next() bool                        { f.at++; return f.at < len(f.list) }
func (f *matching) At() storage.Series                { return f.list[f.at] }
func (f *matching) Err() error                        { return nil }
func (f *matching) Warnings() annotations.Annotations { return nil }

// metricsBox is a query, and what came of it.
type metricsBox struct {
	Query  string
	Wrong  string
	Chart  template.HTML
	Legend []legend
	More   int // series that are not drawn
	Names  []string
}

type legend struct {
	Class, Name, Now string
}

// ask asks a query over all that was kept, and draws the answer with a line at a time.
func (t *telemetry) ask(ctx context.Context, query string, at time.Time) *metricsBox {
	box := &metricsBox{Query: query, Names: sortedKeys(t.series.byName)}
	if len(query) > maxQuery {
		box.Wrong = fmt.Sprintf("a query has %d characters at most", maxQuery)
		return box
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: querySamples, Timeout: queryTimeout, LookbackDelta: queryLookback, EnableAtModifier: true,
		EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
		NoStepSubqueryIntervalFn: func(int64) int64 { return int64(1000 * t.Step) },
	})
	step := durationOf(t.Step)
	q, err := engine.NewRangeQuery(ctx, t.series, nil, query, t.From, t.To, step)
	if err != nil {
		box.Wrong = err.Error()
		return box
	}
	defer q.Close()
	result := q.Exec(ctx)
	m, err := result.Matrix()
	if err != nil {
		box.Wrong = err.Error()
		return box
	}
	box.draw(m, t.From, t.To, at, pause)
	return box
}

// draw draws series. Where one says nothing for longer than a gap, it breaks.
func (b *metricsBox) draw(m promql.Matrix, from, to, at time.Time, gap time.Duration) {
	const width, height, left = 720.0, 150.0, 56.0
	if len(m) == 0 {
		return
	}
	b.More = max(0, len(m)-shownSeries)
	m = m[:min(len(m), shownSeries)]
	low, high := 0.0, math.Inf(-1)
	for _, s := range m {
		for _, p := range s.Floats {
			if !math.IsNaN(p.F) && !math.IsInf(p.F, 0) {
				low, high = min(low, p.F), max(high, p.F)
			}
		}
	}
	if math.IsInf(high, -1) || high == low {
		high = low + 1
	}
	x := func(ms int64) float64 {
		return left + (width-left-8)*float64(ms-from.UnixMilli())/float64(max(1, to.UnixMilli()-from.UnixMilli()))
	}
	y := func(v float64) float64 { return 8 + (height-30)*(1-(v-low)/(high-low)) }
	d := newDrawing(width, height, "The answer to "+b.Query)
	d.class = "chart"
	for i := range 3 {
		v := low + (high-low)*float64(i)/2
		d.line("grid", left, y(v), width-8, y(v))
		d.text("", "end", left-6, y(v)+4, fmt.Sprintf("%.3g", v))
		when := from.Add(time.Duration(float64(to.Sub(from)) * float64(i) / 2))
		d.text("", []string{"start", "middle", "end"}[i], x(when.UnixMilli()), height-6, clock(when))
	}
	for i, s := range m {
		var path strings.Builder
		now, last := "–", int64(0)
		for _, p := range s.Floats {
			if math.IsNaN(p.F) || math.IsInf(p.F, 0) {
				continue
			}
			command := "L"
			if last == 0 || p.T-last > gap.Milliseconds() {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%s %s", command, num(x(p.T)), num(y(p.F)))
			last = p.T
			if p.T <= at.UnixMilli() {
				now = report.Figure(p.F)
			}
		}
		d.path(fmt.Sprintf("s%d", i), path.String())
		b.Legend = append(b.Legend, legend{fmt.Sprintf("k%d", i), visible(nameOf(s.Metric)), now})
	}
	if !at.Before(from) && !at.After(to) {
		d.line("cursor", x(at.UnixMilli()), 4, x(at.UnixMilli()), height-20)
	}
	b.Chart = d.html()
}

// nameOf is a series as people write it: its name, and its other labels in braces.
func nameOf(l labels.Labels) string {
	name := l.Get(model.MetricNameLabel)
	rest := labels.NewBuilder(l).Del(model.MetricNameLabel).Labels()
	if name != "" && rest.IsEmpty() {
		return name
	}
	return name + rest.String()
}
