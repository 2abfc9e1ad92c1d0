package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/problem"
)

// Cut is how agents did in the runs that have something in common.
type Cut struct {
	By   string `json:"by"`   // ByFault, ByLevel, ByApp or ByLoad
	Name string `json:"name"` // what they have in common
	Rows []Row  `json:"rows"`
}

// What runs are told apart by: the kind of a fault, of several each; the system level of the cause; the application;
// and the load.
const (
	ByFault = "fault"
	ByLevel = "level"
	ByApp   = "app"
	ByLoad  = "load"
)

var cutTitles = []struct{ by, title, head string }{
	{ByFault, "By kind of fault", "FAULT"},
	{ByLevel, "By system level", "LEVEL"},
	{ByApp, "By application", "APPLICATION"},
	{ByLoad, "By load", "LOAD"},
}

const (
	noFault = "(no fault)"
	notTold = "(not told)"
)

// cutKey is an agent in the runs of a cut.
type cutKey struct{ by, name, agent string }

// cuts are where a run belongs.
func (r *Run) cuts() (keys []cutKey) {
	agent := r.Contestant()
	var kinds []string
	for _, f := range r.Faults {
		kind, _, _ := strings.Cut(f, " ")
		kinds = append(kinds, kind)
	}
	level := cmp.Or(r.SystemLevel, notTold)
	if len(r.Faults) == 0 {
		kinds, level = []string{noFault}, noFault
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		keys = append(keys, cutKey{ByFault, kind, agent})
	}
	return append(keys, cutKey{ByLevel, level, agent}, cutKey{ByApp, cmp.Or(r.App, notTold), agent},
		cutKey{ByLoad, cmp.Or(r.Load, notTold), agent})
}

// recordedProblem is what a report needs of the problem of a record.
type recordedProblem struct {
	Task   problem.Task    `json:"task"`
	App    string          `json:"app"`
	Faults []string        `json:"faults"` // kind and target
	Load   string          `json:"load"`
	Answer json.RawMessage `json:"answer"`
	// Goal is that of an operation.
	Goal struct {
		Level    string   `json:"level"`
		Services []string `json:"services"`
	} `json:"goal"`
}

// takeProblem takes what a record tells of its problem.
func (r *Run) takeProblem(p recordedProblem) {
	r.Task, r.App, r.Faults, r.Faulty = p.Task, p.App, p.Faults, len(p.Faults) > 0
	r.Aim = aimOf(p.Goal.Level, p.Goal.Services)
	var answer struct {
		Cause struct {
			SystemLevel string `json:"system_level"`
		} `json:"cause"`
	}
	if json.Unmarshal(p.Answer, &answer) == nil { // Who has no answer has no level.
		r.SystemLevel = answer.Cause.SystemLevel
	}
	r.Load = strings.Join(strings.Fields(p.Load), " ")
	if l, err := problem.ParseLoad(p.Load); err == nil {
		r.Load = l.String()
	}
}

// cutRows are all cuts, in the order of their titles and then of their names.
func (b *Builder) cutRows() []Cut {
	list := []Cut{}
	for _, c := range cutTitles {
		names := map[string]bool{}
		for k := range b.cuts {
			if k.by == c.by {
				names[k.name] = true
			}
		}
		for _, name := range sortedKeys(names) {
			cut := Cut{By: c.by, Name: name, Rows: []Row{}}
			for k, t := range b.cuts {
				if k.by == c.by && k.name == name {
					cut.Rows = append(cut.Rows, t.row(key{agent: k.agent}))
				}
			}
			sortRows(cut.Rows)
			list = append(list, cut)
		}
	}
	return list
}

// cuts prints those that tell runs apart.
func (p *printer) cuts(r *Report) {
	for _, c := range cutTitles {
		rows := [][]string{{
			c.head, "AGENT", "RUNS", "ACCURACY", "95 % INTERVAL", "TIME (s)", "STEPS", "TOKENS IN", "TOKENS OUT",
			"COST ($)",
		}}
		names := 0
		for _, cut := range r.Cuts {
			if cut.By != c.by {
				continue
			}
			names++
			for _, row := range cut.Rows {
				line := append([]string{cell(cut.Name)}, row.begin()...)
				rows = append(rows, append(append(line, row.efforts()...), row.cost()))
			}
		}
		if names > 1 {
			p.table(c.title, rows)
		}
	}
}
