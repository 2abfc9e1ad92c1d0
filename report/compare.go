package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/report/stats"
)

// Comparison is how two sides did in runs of the same problems with the same seeds.
type Comparison struct {
	First  Side   `json:"first"`
	Second Side   `json:"second"`
	Paired Paired `json:"all"`
	// Tasks are the same by task.
	Tasks []PairedTask `json:"tasks"`
	// Measures are what runs took.
	Measures []Measure `json:"measures"`
	// Detectable is the smallest difference in accuracy that so many problems would have shown, four times out of five.
	// It is 1 if there is none.
	Detectable float64 `json:"detectable"`
}

// Side is one of two that are compared.
type Side struct {
	Name string `json:"name"`
	// Alone are its runs that count and have no partner; they are left out.
	Alone int `json:"alone"`
}

// Paired is how pairs of runs ended.
type Paired struct {
	stats.Pairs
	// Difference is by how much the accuracy of the second side is higher, with its 95 % interval: Newcombe's, for as
	// many pairs as tries of the same problems are worth.
	Difference float64 `json:"difference"`
	stats.Interval
	// P is the chance of as uneven a result if both were equally good: an exact test over problems, which is McNemar's
	// if each was tried once.
	P float64 `json:"p"`
}

// PairedTask is how pairs of one task ended.
type PairedTask struct {
	Task problem.Task `json:"task"`
	Paired
}

// Measure is what a run takes, in the mean over pairs of which both tell it.
type Measure struct {
	Name       string  `json:"name"`
	Pairs      int     `json:"pairs"`
	First      float64 `json:"first"`
	Second     float64 `json:"second"`
	Difference float64 `json:"difference"`
	// Interval is that of the difference; nil if there are too few problems.
	Interval *stats.Interval `json:"interval,omitempty"`
}

// pair is two runs of one problem with one seed.
type pair struct{ first, second *Run }

// Compare compares two sides by their runs that count. Runs are partners if they are of one problem and one seed, the
// first of one side with the first of the other, and so on.
func Compare(first, second string, a, b []*Run) *Comparison {
	c := &Comparison{First: Side{Name: first}, Second: Side{Name: second}}
	var pairs []pair
	of := func(runs []*Run) map[string][]*Run {
		by := map[string][]*Run{}
		for _, r := range counted(runs) {
			key := fmt.Sprintf("%s\x00%d", r.Problem, r.Seed)
			by[key] = append(by[key], r)
		}
		return by
	}
	left, right := of(a), of(b)
	for _, key := range slices.Sorted(maps.Keys(left)) {
		n := min(len(left[key]), len(right[key]))
		for i := range n {
			pairs = append(pairs, pair{left[key][i], right[key][i]})
		}
		c.First.Alone += len(left[key]) - n
	}
	for key, list := range right {
		c.Second.Alone += max(0, len(list)-len(left[key]))
	}
	c.Paired = paired(pairs)
	for _, task := range problem.Tasks {
		if some := only(pairs, task); len(some) > 0 {
			c.Tasks = append(c.Tasks, PairedTask{task, paired(some)})
		}
	}
	for _, m := range measures {
		if one, ok := measured(pairs, m.name, m.of); ok {
			c.Measures = append(c.Measures, one)
		}
	}
	// Of no pair that fell apart one says nothing; so one more of each kind is thought of.
	p := c.Paired.Pairs
	problems := len(grouped(pairs, func(pair) (float64, bool) { return 0, true }))
	c.Detectable = stats.Detectable(problems, float64(p.First+p.Second+1)/float64(p.Of()+2))
	return c
}

// counted are the runs that count, each once, in the order of their ids.
func counted(runs []*Run) []*Run {
	list := slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return !r.Counts() })
	slices.SortFunc(list, func(a, b *Run) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b *Run) bool { return a.ID == b.ID && a.Problem == b.Problem })
}

func only(pairs []pair, task problem.Task) (list []pair) {
	for _, p := range pairs {
		if p.first.Task == task {
			list = append(list, p)
		}
	}
	return list
}

// measures are what runs take.
var measures = []struct {
	name string
	of   func(*Run) (float64, bool)
}{
	{"time (s)", func(r *Run) (float64, bool) { return r.Seconds, true }},
	{"steps", func(r *Run) (float64, bool) { return float64(r.Steps), true }},
	{"tokens in", func(r *Run) (float64, bool) { return float64(r.InTokens), true }},
	{"tokens out", func(r *Run) (float64, bool) { return float64(r.OutTokens), true }},
	{"cost ($)", func(r *Run) (float64, bool) {
		if r.Cost == nil {
			return 0, false
		}
		return *r.Cost, true
	}},
}

// grouped are the values of pairs by their problems.
func grouped(pairs []pair, value func(pair) (float64, bool)) (groups [][]float64) {
	by := map[string]int{}
	for _, p := range pairs {
		v, ok := value(p)
		if !ok {
			continue
		}
		i, known := by[p.first.Problem]
		if !known {
			i = len(groups)
			by[p.first.Problem], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], v)
	}
	return groups
}

