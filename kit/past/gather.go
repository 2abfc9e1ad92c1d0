package past

import (
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

const (
	// usuallyOver is how long few requests take, in seconds.
	usuallyOver = 1
	// rare is how often something was counted that is rarely counted.
	rare = 10
	// usualShare is the part of requests that takes no longer.
	usualShare = 0.98
)

// Gatherer gathers metrics whose counters have a past. It has none until it is aged.
type Gatherer struct {
	prometheus.Gatherer

	mu     sync.Mutex
	marked map[string]counted
	before map[string]counted
	lived  func(name string, m *dto.Metric) (Lived, bool) // of metrics that come later
}

// counted is what a metric has counted.
type counted struct {
	value   float64   // of a counter, the sum of others
	samples float64   // of histograms and summaries
	buckets []float64 // of histograms, in their order
}

// total is how often a metric has counted.
func (c counted) total() float64 {
	if c.samples > 0 {
		return c.samples
	}
	return c.value
}

// isFailure reports whether a metric counts what went wrong. That it did when the program was started does not
// mean that it always does.
func isFailure(m *dto.Metric) bool {
	for _, l := range m.Label {
		switch v := l.GetValue(); l.GetName() {
		case "code":
			return strings.HasPrefix(v, "5")
		case "grpc_code":
			return v != "OK"
		case "result":
			return v == "error"
		}
	}
	return false
}

// Mark notes what was counted before there was the usual load.
func (g *Gatherer) Mark() error {
	families, err := g.Gatherer.Gather()
	if err != nil {
		return err
	}
	marked := map[string]counted{}
	for _, f := range families {
		for _, m := range f.Metric {
			marked[key(f.GetName(), m)] = count(m)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.marked = marked
	return nil
}

// count returns what a metric has counted.
func count(m *dto.Metric) (c counted) {
	switch {
	case m.Counter != nil:
		c.value = m.Counter.GetValue()
	case m.Summary != nil:
		c.value, c.samples = m.Summary.GetSampleSum(), float64(m.Summary.GetSampleCount())
	case m.Histogram != nil:
		c.value, c.samples = m.Histogram.GetSampleSum(), float64(m.Histogram.GetSampleCount())
		for _, b := range m.Histogram.Bucket {
			c.buckets = append(c.buckets, float64(b.GetCumulativeCount()))
		}
	}
	return c
}

// Age says that the program was started at a time, and has counted since as it has since Mark. What
// the process itself tells (its CPU time) is not counted here: its container has an age of its own.
func (g *Gatherer) Age(p *Past, started time.Time) error {
	families, err := g.Gatherer.Gather()
	if err != nil {
		return err
	}
	took := p.Join.Sub(p.Loaded).Seconds()
	if took <= 0 || !started.Before(p.Loaded) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = map[string]counted{}
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "process_") {
			continue
		}
		for _, m := range f.Metric {
			now, marked, took := count(m), g.marked[key(name, m)], took
			if now.total()-marked.total() < rare && p.Began.Before(p.Loaded) && !isFailure(m) {
				marked, took = counted{}, p.Join.Sub(p.Began).Seconds() // It takes longer to see what is rare.
			}
			// more is what is missing to what there would be now.
			more := func(now, marked float64, metric string, le float64) float64 {
				return max(0, (now-marked)*p.Counted(metric, le, started, p.Join)/took-now)
			}
			before := counted{samples: math.Floor(more(now.samples, marked.samples, name+"_count", 0))}
			if m.Counter != nil {
				before.value = whole(more(now.value, marked.value, name, 0), now.value)
			} else {
				before.value = more(now.value, marked.value, name+"_sum", 0)
			}
			for i, n := range now.buckets {
				le, then := m.Histogram.Bucket[i].GetUpperBound(), 0.0
				if i < len(marked.buckets) {
					then = marked.buckets[i]
				}
				if le >= usuallyOver { // A machine that is busy for a moment is not as slow all the time.
					n = max(n, then+usualShare*(now.samples-marked.samples))
				}
				b := more(n, then, name+"_bucket", le) + n - now.buckets[i]
				before.buckets = append(before.buckets, min(math.Floor(b), before.samples+now.samples-now.buckets[i]))
			}
			g.before[key(name, m)] = before
		}
	}
	return nil
}

// Lived is what a metric has counted before: how often, and the sum of it. A counter has a sum alone.
type Lived struct{ Samples, Sum float64 }

// Live says what metrics have counted before now in all. What f has nothing to say of has counted nothing. It is for
// who knows how often it does something, and need not guess it from the moments after its start.
func (g *Gatherer) Live(f func(name string, m *dto.Metric) (Lived, bool)) error {
	families, err := g.Gatherer.Gather()
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before, g.lived = map[string]counted{}, f
	for _, family := range families {
		for _, m := range family.Metric {
			if l, ok := f(family.GetName(), m); ok {
				g.before[key(family.GetName(), m)] = l.before(m, count(m))
			}
		}
	}
	return nil
}

// before is what a metric has counted before it began to count.
func (l Lived) before(m *dto.Metric, now counted) counted {
	c := counted{value: whole(max(0, l.Sum-now.value), now.value), samples: math.Floor(max(0, l.Samples-now.samples))}
	for i, n := range now.buckets {
		part := 1.0
		if now.samples > 0 {
			part = n / now.samples
		} else if m.Histogram.Bucket[i].GetUpperBound() < l.Sum/l.Samples {
			part = 0 // Without an example, all are as they are on average.
		}
		c.buckets = append(c.buckets, math.Floor(c.samples*part))
	}
	return c
}

// whole returns x without its fraction if the number it continues has none.
func whole(x, like float64) float64 {
	if like == math.Trunc(like) {
		return math.Trunc(x)
	}
	return x
}

// youngest is what a metric has counted that was not there yet when it was said what others had counted.
func (g *Gatherer) youngest(name string, m *dto.Metric) (Lived, bool) {
	if g.lived == nil {
		return Lived{}, false
	}
	return g.lived(name, m)
}

func key(name string, m *dto.Metric) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range m.Label { // They are sorted.
		b.WriteString("\x00" + l.GetName() + "\x00" + l.GetValue())
	}
	return b.String()
}

// Gather implements prometheus.Gatherer.
func (g *Gatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.before) == 0 && g.lived == nil {
		return families, err
	}
	for _, f := range families {
		for _, m := range f.Metric {
			k := key(f.GetName(), m)
			c, ok := g.before[k]
			if l, old := g.youngest(f.GetName(), m); !ok && old {
				c, ok = l.before(m, counted{buckets: make([]float64, len(count(m).buckets))}), true
				g.before[k] = c
			}
			if ok {
				c.addTo(m)
			}
		}
	}
	return families, err
}

func (c counted) addTo(m *dto.Metric) {
	add := func(p **float64, by float64) {
		v := by
		if *p != nil {
			v += **p
		}
		*p = &v
	}
	addCount := func(p **uint64, by uint64) {
		v := by
		if *p != nil {
			v += **p
		}
		*p = &v
	}
	switch {
	case m.Counter != nil:
		add(&m.Counter.Value, c.value)
	case m.Summary != nil:
		add(&m.Summary.SampleSum, c.value)
		addCount(&m.Summary.SampleCount, uint64(c.samples))
	case m.Histogram != nil:
		add(&m.Histogram.SampleSum, c.value)
		addCount(&m.Histogram.SampleCount, uint64(c.samples))
		for i, b := range m.Histogram.Bucket {
			if i < len(c.buckets) {
				addCount(&b.CumulativeCount, uint64(c.buckets[i]))
			}
		}
	}
}
