package cri

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// many is how many lines must differ for nobody to notice that they come again.
	many = 20
	// several is how many it takes if each names something of its own, because a copy then names something else.
	several = 3
	// tellers is how many lines of its past a program tells until it is clear what kinds of lines it tells itself.
	tellers = 100
)

// again returns lines like those that came since there was load, from another time backwards to the start of a
// program, or until there are as many bytes as asked for. It says whether they reach back to the start.
func again(p *past.Past, examples []example, started, until time.Time, most int,
	r *rand.Rand,
) (list []cloud.Line, all bool) {
	if len(examples) == 0 {
		return nil, true
	}
	rate := float64(len(examples)) / p.Join.Sub(p.Began).Seconds()
	for at, size := until, 0; size <= most; {
		density := rate * max(p.Work(at.Add(-time.Second), at), 0.01)
		at = at.Add(-time.Duration(r.ExpFloat64() / density * float64(time.Second)))
		if at.Before(started.Add(settling)) {
			return list, true
		}
		x := examples[r.IntN(len(examples))]
		x.Text = past.Move(rename(x.Text, x.names, x.Time, at, r), x.stamps, at.Sub(x.Time)) // Both keep its length.
		x.Time = at
		list = append(list, x.Line)
		size += lineSize(x.Text)
	}
	return list, false
}

// example is a line that a program writes all the time.
type example struct {
	cloud.Line
	stamps []past.Stamp
	names  []name // that no other line of its form has
}

// usual are the lines that came under load and would come again: several that read alike, or many that have the same
// form, or some of a form that each name something of their own. Which of others come again only their program knows,
// and if it has told of a form in its past, it has told all.
func usual(p *past.Past, live, told []cloud.Line) (list []example) {
	known := map[string]bool{}
	for _, x := range told[:min(len(told), tellers)] {
		known[wide(bare(past.Unstamped(x.Text, past.Stamps(x.Text, x.Time))))] = true
	}
	narrow, wider := map[string][]example{}, map[string][]example{}
	for _, x := range live {
		if x.Partial || x.Time.Before(p.Began) || !x.Time.Before(p.Join) || unusual.MatchString(x.Text) {
			continue
		}
		e := example{Line: x, stamps: past.Stamps(x.Text, x.Time)}
		form := bare(past.Unstamped(x.Text, e.stamps))
		if !known[wide(form)] {
			narrow[form] = append(narrow[form], e)
		}
	}
	for form, same := range narrow {
		if n := differing(same); len(same) > 1 && n == 1 || n >= many {
			list = append(list, proper(same)...)
			continue
		}
		wider[wide(form)] = append(wider[wide(form)], same...)
	}
	middle := p.Began.Add(p.Join.Sub(p.Began) / 2)
	for _, same := range wider {
		named := proper(same)
		named = slices.DeleteFunc(named, func(e example) bool { return len(e.names) == 0 })
		early := slices.ContainsFunc(named, func(e example) bool { return e.Time.Before(middle) })
		late := slices.ContainsFunc(named, func(e example) bool { return !e.Time.Before(middle) })
		switch {
		case differing(same) >= many:
			list = append(list, proper(same)...)
		case len(named) >= several && early && late: // Those of a start come at once.
			list = append(list, named...)
		}
	}
	slices.SortFunc(list, func(a, b example) int { return a.Time.Compare(b.Time) })
	return list
}

// differing is how many of some lines read differently.
func differing(lines []example) int {
	texts := map[string]bool{}
	for _, x := range lines {
		texts[past.Unstamped(x.Text, x.stamps)] = true
	}
	return len(texts)
}

// proper finds what lines of a form name that no other one does. What several name is there for longer.
func proper(lines []example) []example {
	in := map[string]int{}
	for _, x := range lines {
		seen := map[string]bool{}
		for _, n := range names(x.Text) {
			if id := x.Text[n.from:n.to]; !seen[id] {
				seen[id] = true
				in[id]++
			}
		}
	}
	lines = slices.Clone(lines)
	for i := range lines {
		x := &lines[i]
		x.names = slices.DeleteFunc(names(x.Text), func(n name) bool { return in[x.Text[n.from:n.to]] > 1 })
	}
	return lines
}

// bare is the form of a line: without what it names and without its digits.
func bare(text string) string {
	var b strings.Builder
	done := 0
	for _, n := range names(text) {
		b.WriteString(text[done:n.from])
		done = n.to
	}
	b.WriteString(text[done:])
	return strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return -1
		}
		return c
	}, b.String())
}

// wide is a form without the values of its keys.
func wide(form string) string { return values.ReplaceAllString(form, "=") }
