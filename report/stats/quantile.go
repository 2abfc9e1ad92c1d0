package stats

import (
	"math"
	"slices"
)

// Quantile is the value below which a part p of sorted values lies, between two of them in proportion: definition 7 of
// R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", 1996. It is NaN without values.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Spread is how values are distributed.
type Spread struct {
	Of     int     `json:"of"` // how many there are
	Mean   float64 `json:"mean"`
	Least  float64 `json:"least"`
	P10    float64 `json:"p10"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Most   float64 `json:"most"`
}

// SpreadOf returns how values are distributed: nil if there are none.
func SpreadOf(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	return &Spread{
		len(sorted), sum / float64(len(sorted)), sorted[0], Quantile(sorted, 0.1), Quantile(sorted, 0.5),
		Quantile(sorted, 0.9), sorted[len(sorted)-1],
	}
}
