package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Shift is how an agent did on call. Numbers are means of a shift, over those that count.
type Shift struct {
	Agent           string  `json:"agent"`
	Runs            int     `json:"runs"`
	Score           float64 `json:"score"` // from 0 to 100
	MinutesLost     float64 `json:"minutes_lost"`
	Pages           float64 `json:"pages"`
	PagesRight      float64 `json:"pages_right"`
	Incidents       float64 `json:"incidents"`
	IncidentsMended float64 `json:"incidents_mended"`
	// TimeToMend is of the shifts in which something was mended, in seconds; nil if there was none.
	TimeToMend   *float64 `json:"time_to_mend"`
	Needless     float64  `json:"needless"` // writes
	WorseSeconds float64  `json:"worse_seconds"`
	Steps        float64  `json:"steps"`
	Tokens       float64  `json:"tokens"`
	Cost         *float64 `json:"cost_usd"` // nil if no run tells
}

// shiftRows are the agents that were on call, the best first.
func (b *Builder) shiftRows() (list []Shift) {
	for agent, runs := range b.shifts {
		s := Shift{Agent: agent, Runs: len(runs)}
		n := float64(len(runs))
		var took, cost mean
		for _, r := range runs {
			x := r.Shift
			s.Score += x.Score / n
			s.MinutesLost += x.MinutesLost / n
			s.Pages, s.PagesRight = s.Pages+float64(x.Pages)/n, s.PagesRight+float64(x.PagesRight)/n
			s.Incidents += float64(x.Incidents) / n
			s.IncidentsMended += float64(x.IncidentsMended) / n
			s.Needless += float64(len(x.Needless)) / n
			s.WorseSeconds += x.WorseSeconds / n
			s.Steps += float64(r.Steps) / n
			s.Tokens += float64(r.InTokens+r.OutTokens) / n
			took.add(x.TimeToMend)
			cost.add(r.Cost)
		}
		s.TimeToMend, s.Cost = took.value(), cost.value()
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Shift) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), cmp.Compare(a.Agent, b.Agent))
	})
	return list
}

// mean is that of the numbers there are.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(x *float64) {
	if x != nil {
		m.sum += *x
		m.n++
	}
}

func (m *mean) value() *float64 {
	if m.n == 0 {
		return nil
	}
	v := m.sum / float64(m.n)
	return &v
}

func (p *printer) shifts(r *Report) {
	if len(r.Shifts) == 0 {
		return
	}
	rows := [][]string{{
		"AGENT", "SHIFTS", "SCORE", "MINUTES LOST", "PAGES RIGHT", "MENDED", "TO MEND (s)", "NEEDLESS WRITES",
		"WORSE (s)", "STEPS", "TOKENS", "COST ($)",
	}}
	for _, s := range r.Shifts {
		number := func(x *float64, format string) string {
			if x == nil {
				return "-"
			}
			return fmt.Sprintf(format, *x)
		}
		rows = append(rows, []string{
			cell(s.Agent), fmt.Sprint(s.Runs), fmt.Sprintf("%.1f", s.Score), fmt.Sprintf("%.2f", s.MinutesLost),
			fmt.Sprintf("%.1f of %.1f", s.PagesRight, s.Pages),
			fmt.Sprintf("%.1f of %.1f", s.IncidentsMended, s.Incidents), number(s.TimeToMend, "%.0f"),
			fmt.Sprintf("%.1f", s.Needless), fmt.Sprintf("%.0f", s.WorseSeconds), fmt.Sprintf("%.1f", s.Steps),
			fmt.Sprintf("%.0f", s.Tokens), number(s.Cost, "%.2f"),
		})
	}
	p.table("Shifts: who is to be trusted with a pager, means of a shift", rows)
}
