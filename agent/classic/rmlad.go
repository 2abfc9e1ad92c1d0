package classic

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// What was decided where the description of RMLAD leaves it open:
//
//   - The anomaly score of the logs at a time is how far the number of lines of each kind is outside of
//     the range it had at the other times of the healthy system, by logarithms, over all kinds. Lines are of a
//     kind if they are of one service and differ in numbers and names alone.
//   - The correlation of a metric with the score is their mutual information over all of the time, in
//     quarters of their ranges. To be robust against delays, the best of three lags counts; to have more data, the
//     series are augmented with the points between their values.
//   - Of metrics that correlate equally well, the one that changed most comes first. One that did not change is
//     none. The service of the metric is the answer.
//   - If the logs are as usual, nothing is wrong.
const (
	unusual  = 3.0 // deviations of the score that make the logs unusual
	scoreLow = 0.7 // how much the score differs by in any case: one new line
	changed  = 3.0 // deviations that make a metric a candidate
	quarters = 4
)

// rmlad returns the services of the metrics that go with the anomaly of the logs, the best first.
func rmlad(healthy, now *telemetry) []string {
	hs, ns := healthy.signals(), now.signals()
	before, after := logScores(healthy, now, hs.ticks, ns.ticks)
	if median(after) <= median(before)+unusual*max(spread(before), scoreLow) {
		return nil
	}
	type candidate struct {
		service             string
		information, change float64
	}
	var list []candidate
	for _, p := range pairs(hs, ns) {
		if !strings.HasPrefix(p.name, "container_") {
			continue
		}
		change := learn(p.signal, p.healthy).sigmas(mean(p.now))
		if change < changed {
			continue
		}
		metric := append(augment(p.healthy), augment(p.now)...)
		scores := append(augment(before), augment(after)...)
		best := 0.0
		for _, lag := range []int{-1, 0, 1} {
			best = max(best, information(scores, metric, lag))
		}
		// Rounded, because sums that are equal may differ in their last digits.
		list = append(list, candidate{p.service, math.Round(best*1e6) / 1e6, change})
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.information, b.information), -cmp.Compare(a.change, b.change))
	})
	var services []string
	for _, c := range list {
		if !slices.Contains(services, c.service) {
			services = append(services, c.service)
		}
	}
	return services
}

// logScores are how unusual the logs are in each tick of both intervals. A tick of the healthy one is
// compared with the others.
func logScores(healthy, now *telemetry, before, after int) (h, n []float64) {
	usual := healthy.templates(before)
	for i, counts := range usual {
		h = append(h, outside(counts, slices.Delete(slices.Clone(usual), i, i+1)))
	}
	for _, counts := range now.templates(after) {
		n = append(n, outside(counts, usual))
	}
	return h, n
}

// outside is how far counts are out of the range of others. Logarithms, because ten times as many
// lines are not ten times as unusual.
func outside(counts map[string]float64, others []map[string]float64) float64 {
	kinds := maps.Clone(counts)
	for _, o := range others {
		maps.Copy(kinds, o)
	}
	sum := 0.0
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		low, high := math.Inf(1), 0.0
		for _, o := range others {
			low, high = min(low, o[k]), max(high, o[k])
		}
		low = min(low, high) // There may be no others.
		sum += max(0, math.Log1p(counts[k])-math.Log1p(high), math.Log1p(low)-math.Log1p(counts[k]))
	}
	return sum
}

// variable is what differs in lines of one kind: numbers, words with numbers in them, quoted text.
var variable = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s=:,()\[\]{}"']*\d[^\s=:,()\[\]{}"']*`)

// templates counts the kinds of lines of each service in each tick.
func (t *telemetry) templates(ticks int) []map[string]float64 {
	list := make([]map[string]float64, ticks)
	for i := range list {
		list[i] = map[string]float64{}
	}
	for _, l := range t.lines {
		if i := t.tickOf(l.at, ticks); i >= 0 {
			list[i][l.service+": "+variable.ReplaceAllString(l.text, "*")]++
		}
	}
	return list
}

// augment puts the points between neighbours into a series.
func augment(v []float64) []float64 {
	var out []float64
	for i, x := range v {
		if i > 0 {
			out = append(out, (v[i-1]+x)/2)
		}
		out = append(out, x)
	}
	return out
}

// information is the mutual information of two series, in bits, with b so many points later than a.
func information(a, b []float64, lag int) float64 {
	if lag < 0 {
		return information(b, a, -lag)
	}
	n := min(len(a), len(b)-lag)
	if n < 2 {
		return 0
	}
	x, y := quarter(a[:n]), quarter(b[lag:lag+n])
	var both [quarters][quarters]float64
	var xs, ys [quarters]float64
	for i := range n {
		both[x[i]][y[i]] += 1 / float64(n)
		xs[x[i]] += 1 / float64(n)
		ys[y[i]] += 1 / float64(n)
	}
	sum := 0.0
	for i := range both {
		for j, p := range both[i] {
			if p > 0 {
				sum += p * math.Log2(p/(xs[i]*ys[j]))
			}
		}
	}
	return sum
}

// quarter is the quarter of the range that each value is in.
func quarter(v []float64) []int {
	low, high := slices.Min(v), slices.Max(v)
	out := make([]int, len(v))
	for i, x := range v {
		if high > low {
			out[i] = min(quarters-1, int(quarters*(x-low)/(high-low)))
		}
	}
	return out
}
