package prometheus

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/aiopslab/aiopslab/kit/past"
)

// lived is a database with a past, once it has been told one.
type lived struct {
	storage.Queryable
	past atomic.Pointer[memory]
}

// Querier implements storage.Queryable.
func (l *lived) Querier(mint, maxt int64) (storage.Querier, error) {
	m := l.past.Load()
	if m == nil {
		return l.Queryable.Querier(mint, maxt)
	}
	q := storage.NoopQuerier()
	if maxt >= m.cut {
		var err error
		if q, err = l.Queryable.Querier(max(mint, m.cut), maxt); err != nil {
			return nil, err
		}
	}
	return &livedQuerier{q, m, mint, min(maxt, m.cut-1)}, nil
}

// livedQuerier reads the present from the database, and the past from memory.
type livedQuerier struct {
	storage.Querier
	memory     *memory
	mint, maxt int64 // of the past
}

// Select implements storage.Querier.
func (q *livedQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints,
	matchers ...*labels.Matcher,
) storage.SeriesSet {
	mint, maxt, present := q.mint, q.maxt, storage.EmptySeriesSet()
	if hints == nil {
		present = q.Querier.Select(ctx, true, nil, matchers...)
	} else { // They are stronger than the times that the querier has.
		mint, maxt = max(mint, hints.Start), min(maxt, hints.End)
		h := *hints
		h.Start, h.DisableTrimming = max(h.Start, q.memory.cut), false
		if h.Start <= h.End {
			present = q.Querier.Select(ctx, true, &h, matchers...)
		}
	}
	list, err := q.recollect(ctx, mint, maxt, matchers)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	if len(list) == 0 {
		return present
	}
	return storage.NewMergeSeriesSet([]storage.SeriesSet{&recollected{list: list}, present}, 0,
		storage.ChainedSeriesMerge)
}

// recollect returns the series of the past, sorted by their labels.
func (q *livedQuerier) recollect(ctx context.Context, mint, maxt int64,
	matchers []*labels.Matcher,
) (list []storage.Series, err error) {
	if mint > maxt {
		return nil, nil
	}
	for _, name := range q.memory.names(matchers) {
		for _, w := range q.memory.series[name] {
			for _, s := range w.spans() {
				after := mint - max(w.rhythm.every, defaultInterval.Milliseconds()) // There may be the mark of its end.
				if s.from > maxt || s.to < after || s.gone == nil && !matches(w.labels, matchers) {
					continue
				}
				if r := w.remember(s); mint <= r.to+r.rhythm.every && matches(r.labels, matchers) {
					list = append(list, r.between(mint, maxt))
				}
			}
		}
	}
	derived, err := q.memory.derive.series(ctx, mint, maxt, matchers)
	if err != nil {
		return nil, err
	}
	list = append(list, derived...)
	slices.SortFunc(list, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return list, nil
}

// names are the names of series that may match.
func (m *memory) names(matchers []*labels.Matcher) []string {
	for _, x := range matchers {
		if x.Name == model.MetricNameLabel && x.Type == labels.MatchEqual {
			return []string{x.Value}
		}
	}
	return slices.Sorted(maps.Keys(m.series))
}

func matches(l labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(l.Get(m.Name)) {
			return false
		}
	}
	return true
}

// LabelValues implements storage.Querier.
func (q *livedQuerier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints,
	matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	list, notes, err := q.Querier.LabelValues(ctx, name, hints, matchers...)
	if err != nil {
		return list, notes, err
	}
	return q.with(ctx, list, matchers, func(l labels.Labels, add func(string)) {
		if v := l.Get(name); v != "" {
			add(v)
		}
	}), notes, nil
}

// LabelNames implements storage.Querier.
func (q *livedQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints,
	matchers ...*labels.Matcher,
) ([]string, annotations.Annotations, error) {
	list, notes, err := q.Querier.LabelNames(ctx, hints, matchers...)
	if err != nil {
		return list, notes, err
	}
	return q.with(ctx, list, matchers, func(l labels.Labels, add func(string)) {
		l.Range(func(x labels.Label) { add(x.Name) })
	}), notes, nil
}

// with adds what the series of the past have to a list.
func (q *livedQuerier) with(ctx context.Context, list []string, matchers []*labels.Matcher,
	each func(labels.Labels, func(string)),
) []string {
	all := map[string]bool{}
	for _, x := range list {
		all[x] = true
	}
	series, err := q.recollect(ctx, q.mint, q.maxt, matchers)
	if err != nil {
		return list
	}
	for _, s := range series {
		each(s.Labels(), func(x string) { all[x] = true })
	}
	return slices.Sorted(maps.Keys(all))
}

// recollected is a set of series.
type recollected struct {
	list []storage.Series
	next int
}

func (r *recollected) Next() bool                        { r.next++; return r.next <= len(r.list) }
func (r *recollected) At() storage.Series                { return r.list[r.next-1] }
func (r *recollected) Err() error                        { return nil }
func (r *recollected) Warnings() annotations.Annotations { return nil }

// between returns the samples of a time.
func (r *remembered) between(mint, maxt int64) storage.Series {
	return &storage.SeriesEntry{Lset: r.labels, SampleIteratorFn: func(chunkenc.Iterator) chunkenc.Iterator {
		last := min(maxt, r.to)
		if r.ends && r.to < maxt {
			last = min(maxt, r.to+r.rhythm.every) // There is the mark of its end.
		}
		return &samples{of: r, first: max(mint, r.from), last: last, next: math.MinInt64}
	}}
}

// time returns when the kth sample after the one at rhythm.at was taken. Prometheus makes samples exactly
// periodic, unless it was late.
func (r *remembered) time(k int64) int64 {
	t := r.rhythm.at + k*r.rhythm.every
	if u := past.Uniform(r.seed, uint64(t)); u < 0.06 {
		t += 3 + int64(u*500)
	}
	return t
}

// samples is an iterator over the past of a series.
type samples struct {
	of          *remembered
	first, last int64 // ms
	next        int64 // the number of the sample to come
	t           int64
	v           float64
	at          chunkenc.ValueType
}

// Next implements chunkenc.Iterator.
func (s *samples) Next() chunkenc.ValueType {
	if s.next == math.MinInt64 {
		s.next = (s.first-s.of.rhythm.at)/s.of.rhythm.every - 1
		for s.of.time(s.next) < s.first {
			s.next++
		}
	}
	s.at = chunkenc.ValNone
	if t := s.of.time(s.next); t <= s.last {
		s.t, s.at = t, chunkenc.ValFloat
		if s.v = s.of.value(timeOf(t)); t > s.of.to {
			s.v = math.Float64frombits(value.StaleNaN)
		}
		s.next++
	}
	return s.at
}

// Seek implements chunkenc.Iterator.
func (s *samples) Seek(t moment) chunkenc.ValueType {
	if s.at == chunkenc.ValFloat && s.t >= t {
		return s.at
	}
	if t > s.first && (s.next == math.MinInt64 || t > s.t) {
		s.first, s.next = t, math.MinInt64
	}
	return s.Next()
}

func (s *samples) At() (int64, float64) { return s.t, s.v }
func (s *samples) AtT() int64           { return s.t }
func (s *samples) AtST() int64          { return 0 }
func (s *samples) Err() error           { return nil }

func (s *samples) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) { return 0, nil }

func (s *samples) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return 0, nil
}
