package report

import (
	"cmp"
	"fmt"
	"slices"
)

// Value is what an agent costs, and what it solves for that, by its runs whose cost is known.
type Value struct {
	Agent    string  `json:"agent"`
	Accuracy Share   `json:"accuracy"`
	Cost     float64 `json:"cost"` // of a run, in the mean, in US dollars
	// Solved is what was paid for each solved run, the failed ones included; nil if none was solved.
	Solved *float64 `json:"cost_per_solved,omitempty"`
	// Best says that no other agent solves as much for less, or more for as much.
	Best bool `json:"best"`
}

// values are those of all agents whose cost is known, the cheapest first.
func (b *Builder) values() []Value {
	list := []Value{}
	for k, t := range b.tallies {
		if k.task != "" || len(t.priced) == 0 {
			continue
		}
		mean, priced := t.taken.spreads().Cost.Mean, t.priced.Share()
		v := Value{Agent: k.agent, Accuracy: priced, Cost: mean}
		if priced.N > 0 {
			each := mean * float64(priced.Of) / float64(priced.N)
			v.Solved = &each
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b Value) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), -cmp.Compare(a.Accuracy.Value, b.Accuracy.Value),
			cmp.Compare(a.Agent, b.Agent))
	})
	for i := range list {
		list[i].Best = !slices.ContainsFunc(list, func(o Value) bool { return o.beats(list[i]) })
	}
	return list
}

// beats reports whether it is better in one way and not worse in the other.
func (v Value) beats(o Value) bool {
	a, b := v.Accuracy.Value, o.Accuracy.Value
	return a >= b && v.Cost <= o.Cost && (a > b || v.Cost < o.Cost)
}

func (p *printer) values(r *Report) {
	if len(r.Values) == 0 {
		return
	}
	rows := [][]string{{
		"AGENT", "RUNS", "COST OF A RUN ($)", "ACCURACY", "95 % INTERVAL", "COST OF A SOLVED ONE ($)", "BEST",
	}}
	for _, v := range r.Values {
		each, best := "-", "no"
		if v.Solved != nil {
			each = fmt.Sprintf("%.4f", *v.Solved)
		}
		if v.Best {
			best = "yes"
		}
		rows = append(rows, []string{
			cell(v.Agent), fmt.Sprint(v.Accuracy.Of), fmt.Sprintf("%.4f", v.Cost), v.Accuracy.percent(),
			fmt.Sprintf("%.1f - %.1f", 100*v.Accuracy.Low, 100*v.Accuracy.High), each, best,
		})
	}
	p.table("Cost and quality, of the runs whose cost is known", rows)
}

// costFigure has a point for each agent: its accuracy, with the interval, against what a run costs.
func (r *Report) costFigure() []byte {
	most := 0.0
	for _, v := range r.Values {
		most = max(most, v.Cost)
	}
	if most == 0 {
		return nil
	}
	d := &drawing{}
	var names []string
	for _, v := range r.Values {
		names = append(names, v.Agent)
	}
	slices.Sort(names)
	y := d.legend(top, names)
	at := d.percentAxis(y)
	for i := range 5 {
		x := plotLeft + (plotRight-plotLeft)*float64(i)/4*0.95
		d.text("middle", x, at(0)+18, fmt.Sprintf("$%.3g", most*float64(i)/4))
	}
	for _, v := range r.Values {
		i := slices.Index(names, v.Agent)
		x := plotLeft + (plotRight-plotLeft)*v.Cost/most*0.95
		d.line("whisker", x, at(v.Accuracy.Low), x, at(v.Accuracy.High))
		d.rect(x-5, at(v.Accuracy.Value)-5, 10, 10, colour(i))
	}
	d.line("axis", plotLeft, at(0), plotRight, at(0))
	return d.figure("Accuracy against the cost of a run, with 95 % intervals", at(0)+32)
}
