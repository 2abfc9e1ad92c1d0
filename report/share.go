package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/report/stats"
)

// Share is a part of a number of runs. Low and High are its 95 % interval: the true share lies there if the problems
// are a fair sample. Without any run it goes from 0 to 1.
type Share struct {
	N     int     `json:"n"`
	Of    int     `json:"of"`
	Value float64 `json:"value"` // 0 if there are no runs
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Problems are how often something was so, by the problem of the runs. Every share of runs is one of these: the runs
// of one problem are alike. The zero value is ready to use.
type Problems map[string]stats.Group

// Add takes a run of a problem.
func (p *Problems) Add(problem string, yes bool) {
	if *p == nil {
		*p = Problems{}
	}
	g := (*p)[problem]
	g.Of++
	g.Solved += bit(yes)
	(*p)[problem] = g
}

// Share is the part of the runs of which it was so. If problems were tried more than once, its interval is as wide as
// runs that are alike make it.
func (p Problems) Share() Share {
	groups, so, of := p.groups(), 0, 0
	for _, g := range groups {
		so, of = so+g.Solved, of+g.Of
	}
	s := NewShare(so, of)
	if len(groups) < of {
		_, i := stats.Clustered(groups)
		s.Low, s.High = i.Low, i.High
	}
	return s
}

// groups are the problems, those with the fewest tries first: in the same order for the same records.
func (p Problems) groups() []stats.Group {
	return slices.SortedFunc(maps.Values(p), func(a, b stats.Group) int {
		return cmp.Or(a.Of-b.Of, a.Solved-b.Solved)
	})
}

// NewShare is the share that n has in a number of runs of which none are alike, or that are all of one problem if that
// problem is all that is asked about. Its interval is Wilson's.
func NewShare(n, of int) Share {
	if of == 0 {
		return Share{High: 1}
	}
	p := float64(n) / float64(of)
	i := stats.Wilson(p, float64(of))
	return Share{n, of, p, i.Low, i.High}
}
