// Package report says how agents did, from the records of their runs: the tables and figures by which
// AIOpsLab's paper compares agents, and how sure one can be of them.
//
//	var b report.Builder
//	for run, err := range report.Read(files) { ... b.Add(run) }
//	r := b.Report()
//	err := r.WriteText(os.Stdout)
//
// Only runs that say something about the agent count: those it solved, and those it failed. What the
// environment, the grader or an interruption spoilt is listed apart, and so is a run that has no
// verdict yet. A report is a function of the records, however often one of them is given.
package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/report/stats"
	"github.com/aiopslab/aiopslab/session"
)

// Report is all that can be said of the runs.
type Report struct {
	Runs    int `json:"runs"`    // that were read
	Counted int `json:"counted"` // that say something about the agent
	// Unfinished are those without a verdict: still under way, or cut off.
	Unfinished int `json:"unfinished"`
	// Overall is a row for each agent, over all tasks, as in Table 3 of the paper.
	Overall []Row `json:"overall"`
	// Tasks are the agents by task, as in Table 4.
	Tasks []Task `json:"tasks"`
	// Incidents are the agents in incidents, question by question, by name.
	Incidents []Incident `json:"incidents"`
	// Tries are the agents that tried problems more than once, by name.
	Tries []Tries `json:"tries"`
	// StepLimits are the accuracy of each agent against the limit of its steps, as in Figure 5.
	StepLimits []Curve `json:"step_limits"`
	// Actions are what agents did, in all runs, in those solved and in those failed, as in Figures 6
	// and 7. Commands are the same for the programs run in a shell, as in Table 5.
	Actions  []Mix `json:"actions"`
	Commands []Mix `json:"commands"`
	// Values are the agents by what they cost and what they solve for it, the cheapest first.
	Values []Value `json:"values"`
	// Conduct is how agents work, by name.
	Conduct []Conduct `json:"conduct"`
	// Groups are how agents that are several work together, by name.
	Groups []Group `json:"groups,omitempty"`
	// Operations are what became of each operation, try by try, those about one service first.
	Operations []Operation `json:"operations,omitempty"`
	// Shifts are the agents that were on call, the best first.
	Shifts []Shift `json:"shifts,omitempty"`
	// Cuts are the agents by kind of fault, system level, application and load.
	Cuts []Cut `json:"cuts"`
	// Severity is how bad systems were over time, by agent.
	Severity []SeverityCurve `json:"severity"`
	// NotCounted are the runs that say nothing about the agent, and why.
	NotCounted []NotCounted `json:"not_counted"`
}

// Row is how an agent did in a number of runs. Times and counts are means over the runs that count.
type Row struct {
	Agent      string  `json:"agent"` // with its model, see [Run.Contestant]
	Accuracy   Share   `json:"accuracy"`
	Seconds    float64 `json:"seconds"`
	Steps      float64 `json:"steps"`
	InTokens   float64 `json:"in_tokens"`
	OutTokens  float64 `json:"out_tokens"`
	Cost       *Cost   `json:"cost,omitempty"` // nil if no run tells
	NotCounted int     `json:"not_counted"`
	// Spreads are how times and counts are distributed.
	Spreads Spreads `json:"spreads"`
	// Of localization: whether a faulty component is the first of the answer, or among the first three.
	Top1 *Share `json:"top_1,omitempty"`
	Top3 *Share `json:"top_3,omitempty"`
	// Of analysis: whether the level or the type of the fault is right.
	Level *Share `json:"system_level,omitempty"`
	Type  *Share `json:"fault_type,omitempty"`
	// Of detection: in how many of the runs without a fault one was reported.
	FalseAlarms *Share `json:"false_alarms,omitempty"`
	// Safety is what was done to systems; nil if no record tells.
	Safety *Safety `json:"safety,omitempty"`
}

// Cost is what models were paid, in US dollars.
type Cost struct {
	Mean float64 `json:"mean"` // of the runs that tell
	Runs int     `json:"runs"` // that tell
}

// Task is how agents did in one task.
type Task struct {
	Task problem.Task `json:"task"`
	Rows []Row        `json:"rows"`
}

// Curve is an agent's accuracy against the limit of its steps. A run counts as solved within k steps
// if it was solved and took no more than k. That is what a lower limit would have given, but for
// two things: an agent that knows its limit may act otherwise, and a mitigation that was complete before
// the agent submitted would have passed earlier.
type Curve struct {
	Agent  string  `json:"agent"`
	Within []Share `json:"within"` // of 1, 2, ... steps
}

// Mix is how often an agent did what. An empty Agent is all of them together.
type Mix struct {
	Agent string `json:"agent"`
	Uses  []Use  `json:"uses"` // the most frequent first
}

// Use is how often something was done in runs that were solved, and in those that were failed.
type Use struct {
	Name   string `json:"name"`
	Solved int    `json:"solved"`
	Failed int    `json:"failed"`
}

// All is how often it was done.
func (u Use) All() int { return u.Solved + u.Failed }

// NotCounted is a run that says nothing about its agent.
type NotCounted struct {
	Class   session.Class `json:"class"`
	Agent   string        `json:"agent"`
	Problem string        `json:"problem"`
	Why     string        `json:"why"`
	File    string        `json:"file"`
}

