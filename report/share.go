package report

import "github.com/aiopslab/aiopslab/report/stats"

// Share is a part of a number of runs. Low and High are Wilson's 95 % interval: the true share lies there if the
// runs are a fair sample. Without any run it goes from 0 to 1.
type Share struct {
	N     int     `json:"n"`
	Of    int     `json:"of"`
	Value float64 `json:"value"` // 0 if there are no runs
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ShareOf is the share of solved runs. If problems were tried more than once, its interval is as wide as runs that are
// alike make it.
func ShareOf(problems []stats.Group) Share {
	solved, of := 0, 0
	for _, g := range problems {
		solved, of = solved+g.Solved, of+g.Of
	}
	s := NewShare(solved, of)
	if len(problems) < of {
		_, i := stats.Clustered(problems)
		s.Low, s.High = i.Low, i.High
	}
	return s
}

// NewShare returns the share that n has in a number of runs.
func NewShare(n, of int) Share {
	if of == 0 {
		return Share{High: 1}
	}
	p := float64(n) / float64(of)
	i := stats.Wilson(p, float64(of))
	return Share{n, of, p, i.Low, i.High}
}
