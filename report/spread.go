package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/report/stats"
)

// Spreads are how what runs took is distributed, over those that count. One that no run tells is nil.
type Spreads struct {
	Seconds   *stats.Spread `json:"seconds,omitempty"`
	Steps     *stats.Spread `json:"steps,omitempty"`
	InTokens  *stats.Spread `json:"in_tokens,omitempty"`
	OutTokens *stats.Spread `json:"out_tokens,omitempty"`
	Cost      *stats.Spread `json:"cost,omitempty"`
}

// taken is what runs took, in the order of measures.
type taken [5][]float64

func (v *taken) add(r *Run) {
	for i, m := range measures {
		if value, ok := m.of(r); ok {
			v[i] = append(v[i], value)
		}
	}
}

func (v *taken) spreads() Spreads {
	var list [len(v)]*stats.Spread
	for i, values := range v {
		list[i] = stats.SpreadOf(values)
	}
	return Spreads{list[0], list[1], list[2], list[3], list[4]}
}

// list are the spreads in the order of measures.
func (s Spreads) list() []*stats.Spread {
	return []*stats.Spread{s.Seconds, s.Steps, s.InTokens, s.OutTokens, s.Cost}
}

func (p *printer) spreads(r *Report) {
	rows := [][]string{{"AGENT", "OF A RUN", "RUNS", "MEAN", "LEAST", "10 %", "MEDIAN", "90 %", "MOST"}}
	for _, row := range r.Overall {
		for i, s := range row.Spreads.list() {
			if s == nil {
				continue
			}
			line := []string{cell(row.Agent), measures[i].name, fmt.Sprint(s.Of)}
			for _, v := range []float64{s.Mean, s.Least, s.P10, s.Median, s.P90, s.Most} {
				line = append(line, Figure(v))
			}
			rows = append(rows, line)
		}
	}
	if len(rows) > 1 {
		p.table("What runs take: how it is distributed", rows)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