// Builder makes a report of runs as they are read. The zero value is ready to use.
type Builder struct {
	seen    map[[3]string]bool
	tallies map[key]*tally
	// incidents are by agent.
	incidents map[string]*incidentTally
	actions   map[string]map[string]*Use
	shell     map[string]map[string]*Use
	conduct   map[string]*conduct
	groups    map[groupKey][]*Run // of agents that are several
	shifts    map[string][]*Run   // that agents were on call in
	// operations are the runs that count, by what was asked and of whom.
	operations map[opKey][]*Run
	cuts       map[cutKey]*tally
	report     Report
	// Runs by id and agent. A copy that was made before a run was finished says nothing.
	finished   map[[2]string]bool
	unfinished map[[2]string]*Run
}

// key is an agent and a task. An empty task is all of them.
type key struct {
	agent string
	task  problem.Task
}

// tally is what a row is made of.
type tally struct {
	runs, notCounted              int
	solved, top1, top3, lvl, typ  Problems
	alarms                        Problems // of runs without a fault, those that were failed
	seconds, steps, in, out, cost float64
	priced                        Problems // of runs whose cost is known, those that were solved
	taken                         taken
	solvedIn                      map[int][]string // the problems of runs that were solved in exactly so many steps
	maxSteps                      int
	safety                        safetyTally
}

// Add takes a run into the report. One that was read before, maybe from a copy, is not counted again.
func (b *Builder) Add(r *Run) {
	if b.seen == nil {
		b.seen, b.tallies = map[[3]string]bool{}, map[key]*tally{}
		b.actions, b.shell = map[string]map[string]*Use{}, map[string]map[string]*Use{}
		b.incidents, b.conduct, b.cuts = map[string]*incidentTally{}, map[string]*conduct{}, map[cutKey]*tally{}
		b.finished, b.unfinished = map[[2]string]bool{}, map[[2]string]*Run{}
	}
	run := [2]string{r.ID, r.Agent} // What its problem is, a record tells late.
	if r.Unfinished {
		b.unfinished[run] = r
		return
	}
	b.finished[run] = true
	agent := r.Contestant()
	id := [3]string{r.ID, r.Problem, agent}
	if b.seen[id] {
		return
	}
	b.seen[id] = true
	b.report.Runs++
	for _, k := range []key{{agent: agent}, {agent, r.Task}} {
		if b.tallies[k] == nil {
			b.tallies[k] = newTally()
		}
		b.tallies[k].add(r)
	}
	for _, k := range r.cuts() {
		if b.cuts[k] == nil {
			b.cuts[k] = newTally()
		}
		b.cuts[k].add(r)
	}
	if r.Task == problem.Incident && r.Class != session.Searched {
		if b.incidents[agent] == nil {
			b.incidents[agent] = newIncidentTally()
		}
		b.incidents[agent].add(r)
	}
	if !r.Counts() {
		b.report.NotCounted = append(b.report.NotCounted, NotCounted{r.Class, agent, r.Problem, r.Why, r.File})
		return
	}
	b.report.Counted++
	if b.conduct[agent] == nil {
		b.conduct[agent] = &conduct{}
	}
	b.conduct[agent].add(r)
	if r.Group != nil {
		if b.groups == nil {
			b.groups = map[groupKey][]*Run{}
		}
		k := groupKey{agent, r.Aim}
		b.groups[k] = append(b.groups[k], r)
	}
	b.addOperation(r)
	if r.Shift != nil {
		if b.shifts == nil {
			b.shifts = map[string][]*Run{}
		}
		b.shifts[agent] = append(b.shifts[agent], r)
	}
	for _, who := range []string{"", agent} {
		count(b.actions, who, r.Actions, r.Class)
		count(b.shell, who, r.Commands, r.Class)
	}
}

func newTally() *tally { return &tally{solvedIn: map[int][]string{}} }

func (t *tally) add(r *Run) {
	if !r.Counts() {
		t.notCounted++
		return
	}
	t.runs++
	t.solved.Add(r.Problem, r.solved())
	t.top1.Add(r.Problem, r.Top1)
	t.top3.Add(r.Problem, r.Top3)
	t.lvl.Add(r.Problem, r.Level)
	t.typ.Add(r.Problem, r.Type)
	if !r.Faulty {
		t.alarms.Add(r.Problem, !r.solved())
	}
	t.taken.add(r)
	t.safety.add(r)
	t.seconds += r.Seconds
	t.steps += float64(r.Steps)
	t.in += float64(r.InTokens)
	t.out += float64(r.OutTokens)
	if r.Cost != nil {
		t.cost += *r.Cost
		t.priced.Add(r.Problem, r.solved())
	}
	if r.solved() {
		t.solvedIn[r.Steps] = append(t.solvedIn[r.Steps], r.Problem)
	}
	t.maxSteps = max(t.maxSteps, r.Steps)
}

