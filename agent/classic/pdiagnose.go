package classic

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// PDiagnose. Public are the abstract, and what later papers say of it: metrics, logs and traces are each made time
// series, light detectors without training find the anomalies of each series by itself, and anomalies vote for
// where the issue is (Nezha, FSE 2023, and surveys of root cause analysis call it voting, or late fusion). No
// public text of its detectors was found. They, which of them is for what, and all numbers are chosen here:
//
//   - Series: the metrics of containers; of the spans of a service, the tail of their own durations and how many fail
//     by themselves; of its logs, the lines with an alarming word. A span's own duration is without its
//     children's, and it fails by itself if no child of it does: callers would have all votes otherwise.
//   - Metrics are judged by a kernel density estimate of their healthy values: how far out is the value?
//     Logs and traces, which are zero most of the time, by a threshold above the weighted moving average at the end of
//     the healthy time.
//   - Each anomalous value is a vote, and goes into the queue in the order of time.
//   - The service with most votes is at the root.
const (
	// tail is the part of a metric's healthy distribution that counts as anomalous, on either side.
	tail = 0.0005
	// tailQuantile is the tail of the durations in a tick.
	tailQuantile = 0.95
	// slowFactor is how many deviations above the moving average an anomaly of logs and traces is.
	slowFactor = 3.0
	// Whatever the deviation, an anomaly is so far above the average at least: minRate per second, minSlow seconds. A
	// minute is too short to see how much is usual.
	minRate, minSlow = 0.4, 0.05
	// minVotes are the votes that a series needs to be heard, of the six ticks that there are: a fault stays.
	minVotes = 3
)

// source is where a vote comes from.
type source string

const (
	fromMetrics source = "metrics"
	fromTraces  source = "traces"
	fromLogs    source = "logs"
)

// quorum is how many series of a source must be heard. There are hundreds of metrics, of which one or two may well
// do something new. The votes of a source weigh 1 together, for the same reason.
var quorum = map[source]int{fromMetrics: 3, fromTraces: 1, fromLogs: 1}

// The names of the series that are made of spans.
const (
	ownTail     = "trace: tail of own durations"
	ownFailures = "trace: own failures per second"
)

// vote says that a series was anomalous in a tick.
type vote struct {
	tick int
	source
	signal
}

// pdiagnose returns the services that have votes, those with most of them first.
func pdiagnose(healthy, now *telemetry) []string { return elect(voteQueue(healthy, now)) }

// voteQueue has the votes of all series, in the order of time.
func voteQueue(healthy, now *telemetry) []vote {
	var queue []vote
	poll := func(from source, list []pair, anomalous func(pair, float64) bool) {
		for _, p := range list {
			for i, x := range p.ticks {
				if !math.IsNaN(x) && anomalous(p, x) {
					queue = append(queue, vote{i, from, p.signal})
				}
			}
		}
	}
	only := func(list []pair, wanted func(name string) bool) []pair {
		return slices.DeleteFunc(list, func(p pair) bool { return !wanted(p.name) })
	}
	list := pairs(healthy.signals(), now.signals())
	poll(fromMetrics, only(slices.Clone(list), isMetric), func(p pair, x float64) bool { return density(p, x) < tail })
	poll(fromLogs, only(list, func(name string) bool { return name == alarmRate }), aboveAverage)
	poll(fromTraces, pairs(healthy.ownSignals(), now.ownSignals()), aboveAverage)
	slices.SortStableFunc(queue, func(a, b vote) int { return cmp.Compare(a.tick, b.tick) })
	return queue
}

// elect counts the votes, and returns the services that have any, those with most of them first.
func elect(queue []vote) []string {
	counts := map[vote]float64{} // of a series, whatever the tick
	for _, v := range queue {
		counts[vote{source: v.source, signal: v.signal}]++
	}
	maps.DeleteFunc(counts, func(_ vote, n float64) bool { return n < minVotes })
	heard, sums := map[source]int{}, map[source]float64{}
	for v, n := range counts {
		heard[v.source]++
		sums[v.source] += n
	}
	total := map[string]float64{}
	for v, n := range counts {
		if heard[v.source] >= quorum[v.source] {
			total[v.service] += n / sums[v.source]
		}
	}
	return slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		// Rounded, because equal sums in another order differ in their last digits.
		return cmp.Or(-cmp.Compare(math.Round(total[a]*1e9), math.Round(total[b]*1e9)), cmp.Compare(a, b))
	})
}

func isMetric(name string) bool { return strings.HasPrefix(name, "container_") }

// density is the part of the healthy distribution that is further out than x. The distribution is
// estimated with a normal kernel of Silverman's width around every value.
func density(p pair, x float64) float64 {
	n := float64(max(1, len(p.healthy)))
	width := max(1.06*deviation(p.healthy)*math.Pow(n, -0.2), noise(p.signal, mean(p.healthy)))
	below := 0.0
	for _, h := range p.healthy {
		below += math.Erfc(-(x-h)/(width*math.Sqrt2)) / 2 / n
	}
	return min(below, 1-below)
}

// aboveAverage reports whether a value is far above the moving average of the healthy ones.
func aboveAverage(p pair, x float64) bool {
	least := minRate
	if p.name == ownTail {
		least = minSlow
	}
	return x > weightedAverage(p.healthy)+max(least, slowFactor*deviation(p.healthy))
}

// weightedAverage is the moving average at the end of a series: the newer a value, the more it
// weighs.
func weightedAverage(v []float64) float64 {
	sum, weights := 0.0, 0.0
	for i, x := range v {
		sum += x * float64(i+1)
		weights += float64(i + 1)
	}
	return sum / max(1, weights)
}

// ownSignals are the series of what spans do by themselves.
func (t *telemetry) ownSignals() series {
	s := series{t.ticks(), map[signal][]float64{}}
	below, blamed := map[string]float64{}, map[string]bool{} // by the span above
	for _, p := range t.spans {
		below[p.parent] += p.duration
		blamed[p.parent] = blamed[p.parent] || p.failed
	}
	durations := map[string][][]float64{} // of services, by tick
	for _, p := range t.spans {
		i := t.tickOf(p.at, s.ticks)
		if i < 0 {
			continue
		}
		if durations[p.service] == nil {
			durations[p.service] = make([][]float64, s.ticks)
		}
		durations[p.service][i] = append(durations[p.service][i], max(0, p.duration-below[p.id]))
		if f := s.of(p.service, ownFailures); p.failed && !blamed[p.id] {
			f[i] += 1 / tick.Seconds()
		}
	}
	for service, ticks := range durations {
		for i, d := range ticks {
			s.of(service, ownTail)[i] = quantile(d, tailQuantile)
		}
	}
	return s
}
