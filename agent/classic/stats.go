package classic

import (
	"math"
	"slices"
	"strings"
)

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(1, len(v)))
}

// deviation is the standard deviation of a sample.
func deviation(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	m, sum := mean(v), 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(v)-1))
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// quantile is the value that a part of a sample is below, or NaN if there is none.
func quantile(v []float64, part float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(v))[min(len(v)-1, int(part*float64(len(v))))]
}

// spread is the standard deviation of a sample as its median says it: an outlier does not matter.
func spread(v []float64) float64 {
	m := median(v)
	away := make([]float64, len(v))
	for i, x := range v {
		away[i] = math.Abs(x - m)
	}
	return 1.4826 * median(away)
}

// relativeNoise is how much of its mean a healthy signal may differ by in any case.
const relativeNoise = 0.1

// noise is the least deviation that a signal is taken to have. A minute is too short to see how much
// it can be, and a signal that did not move at all would make an anomaly of a whiff.
func noise(k signal, mean float64) float64 {
	floor := 1.0
	switch {
	case k.name == latency:
		floor = 0.01 // seconds
	case strings.HasPrefix(k.name, "trace:"), strings.HasPrefix(k.name, "log:"):
		floor = 0.5 // per second
	case strings.HasPrefix(k.name, "container_cpu") && strings.Contains(k.name, "seconds"):
		floor = 0.02 // cores
	case strings.HasPrefix(k.name, "container_memory"), strings.HasPrefix(k.name, "container_spec_memory"):
		floor = 4 << 20 // bytes
	case strings.HasPrefix(k.name, "container_network") && strings.Contains(k.name, "bytes"):
		floor = 4 << 10 // bytes per second
	case strings.HasPrefix(k.name, "container_network") && strings.Contains(k.name, "packets_total"):
		floor = 10
	}
	return max(floor, relativeNoise*math.Abs(mean))
}

// normal is how a signal is when all is well.
type normal struct{ mean, deviation float64 }

func learn(k signal, healthy []float64) normal {
	m := mean(healthy)
	return normal{m, max(deviation(healthy), noise(k, m))}
}

// sigmas is how many standard deviations a value is away from normal. What is not known is normal.
func (n normal) sigmas(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return math.Abs(x-n.mean) / n.deviation
}