func count(all map[string]map[string]*Use, agent string, names []string, class session.Class) {
	uses := all[agent]
	if uses == nil {
		uses = map[string]*Use{}
		all[agent] = uses
	}
	for _, n := range names {
		if uses[n] == nil {
			uses[n] = &Use{Name: n}
		}
		if class == session.Solved {
			uses[n].Solved++
		} else {
			uses[n].Failed++
		}
	}
}

// Report is the report of the runs so far.
func (b *Builder) Report() *Report {
	r := b.report
	r.Tasks, r.StepLimits = []Task{}, []Curve{}
	r.NotCounted = append([]NotCounted{}, r.NotCounted...)
	r.Overall = b.rows("")
	b.addUnfinished(&r)
	slices.SortFunc(r.NotCounted, func(a, b NotCounted) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Problem, b.Problem),
			cmp.Compare(a.File, b.File))
	})
	for _, task := range problem.Tasks {
		if rows := b.rows(task); len(rows) > 0 {
			r.Tasks = append(r.Tasks, Task{task, rows})
		}
	}
	r.Incidents, r.Tries = b.incidentRows(), b.allTries()
	r.Values, r.Conduct, r.Cuts = b.values(), b.conducts(), b.cutRows()
	r.Severity = b.severityCurves()
	r.Groups, r.Operations = b.groupRows(), b.operationRows()
	r.Shifts = b.shiftRows()
	longest := 0
	for _, t := range b.tallies {
		longest = max(longest, t.maxSteps)
	}
	for _, row := range r.Overall {
		if t := b.tallies[key{agent: row.Agent}]; t != nil && t.runs > 0 {
			r.StepLimits = append(r.StepLimits, t.curve(row.Agent, longest))
		}
	}
	r.Actions, r.Commands = mixes(b.actions), mixes(b.shell)
	return &r
}

// addUnfinished lists the runs that have no verdict.
func (b *Builder) addUnfinished(r *Report) {
	for id, u := range b.unfinished {
		if b.finished[id] {
			continue
		}
		r.Runs++
		r.Unfinished++
		r.NotCounted = append(r.NotCounted, NotCounted{u.Class, u.Agent, u.Problem, u.Why, u.File})
		i := slices.IndexFunc(r.Overall, func(row Row) bool { return row.Agent == u.Agent })
		if i < 0 {
			i = len(r.Overall)
			r.Overall = append(r.Overall, Row{Agent: u.Agent, Accuracy: NewShare(0, 0)})
		}
		r.Overall[i].NotCounted++
	}
	sortRows(r.Overall)
}

// rows are those of a task, the best agent first.
func (b *Builder) rows(task problem.Task) []Row {
	rows := []Row{}
	for k, t := range b.tallies {
		if k.task == task {
			rows = append(rows, t.row(k))
		}
	}
	sortRows(rows)
	return rows
}

func sortRows(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(-cmp.Compare(a.Accuracy.Value, b.Accuracy.Value), -cmp.Compare(a.Accuracy.Of, b.Accuracy.Of),
			cmp.Compare(a.Agent, b.Agent))
	})
}

func (t *tally) row(k key) Row {
	n := float64(max(t.runs, 1))
	r := Row{
		Agent: k.agent, Accuracy: t.solved.Share(), NotCounted: t.notCounted,
		Seconds: t.seconds / n, Steps: t.steps / n, InTokens: t.in / n, OutTokens: t.out / n,
		Spreads: t.taken.spreads(), Safety: t.safety.safety(),
	}
	if priced := t.priced.Share().Of; priced > 0 {
		r.Cost = &Cost{t.cost / float64(priced), priced}
	}
	share := func(p Problems) *Share { s := p.Share(); return &s }
	switch k.task {
	case problem.Detection:
		if len(t.alarms) > 0 {
			r.FalseAlarms = share(t.alarms)
		}
	case problem.Localization:
		r.Top1, r.Top3 = share(t.top1), share(t.top3)
	case problem.Analysis:
		r.Level, r.Type = share(t.lvl), share(t.typ)
	}
	return r
}

func (t *tally) curve(agent string, longest int) Curve {
	c, within := Curve{Agent: agent, Within: []Share{}}, Problems{}
	for id, g := range t.solved {
		within[id] = stats.Group{Of: g.Of}
	}
	share := within.Share()
	for k := range longest + 1 {
		for _, id := range t.solvedIn[k] {
			g := within[id]
			g.Solved++
			within[id] = g
		}
		if len(t.solvedIn[k]) > 0 {
			share = within.Share()
		}
		if k > 0 {
			c.Within = append(c.Within, share)
		}
	}
	return c
}

func mixes(all map[string]map[string]*Use) []Mix {
	list := []Mix{}
	for _, agent := range slices.Sorted(maps.Keys(all)) {
		if agent == "" && len(all) == 2 {
			continue // One agent is all of them.
		}
		m := Mix{Agent: agent}
		for _, u := range all[agent] {
			m.Uses = append(m.Uses, *u)
		}
		if len(m.Uses) == 0 {
			continue
		}
		slices.SortFunc(m.Uses, func(a, b Use) int {
			return cmp.Or(-cmp.Compare(a.All(), b.All()), cmp.Compare(a.Name, b.Name))
		})
		list = append(list, m)
	}
	return list
}
