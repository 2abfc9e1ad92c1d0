package prometheus

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	alertsMetric, alertsForMetric = "ALERTS", "ALERTS_FOR_STATE"
	// deriveStep is how often rules were evaluated in what is long ago. Rules are evaluated as often as Prometheus
	// does only in the last deriveFine. The lab's own alerts read no more than deriveNear, which is evaluated by
	// itself: nobody waits for the rest before it is read.
	deriveStep = time.Minute
	deriveFine = time.Hour
	deriveNear = 35 * time.Minute
	// aroundExcursion is how long before and after an excursion an alert may begin or end.
	aroundBefore, aroundAfter = time.Minute, 5 * time.Minute
)

// derivation is the past of what rules make of series: it is made of theirs when somebody asks for it, and then
// kept.
type derivation struct {
	memory   *memory
	evaluate func(ctx context.Context, expr string, from, to time.Time, step time.Duration) (promql.Matrix, error)
	every    time.Duration
	recorded []*recording
	alerting []alerting
	alerts   struct {
		sync.Mutex
		done   bool
		series []*points
	}
}

// recording is the past of a recording rule.
type recording struct {
	name   string
	expr   string
	labels labels.Labels
	parts  []*part
}

// part is a time of the past of a recording rule.
type part struct {
	from, to time.Time
	step     time.Duration

	mu     sync.Mutex
	done   bool
	series []*points
}

// alerting is an alerting rule.
type alerting struct {
	name, expr string
	hold       time.Duration
	labels     labels.Labels
}

// points is a series with its samples.
type points struct {
	labels labels.Labels
	t      []int64
	v      []float64
}

// deriving marks a context in which a recording rule is evaluated: it does not read itself.
type deriving struct{ name string }

// derivation returns what the current rules make of the past.
func (s *server) derivation(m *memory) *derivation {
	d := &derivation{memory: m, every: time.Duration(s.interval())}
	d.evaluate = func(ctx context.Context, expr string, from, to time.Time, step time.Duration) (promql.Matrix, error) {
		q, err := s.engine.NewRangeQuery(ctx, s.data, nil, expr, from, to, step)
		if err != nil {
			return nil, err
		}
		defer q.Close()
		matrix, err := q.Exec(ctx).Matrix()
		return kept(matrix), err
	}
	join := timeOf(m.cut)
	for _, g := range s.rules.RuleGroups() {
		for _, r := range g.Rules() {
			switch r := r.(type) {
			case *rules.RecordingRule:
				d.recorded = append(d.recorded, &recording{
					name: r.Name(), expr: r.Query().String(), labels: r.Labels(),
					parts: []*part{
						{from: join.Add(-deriveNear), to: join, step: d.every},
						{from: join.Add(-deriveFine), to: join.Add(-deriveNear), step: d.every},
						{from: join.Add(-6 * time.Hour), to: join.Add(-deriveFine), step: deriveStep},
						{from: join.Add(-past.Window), to: join.Add(-6 * time.Hour), step: deriveStep},
					},
				})
			case *rules.AlertingRule:
				d.alerting = append(d.alerting, alerting{
					name: r.Name(), expr: r.Query().String(), hold: r.HoldDuration(), labels: r.Labels(),
				})
			}
		}
	}
	return d
}

// kept is a copy of what a query has found: the engine uses the memory of its points again once the query is closed.
func kept(m promql.Matrix) promql.Matrix {
	m = slices.Clone(m)
	for i := range m {
		m[i].Floats = slices.Clone(m[i].Floats)
	}
	return m
}

// series returns what rules have made of the past that matches.
func (d *derivation) series(ctx context.Context, mint, maxt int64,
	matchers []*labels.Matcher,
) (list []storage.Series, err error) {
	if d == nil {
		return nil, nil
	}
	var found []*points
	for _, r := range d.recorded {
		if ctx.Value(deriving{r.name}) != nil || !named(r.name, matchers) {
			continue
		}
		for _, p := range r.parts {
			if millis(p.from) > maxt || millis(p.to) <= mint {
				continue
			}
			series, err := d.record(ctx, r, p)
			if err != nil {
				return nil, err
			}
			found = append(found, series...)
		}
	}
	if ctx.Value(deriving{alertsMetric}) == nil && (named(alertsMetric, matchers) || named(alertsForMetric, matchers)) {
		series, err := d.alerted(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, series...)
	}
	return merged(found, mint, maxt, matchers), nil
}

func named(name string, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && !m.Matches(name) {
			return false
		}
	}
	return true
}

