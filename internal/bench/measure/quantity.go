package measure

import (
	"fmt"
	"math"
	"slices"
)

// Quantity is what several rounds of one measurement gave, in one unit. The zero value is a
// measurement that was not made.
type Quantity struct {
	Unit   string // "s", "MB", "%", ...; empty for a plain number
	Rounds []float64
}

// Of returns a quantity of the given rounds.
func Of(unit string, rounds ...float64) Quantity { return Quantity{unit, rounds} }

// Add records another round.
func (q *Quantity) Add(v float64) { q.Rounds = append(q.Rounds, v) }

// Known reports whether anything was measured.
func (q Quantity) Known() bool { return len(q.Rounds) > 0 }

// Percentile returns the smallest value that at least p percent of the rounds do not exceed, NaN if
// there is none.
func (q Quantity) Percentile(p float64) float64 {
	if !q.Known() {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(q.Rounds))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median returns the middle of the rounds, the mean of the two middle ones if they are even.
func (q Quantity) Median() float64 {
	if !q.Known() {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(q.Rounds))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Min and Max return the ends of the range, NaN if there is none.
func (q Quantity) Min() float64 { return q.Percentile(0) }
func (q Quantity) Max() float64 { return q.Percentile(100) }

// String returns the median.
func (q Quantity) String() string {
	if !q.Known() {
		return ""
	}
	return format(q.Median(), q.Unit)
}

// Spread returns the range of the rounds, or nothing if there was one round only.
func (q Quantity) Spread() string {
	if len(q.Rounds) < 2 {
		return ""
	}
	return fmt.Sprintf("%s..%s /%d", number(q.Min()), number(q.Max()), len(q.Rounds))
}

func format(v float64, unit string) string {
	if unit == "" {
		return number(v)
	}
	return number(v) + " " + unit
}

// number prints three significant digits, but whole numbers whole.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case v == math.Trunc(v) || a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