func measured(pairs []pair, name string, of func(*Run) (float64, bool)) (m Measure, ok bool) {
	m.Name = name
	groups := grouped(pairs, func(p pair) (float64, bool) {
		a, known := of(p.first)
		b, both := of(p.second)
		if !known || !both {
			return 0, false
		}
		m.Pairs++
		m.First, m.Second = m.First+a, m.Second+b
		return b - a, true
	})
	if m.Pairs == 0 {
		return m, false
	}
	m.First, m.Second = m.First/float64(m.Pairs), m.Second/float64(m.Pairs)
	mean, i, sure := stats.Bootstrap(groups)
	m.Difference = mean
	if sure {
		m.Interval = &i
	}
	return m, true
}

// paired counts how pairs ended.
func paired(pairs []pair) (p Paired) {
	for _, one := range pairs {
		switch a, b := one.first.solved(), one.second.solved(); {
		case a && b:
			p.Both++
		case a:
			p.First++
		case b:
			p.Second++
		default:
			p.Neither++
		}
	}
	groups := grouped(pairs, func(o pair) (float64, bool) {
		return float64(bit(o.second.solved()) - bit(o.first.solved())), true
	})
	p.Difference, p.Interval = p.Pairs.Difference(groups)
	sums := make([]int, len(groups))
	for i, g := range groups {
		for _, v := range g {
			sums[i] += int(v)
		}
	}
	p.P = stats.SignFlip(sums)
	return p
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// WriteText writes the comparison for people to read.
func (c *Comparison) WriteText(w io.Writer) error {
	_, err := w.Write(c.print().Bytes())
	return err
}

// print prints the comparison.
func (c *Comparison) print() *printer {
	p := &printer{sentence: c.Sentence()}
	fmt.Fprintf(p, "%s of runs of the same problems with the same seeds.", plural(c.Paired.Of(), "pair"))
	for _, s := range []Side{c.First, c.Second} {
		if s.Alone > 0 {
			fmt.Fprintf(p, " Left out, without a partner: %s of %s.", plural(s.Alone, "run"), cell(s.Name))
		}
	}
	p.WriteByte('\n')
	p.summary = strings.TrimSpace(p.String())
	first, second := cell(c.First.Name), cell(c.Second.Name)
	rows := [][]string{{
		"TASK", "PAIRS", first, second, "BOTH", first + " ALONE", second + " ALONE", "NEITHER", "DIFFERENCE", "95 %",
		"P",
	}}
	for _, t := range c.Tasks {
		rows = append(rows, t.Paired.row(string(t.Task)))
	}
	p.table("Solved", append(rows, c.Paired.row("all")))
	rows = [][]string{{"MEAN OF", "PAIRS", first, second, "DIFFERENCE", "95 %"}}
	for _, m := range c.Measures {
		interval := "-"
		if m.Interval != nil {
			interval = Signed(m.Interval.Low) + " to " + Signed(m.Interval.High)
		}
		rows = append(rows, []string{
			m.Name, fmt.Sprint(m.Pairs), Figure(m.First), Figure(m.Second), Signed(m.Difference), interval,
		})
	}
	p.table("What a run takes", rows)
	fmt.Fprintf(p, "\n%s\n", p.sentence)
	return p
}

// row is a row of the table of what was solved.
func (p Paired) row(name string) []string {
	n := p.Of()
	return []string{
		name, fmt.Sprint(n), portion(p.Both+p.First, n) + " %", portion(p.Both+p.Second, n) + " %", fmt.Sprint(p.Both),
		fmt.Sprint(p.First), fmt.Sprint(p.Second), fmt.Sprint(p.Neither), fmt.Sprintf("%+.1f", 100*p.Difference),
		fmt.Sprintf("%+.1f to %+.1f", 100*p.Low, 100*p.High), fmt.Sprintf("%.2g", p.P),
	}
}

// Sentence says what it comes to.
func (c *Comparison) Sentence() string {
	p, better, worse := c.Paired, cell(c.Second.Name), cell(c.First.Name)
	d, low, high := p.Difference, p.Low, p.High
	if d < 0 {
		better, worse, d, low, high = worse, better, -d, -high, -low
	}
	text := fmt.Sprintf("%s solves %.0f %% more than %s, 95 %% %.0f to %.0f", better, 100*d, worse, 100*low, 100*high)
	if d == 0 {
		text = fmt.Sprintf("%s and %s solve equally many, 95 %% %.0f to %.0f", worse, better, 100*low, 100*high)
	}
	if low > 0 && p.P < 0.05 {
		return text + "."
	}
	if low > 0 {
		text += fmt.Sprintf(", P %.2g", p.P)
	}
	return text + ": these runs do not tell them apart. " + c.power()
}

// power says what so many pairs could have shown.
func (c *Comparison) power() string {
	if c.Detectable >= 1 {
		return "So few problems would show no difference, however large."
	}
	return fmt.Sprintf("A difference of %.0f %% would have shown, four times out of five.", 100*c.Detectable)
}