// merged returns series of several parts, each once, with their samples of a time.
func merged(found []*points, mint, maxt int64, matchers []*labels.Matcher) (list []storage.Series) {
	found = slices.DeleteFunc(found, func(p *points) bool { return !matches(p.labels, matchers) })
	slices.SortStableFunc(found, func(a, b *points) int { return labels.Compare(a.labels, b.labels) })
	for len(found) > 0 {
		same := 1
		for same < len(found) && labels.Equal(found[0].labels, found[same].labels) {
			same++
		}
		all := &points{labels: found[0].labels}
		parts := slices.SortedFunc(slices.Values(found[:same]), func(a, b *points) int { return int(a.t[0] - b.t[0]) })
		for _, p := range parts {
			for i, t := range p.t {
				if t >= mint && t <= maxt {
					all.t, all.v = append(all.t, t), append(all.v, p.v[i])
				}
			}
		}
		if len(all.t) > 0 {
			list = append(list, all.series())
		}
		found = found[same:]
	}
	return list
}

// series presents points.
func (p *points) series() storage.Series {
	return &storage.SeriesEntry{Lset: p.labels, SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator {
		return &pointIterator{of: p, at: -1}
	}}
}

func (p *points) add(t int64, v float64) { p.t, p.v = append(p.t, t), append(p.v, v) }

// end marks the end of a series at a time, if it has a sample just before.
func (p *points) end(t int64, every time.Duration) {
	if n := len(p.t); n > 0 && p.t[n-1] == t-every.Milliseconds() {
		p.add(t, math.Float64frombits(value.StaleNaN))
	}
}

// pointIterator goes through points.
type pointIterator struct {
	samples
	of *points
	at int
}

// Next implements chunkenc.Iterator.
func (p *pointIterator) Next() chunkenc.ValueType {
	if p.at++; p.at >= len(p.of.t) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// Seek implements chunkenc.Iterator.
func (p *pointIterator) Seek(t moment) chunkenc.ValueType {
	p.at = max(p.at, 0)
	for p.at < len(p.of.t) && p.of.t[p.at] < t {
		p.at++
	}
	if p.at >= len(p.of.t) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

// At implements chunkenc.Iterator.
func (p *pointIterator) At() (int64, float64) { return p.of.t[p.at], p.of.v[p.at] }

// AtT implements chunkenc.Iterator.
func (p *pointIterator) AtT() int64 { return p.of.t[p.at] }

// record evaluates a recording rule in the past.
func (d *derivation) record(ctx context.Context, r *recording, p *part) ([]*points, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return p.series, nil
	}
	ctx = context.WithValue(ctx, deriving{r.name}, true)
	// The last evaluation of a part is before the first of the next.
	matrix, err := d.evaluate(ctx, r.expr, p.from, p.to.Add(-time.Millisecond), p.step)
	if err != nil {
		return nil, err
	}
	for _, s := range matrix {
		b := labels.NewBuilder(s.Metric)
		b.Set(model.MetricNameLabel, r.name)
		r.labels.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		x := &points{labels: b.Labels()}
		for _, f := range s.Floats {
			x.t, x.v = append(x.t, f.T), append(x.v, f.F)
		}
		if len(x.t) > 0 {
			p.series = append(p.series, x)
		}
	}
	p.done = true
	return p.series, nil
}

// alerted evaluates the alerting rules around every excursion: at all other times nothing was unusual.
func (d *derivation) alerted(ctx context.Context) ([]*points, error) {
	d.alerts.Lock()
	defer d.alerts.Unlock()
	if d.alerts.done {
		return d.alerts.series, nil
	}
	ctx = context.WithValue(ctx, deriving{alertsMetric}, true)
	var all []*points
	for _, e := range d.memory.past.Excursions {
		from, to := e.From.Add(-aroundBefore), e.To.Add(aroundAfter)
		for _, r := range d.alerting {
			matrix, err := d.evaluate(ctx, r.expr, from, to, d.every)
			if err != nil {
				return nil, err
			}
			for _, s := range matrix {
				all = append(all, r.activity(s, d.every)...)
			}
		}
	}
	d.alerts.series, d.alerts.done = all, true
	return all, nil
}

// activity is what an alerting rule tells while its expression is true.
func (a alerting) activity(s promql.Series, every time.Duration) []*points {
	b := labels.NewBuilder(s.Metric)
	a.labels.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
	b.Set(labels.AlertName, a.name)
	b.Set(model.MetricNameLabel, alertsForMetric)
	since := &points{labels: b.Labels()}
	b.Set(model.MetricNameLabel, alertsMetric)
	b.Set("alertstate", "pending")
	pending := &points{labels: b.Labels()}
	b.Set("alertstate", "firing")
	firing := &points{labels: b.Labels()}
	all := []*points{since, pending, firing}
	end := func(t int64) {
		for _, p := range all {
			p.end(t, every)
		}
	}
	var active, last int64
	for _, f := range s.Floats {
		if last == 0 || f.T-last > every.Milliseconds()*3/2 {
			if last != 0 {
				end(last + every.Milliseconds())
			}
			active = f.T
		}
		last = f.T
		state, other := firing, pending
		if f.T-active < a.hold.Milliseconds() {
			state, other = other, state
		}
		other.end(f.T, every)
		state.add(f.T, 1)
		since.add(f.T, float64(active/1000))
	}
	end(last + every.Milliseconds())
	return slices.DeleteFunc(all, func(p *points) bool { return len(p.t) == 0 })
}
