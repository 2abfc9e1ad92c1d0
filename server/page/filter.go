package page

import (
	"cmp"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// filter is which runs a page shows and how, as the address says it.
type filter struct {
	url.Values
	words []string // of the text that is looked for
	sort  string
	desc  bool
}

// fields are what runs can be chosen by, with what a run has of each, as a list of labels.
var fields = []struct {
	name, label string
	of          func(index.Run) string
}{
	{"agent", "Agent", func(r index.Run) string { return r.Agent }},
	{"model", "Model", func(r index.Run) string { return r.Model }},
	{"task", "Task", func(r index.Run) string { return r.Task }},
	{"app", "Application", func(r index.Run) string { return r.App }},
	{"problem", "Problem", func(r index.Run) string { return r.Problem }},
	{"verdict", "Verdict", outcomeOf},
	{"blame", "Blame", blameOf},
}

// outcomeOf is a verdict without whose fault it is.
func outcomeOf(r index.Run) string {
	switch v := verdictOf(r.Class); v.Kind {
	case "odd":
		if c := session.Class(r.Class); c == session.ShadowRun || c == session.Searched {
			return v.Word
		}
		return "spoilt"
	default:
		return v.Word
	}
}

// blameOf is whose fault it is that a run is not solved.
func blameOf(r index.Run) string {
	switch session.Class(r.Class) {
	case session.Solved, session.ShadowRun, session.Searched, index.Unfinished:
		return ""
	}
	return r.Class
}

// orders are what runs can be sorted by.
var orders = map[string]func(a, b *index.Run) int{
	"begun":   func(a, b *index.Run) int { return a.Begun.Compare(b.Begun) },
	"agent":   func(a, b *index.Run) int { return cmp.Compare(a.Contestant(), b.Contestant()) },
	"problem": func(a, b *index.Run) int { return cmp.Compare(a.Problem, b.Problem) },
	"verdict": func(a, b *index.Run) int { return cmp.Compare(a.Class, b.Class) },
	"seconds": func(a, b *index.Run) int { return cmp.Compare(a.Seconds, b.Seconds) },
	"steps":   func(a, b *index.Run) int { return cmp.Compare(a.Steps, b.Steps) },
	"writes":  func(a, b *index.Run) int { return cmp.Compare(a.Writes, b.Writes) },
	"cost":    func(a, b *index.Run) int { return cmp.Compare(costOf(a), costOf(b)) },
	"score":   func(a, b *index.Run) int { return cmp.Compare(scoreOf(a), scoreOf(b)) },
}

// costOf is what a run cost; what is not known comes before all that is.
func costOf(r *index.Run) float64 {
	if r.Cost == nil {
		return -1
	}
	return *r.Cost
}

// scoreOf is what a shift scored; what is none comes before all that are.
func scoreOf(r *index.Run) float64 {
	if r.Shift == nil {
		return -1
	}
	return r.Shift.Score
}

func newFilter(q url.Values) filter {
	f := filter{Values: url.Values{}, sort: "begun", desc: true}
	names := []string{"folder", "q", "sort", "show"}
	for _, field := range fields {
		names = append(names, field.name)
	}
	for _, name := range names {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			f.Set(name, v)
		}
	}
	f.words = strings.Fields(strings.ToLower(f.Get("q")))
	if name, desc := strings.CutPrefix(f.Get("sort"), "-"); orders[name] != nil {
		f.sort, f.desc = name, desc
	}
	return f
}

// with is the address with something set instead.
func (f filter) with(name, value string) string {
	q := maps.Clone(f.Values)
	if value == "" {
		q.Del(name)
	} else {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return Prefix
	}
	return Prefix + "?" + q.Encode()
}

// Given reports whether the filter leaves something out.
func (f filter) Given() bool {
	for name := range f.Values {
		if name != "sort" && name != "show" {
			return true
		}
	}
	return false
}

// wants reports whether a run is one of those asked for.
func (f filter) wants(r *index.Run, dir string) bool {
	for _, field := range fields {
		if v := f.Get(field.name); v != "" && visible(v) != visible(field.of(*r)) {
			return false
		}
	}
	if v := f.Get("folder"); v != "" && v != folderOf(r, dir) {
		return false
	}
	if len(f.words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{
		r.ID, r.Problem, r.Contestant(), r.App, r.Task, r.Class, r.Why, strings.Join(r.Faults, " "),
	}, " "))
	for _, w := range f.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// folderOf is the directory of a run below the site's: a campaign often has one of its own.
func folderOf(r *index.Run, dir string) string {
	rel, err := filepath.Rel(dir, filepath.Dir(r.File))
	if err != nil || rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}

// choose returns the runs that are asked for, in their order.
func (f filter) choose(x *index.Index) []*index.Run {
	var list []*index.Run
	for i := range x.Runs {
		if r := &x.Runs[i]; f.wants(r, x.Dir) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, orders[f.sort])
	if f.desc {
		slices.Reverse(list)
	}
	return list
}

// choice is a field of the form: what can be chosen, and what is.
type choice struct {
	Name, Label, Value string
	Options            []string
}

// choices are the fields of the form, with what runs have. One that has nothing to choose from is left out.
func (f filter) choices(x *index.Index) (list []choice) {
	for _, field := range fields {
		seen := map[string]bool{}
		raw := map[string]bool{} // Runs are many, and what they have of a field is not.
		for i := range x.Runs {
			raw[field.of(x.Runs[i])] = true
		}
		for v := range raw {
			if v != "" {
				seen[visible(v)] = true
			}
		}
		if v := visible(f.Get(field.name)); v != "" {
			seen[v] = true
		}
		if len(seen) > 0 {
			list = append(list, choice{field.name, field.label, visible(f.Get(field.name)), sortedKeys(seen)})
		}
	}
	return list
}

// column is the head of a column that a table can be sorted by.
type column struct {
	Label, Link, Class string
	Sorted             string // "ascending", "descending" or empty
}

// columns are those of the table of runs, with the score of shifts if there are any. A second click turns the order;
// numbers and times begin with the largest.
func (f filter) columns(scored bool) (list []column) {
	for _, c := range []struct{ name, label, class string }{
		{"verdict", "Verdict", ""},
		{"problem", "Problem", ""},
		{"agent", "Agent", ""},
		{"begun", "Begun", "wide"},
		{"score", "Score", "num"},
		{"seconds", "Time", "num"},
		{"steps", "Steps", "num wide"},
		{"writes", "Writes", "num wide"},
		{"cost", "Cost", "num wide"},
	} {
		if c.name == "score" && !scored {
			continue
		}
		next := c.name
		if strings.HasPrefix(c.class, "num") || c.name == "begun" {
			next = "-" + c.name
		}
		sorted := ""
		if c.name == f.sort {
			sorted, next = "ascending", "-"+c.name
			if f.desc {
				sorted, next = "descending", c.name
			}
		}
		list = append(list, column{c.label, f.with("sort", next), c.class, sorted})
	}
	return list
}

func pageOf(q url.Values) int {
	n, err := strconv.Atoi(q.Get("page"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
