package report

import "math"

// z is how many standard deviations of a normal distribution hold 95 % of it, on both sides.
const z = 1.959963984540054

// Share is a part of a number of runs. Low and High are Wilson's 95 % interval: the true share lies there if the
// runs are a fair sample. Without any run it goes from 0 to 1.
type Share struct {
	N     int     `json:"n"`
	Of    int     `json:"of"`
	Value float64 `json:"value"` // 0 if there are no runs
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// NewShare returns the share that n has in a number of runs.
func NewShare(n, of int) Share {
	if of == 0 {
		return Share{High: 1}
	}
	m := float64(of)
	p := float64(n) / m
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Share{n, of, p, max(0, middle-half), min(1, middle+half)}
}
