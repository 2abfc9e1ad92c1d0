package classic

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// tick is how long the windows are in which things are counted.
const tick = 5 * time.Second

// signal names a series of numbers about a service.
type signal struct{ service, name string }

// series are signals over the ticks of an interval. All are of the same length; NaN is a tick that
// says nothing, such as the latency of no requests.
type series struct {
	ticks  int
	values map[signal][]float64
}

// The names of signals that are not metrics.
const (
	callRate  = "trace: calls per second"
	errorRate = "trace: errors per second"
	latency   = "trace: mean duration"
	lineRate  = "log: lines per second"
	alarmRate = "log: lines with an alarming word per second"
)

// signals counts and averages what is in an export, by service.
func (t *telemetry) signals() series {
	s := series{t.ticks(), map[signal][]float64{}}
	t.metricSignals(s)
	t.traceSignals(s)
	t.logSignals(s)
	return s
}

// ticks is how many ticks there are.
func (t *telemetry) ticks() int { return max(1, int(t.to.Sub(t.from)/tick)) }

// of returns a signal, which begins as zeros.
func (s series) of(service, name string) []float64 {
	k := signal{service, name}
	if s.values[k] == nil {
		s.values[k] = make([]float64, s.ticks)
	}
	return s.values[k]
}

// tickOf is the tick that a time is in, or -1.
func (t *telemetry) tickOf(at int64, ticks int) int {
	i := (at - t.from.Unix()) / int64(tick/time.Second)
	if at < t.from.Unix() || i >= int64(ticks) {
		return -1
	}
	return int(i)
}

// metricSignals makes signals of metrics: of counters their rate, of others their value. Those of the
// pods of a service are added up, so that a pod that is gone shows.
func (t *telemetry) metricSignals(s series) {
	type podMetric struct {
		signal
		pod string
	}
	times := map[string]map[int64]bool{} // of each metric
	values := map[podMetric]map[int64]float64{}
	for _, p := range t.samples {
		if times[p.metric] == nil {
			times[p.metric] = map[int64]bool{}
		}
		times[p.metric][p.at] = true
		k := podMetric{signal{p.service, p.metric}, p.pod}
		if values[k] == nil {
			values[k] = map[int64]float64{}
		}
		values[k][p.at] += p.value
	}
	pods := slices.SortedFunc(maps.Keys(values), func(a, b podMetric) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.name, b.name), cmp.Compare(a.pod, b.pod))
	})
	for _, k := range pods {
		grid := slices.Sorted(maps.Keys(times[k.name]))
		out := s.of(k.service, k.name)
		for i := range out {
			middle := float64(t.from.Unix()) + (float64(i)+0.5)*tick.Seconds()
			g := 0 // The last sample before the middle of the tick that has one behind it.
			for g+2 < len(grid) && float64(grid[g+1]) <= middle {
				g++
			}
			if !isCounter(k.name) {
				out[i] += values[k][grid[g]]
				continue
			}
			if g+1 < len(grid) {
				if after, ok := values[k][grid[g+1]]; ok {
					out[i] += max(0, after-values[k][grid[g]]) / float64(grid[g+1]-grid[g])
				}
			}
		}
	}
}

// isCounter reports whether a metric only grows. The name may have a network interface behind it.
func isCounter(metric string) bool {
	name, _, _ := strings.Cut(metric, ".")
	return strings.HasSuffix(name, "_total")
}

func (t *telemetry) traceSignals(s series) {
	calls := map[signal][]float64{}
	for _, p := range t.spans {
		i := t.tickOf(p.at, s.ticks)
		if i < 0 {
			continue
		}
		s.of(p.service, callRate)[i] += 1 / tick.Seconds()
		if e := s.of(p.service, errorRate); p.failed {
			e[i] += 1 / tick.Seconds()
		}
		s.of(p.service, latency)[i] += p.duration
		k := signal{p.service, latency}
		if calls[k] == nil {
			calls[k] = make([]float64, s.ticks)
		}
		calls[k][i]++
	}
	for k, n := range calls {
		for i := range n {
			s.values[k][i] /= n[i] // 0/0 is NaN.
		}
	}
}

func (t *telemetry) logSignals(s series) {
	for _, l := range t.lines {
		i := t.tickOf(l.at, s.ticks)
		if i < 0 {
			continue
		}
		s.of(l.service, lineRate)[i] += 1 / tick.Seconds()
		if a := s.of(l.service, alarmRate); alarming(l.text) {
			a[i] += 1 / tick.Seconds()
		}
	}
}

// alarms are words in logs that nobody writes when all is well.
var alarms = []string{
	"error", "err:", "fail", "exception", "panic", "fatal", "refused", "timeout", "timed out", "deadline", "denied",
	"unauthorized", "not authorized", "unavailable", "unreachable", "no such host", "reset by peer", "killed",
	"out of memory",
}

func alarming(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(alarms, func(w string) bool { return strings.Contains(text, w) })
}

// pair is a signal when all was well, and now.
type pair struct {
	signal
	healthy, now []float64 // without NaN
	ticks        []float64 // now, with NaN
}

// pairs puts the signals of two intervals side by side, in the order of names. One that is missing in
// an interval was zero.
func pairs(healthy, now series) []pair {
	names := map[signal]bool{}
	for _, s := range []series{healthy, now} {
		for k := range s.values {
			names[k] = true
		}
	}
	var list []pair
	for _, k := range slices.SortedFunc(maps.Keys(names), func(a, b signal) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.name, b.name))
	}) {
		before, after := healthy.all(k), now.all(k)
		list = append(list, pair{k, known(before), known(after), after})
	}
	return list
}

func (s series) all(k signal) []float64 {
	if v := s.values[k]; v != nil {
		return v
	}
	return make([]float64, s.ticks)
}

func known(v []float64) []float64 { return slices.DeleteFunc(slices.Clone(v), math.IsNaN) }

// byService yields the pairs of one service after another, of which there is one at least.
func byService(list []pair) iter.Seq[[]pair] {
	return func(yield func([]pair) bool) {
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(p pair) bool { return p.service != list[0].service })
			if n < 0 {
				n = len(list)
			}
			if !yield(list[:n]) {
				return
			}
			list = list[n:]
		}
	}
}
