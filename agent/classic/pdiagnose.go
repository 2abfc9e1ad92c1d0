package classic

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// What was decided where the description of PDiagnose leaves it open:
//
//   - Metrics: the weighted moving average of the last half minute is anomalous if it is far in a tail
//     of the kernel density estimate of the healthy values. Each such metric is a vote.
//   - Logs: each line with an alarming word is a vote, as far as there are more of them than when all was well.
//   - Traces: a span is anomalous if it failed, or took much longer than its operation did when all was
//     well. Of those that called each other only the last is a vote: the others waited for it. Votes count as far as
//     there are more of them than when all was well.
//   - The votes of a source are worth 1 together, whatever their number, and a source with few votes
//     is not heard. The service with the most is at the root.
const (
	tail       = 0.0005 // of a metric's distribution, on either side
	minMetrics = 3      // votes for metrics to be heard
	minRate    = 0.4    // votes per second for logs and traces to be heard
	slowFactor = 3.0    // deviations that a slow span is above the mean of its operation
	slowFloor  = 0.05   // seconds that it is above it at least
	minShare   = 0.05   // of a service's spans that are anomalous, beyond what is usual, for their votes to count
)

// votes are how much a source has against each service.
type votes map[string]float64

// pdiagnose returns the services that have votes, those with most of them first.
func pdiagnose(healthy, now *telemetry) []string {
	total := votes{}
	list := pairs(healthy.signals(), now.signals())
	total.add(metricVotes(list), minMetrics)
	total.add(logVotes(list), minRate)
	total.add(traceVotes(healthy, now), minRate)
	return slices.SortedFunc(maps.Keys(total), func(a, b string) int {
		return cmp.Or(-cmp.Compare(total[a], total[b]), cmp.Compare(a, b))
	})
}

// add counts a source's votes as its share of one, unless they are too few.
func (v votes) add(source votes, quorum float64) {
	services := slices.Sorted(maps.Keys(source))
	sum := 0.0
	for _, s := range services {
		sum += source[s]
	}
	if sum < quorum {
		return
	}
	for _, s := range services {
		v[s] += source[s] / sum
	}
}

func metricVotes(list []pair) votes {
	v := votes{}
	for _, p := range list {
		if !strings.HasPrefix(p.name, "container_") {
			continue
		}
		if t := density(p, weightedAverage(p.now)); t < tail {
			v[p.service]++
		}
	}
	return v
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

func logVotes(list []pair) votes {
	v := votes{}
	for _, p := range list {
		if p.name == alarmRate {
			if more := mean(p.now) - mean(p.healthy) - 2*deviation(p.healthy); more > 0 {
				v[p.service] = more
			}
		}
	}
	return v
}

// traceVotes are of the deepest anomalous spans, per second.
func traceVotes(healthy, now *telemetry) votes {
	durations := map[signal][]float64{}
	for _, s := range healthy.spans {
		k := signal{s.service, s.operation}
		durations[k] = append(durations[k], s.duration)
	}
	usual := map[signal]normal{}
	for k, d := range durations {
		usual[k] = normal{mean(d), deviation(d)}
	}
	before, allBefore := anomalousSpans(healthy, usual)
	after, allAfter := anomalousSpans(now, usual)
	v := votes{}
	for service, rate := range after {
		share := rate / allAfter[service]
		if allBefore[service] > 0 {
			share -= before[service] / allBefore[service]
		}
		if share >= minShare {
			v[service] = share * allAfter[service]
		}
	}
	return v
}

// anomalousSpans are the deepest anomalous spans of each service, and all of its spans, per second.
func anomalousSpans(t *telemetry, usual map[signal]normal) (deepest, all votes) {
	anomalous := map[string]bool{} // by the span's ID
	waited := map[string]bool{}    // for one that is anomalous
	for _, s := range t.spans {
		n, known := usual[signal{s.service, s.operation}]
		slow := known && s.duration > n.mean+max(slowFloor, slowFactor*n.deviation)
		if s.failed || slow {
			anomalous[s.id], waited[s.parent] = true, true
		}
	}
	deepest, all = votes{}, votes{}
	for _, s := range t.spans {
		all[s.service] += 1 / t.to.Sub(t.from).Seconds()
		if anomalous[s.id] && !waited[s.id] {
			deepest[s.service] += 1 / t.to.Sub(t.from).Seconds()
		}
	}
	return deepest, all
}
