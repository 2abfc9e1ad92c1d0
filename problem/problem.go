// Package problem says what a problem is: an application under load, what is wrong with it, what is
// asked of an agent, and the answer. A problem is a YAML document; a document has one problem for
// each of its tasks:
//
//	id: scale_pod_zero_social_net-{task}-1
//	title: user-service is scaled to no replicas
//	app: social-network
//	load: {rate: 20}
//	faults:
//	  - {kind: scale_pods_to_zero, target: user-service}
//	tasks: [detection, localization, analysis, mitigation]
//	answer:
//	  components: [{name: user-service}]
//	  cause: {system_level: Virtualization, fault_type: Operation Error}
//
// The documents below catalog/ are the built-in problems, AIOpsLab's ids among them. Decoding is
// strict: whatever is not understood is an error with its file and line.
package problem

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/term"
)

// Task is what is asked of an agent.
type Task string

const (
	Detection    Task = term.Detection
	Localization Task = term.Localization
	Analysis     Task = term.Analysis
	Mitigation   Task = term.Mitigation
	// Incident asks several of the questions above, one after another, in one run.
	Incident Task = term.Incident
	// Operation asks to bring services into a state, or to report on them: see [Goal].
	Operation Task = term.Operation
	// OnCall is a shift: incidents that come one after another and at the same time, see [Shift].
	OnCall Task = term.OnCall
)

// Tasks are all tasks: each question by itself, in the order in which an incident is worked on, the incident,
// operations and shifts.
var Tasks = []Task{Detection, Localization, Analysis, Mitigation, Incident, Operation, OnCall}

// Problem is one task of a document.
type Problem struct {
	ID     string
	Task   Task
	Origin Origin
	App    *app.App
	// Healthy marks the twin of a faulty problem: the same in all but the fault.
	Healthy bool
	// Document is where it comes from. For a healthy twin, its faults do not apply.
	Document *Document

	length time.Duration  // of a shift; 0 for the document's
	day    bool           // a whole day of users passes over it
	place  *cloud.Tenancy // where the lab is a guest; nil in a cluster of its own
}

// Origin says where a problem comes from.
type Origin string

const (
	AIOpsLab Origin = "aiopslab"          // active in AIOpsLab
	Disabled Origin = "aiopslab-disabled" // in AIOpsLab, but never enabled
	Ours     Origin = "ours"
)

// Document is the specification of problems that share all but the task.
type Document struct {
	// ID has {task} where a problem's id has its task.
	ID     string      `yaml:"id"`
	Title  string      `yaml:"title"` // of the truth, not for the agent
	App    string      `yaml:"app"`
	Load   Load        `yaml:"load"`
	Faults []FaultSpec `yaml:"faults"`
	Tasks  []Task      `yaml:"tasks"`
	// Original are the tasks that AIOpsLab has, Disabled those it has and never enabled.
	Original []Task `yaml:"original,omitempty"`
	Disabled []Task `yaml:"disabled,omitempty"`
	// Without says of a task that the document does not have why nobody is asked it.
	Without map[Task]string `yaml:"without,omitempty"`
	Answer  Answer          `yaml:"answer,omitempty"`
	// Goal is what an operation asks for. Such a document has no other task.
	Goal *Goal `yaml:"goal,omitempty"`
	// Shift is what may happen in a shift. Such a document has no other task.
	Shift *Shift `yaml:"shift,omitempty"`
	// Differs says where and why the problem or its answer is not AIOpsLab's.
	Differs string `yaml:"differs,omitempty"`
	// TrueFixes are blunt remedies that truly solve the mitigation, with the reason, in addition to
	// those of the faults' kinds. See [fault.Kind].
	TrueFixes map[string]string `yaml:"true_fixes,omitempty"`

	// File is the file that it was read from. For a built-in document it is the name without a directory.
	File string `yaml:"-"`
	// Source is what was read.
	Source []byte `yaml:"-"`

	builtIn bool
}

// FaultSpec is a fault, its target and its parameters.
type FaultSpec struct {
	Kind   string    `yaml:"kind"`
	Target string    `yaml:"target"`
	Params yaml.Node `yaml:"params,omitempty"`

	kind *fault.Kind
}

// Answer is the solution. Detection needs no answer: there are faults, or there are not.
type Answer struct {
	Components []Component  `yaml:"components,omitempty" json:"components,omitempty"`
	Cause      *fault.Cause `yaml:"cause,omitempty" json:"cause,omitempty"`
	// Also is a further cause that is right, where what can be seen supports two.
	Also []fault.Cause `yaml:"also,omitempty" json:"also,omitempty"`
	// Because says what can be seen that supports each cause, and no other.
	Because string `yaml:"because,omitempty" json:"because,omitempty"`
}

// Component is a part of the system that is faulty.
type Component struct {
	Name string `yaml:"name" json:"name"`
	// Aliases are other names that are accepted for it.
	Aliases []string `yaml:"aliases,omitempty" json:"aliases,omitempty"`
}

// In is the problem as it is in a cluster that is somebody's, where its namespaces may have other names.
func (p *Problem) In(t *cloud.Tenancy) *Problem {
	moved := *p
	moved.App, moved.place = p.App.In(t.Name(p.App.Namespace)), t
	return &moved
}

// Namespaces are those that the problem has beside its application's, by their usual names. A healthy twin has them,
// too.
func (p *Problem) Namespaces() (names []string) {
	for _, s := range p.Document.Faults {
		f, err := s.bind(p.App, nil)
		if spaced, ok := f.(fault.Spaced); ok && err == nil { // What cannot be bound, Bind tells.
			names = append(names, spaced.Namespaces()...)
		}
	}
	return names
}

// Faulty reports whether something is wrong.
func (p *Problem) Faulty() bool { return len(p.Faults()) > 0 }

// BuiltIn reports whether the problem is one of the program's.
func (p *Problem) BuiltIn() bool { return p.Document.builtIn }

// Faults are the faults that are injected.
func (p *Problem) Faults() []FaultSpec {
	if p.Healthy {
		return nil
	}
	return p.Document.Faults
}

// Ramp is how long the slowest of the document's faults takes to grow. A healthy twin has it too.
func (d *Document) Ramp() (longest time.Duration) {
	for _, s := range d.Faults {
		var p struct {
			Ramp time.Duration `yaml:"ramp"`
		}
		if err := s.Params.Decode(&p); err == nil { // A kind without it has other parameters alone.
			longest = max(longest, p.Ramp)
		}
	}
	return longest
}

// Answer is the answer of the document. For a healthy twin it is that nothing is wrong.
func (p *Problem) Answer() Answer {
	if !p.Faulty() {
		return Answer{}
	}
	return p.Document.Answer
}

// Questions are what is asked of the agent, one after another: the task itself or, in an incident, all that the
// document has an answer for. A healthy twin asks what its document does.
func (p *Problem) Questions() []Task {
	if p.Task != Incident {
		return []Task{p.Task}
	}
	return p.Document.questions(p.App)
}

// Asks reports whether a question is among those of the problem.
func (p *Problem) Asks(question Task) bool { return slices.Contains(p.Questions(), question) }

// Anomaly is the answer to the detection task.
func (p *Problem) Anomaly() string {
	if p.Faulty() {
		return "Yes"
	}
	return "No"
}

// Bind makes the faults. Each call makes new ones.
func (p *Problem) Bind() ([]fault.Fault, error) {
	var list []fault.Fault
	for _, s := range p.Faults() {
		f, err := s.bind(p.App, p.place)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// Lacks says why the problem cannot be run in a cloud, or "" if it can. A healthy twin can be run where its document's
// faults can, or it would be known by that.
func (p *Problem) Lacks(c cloud.Cloud) string {
	for _, s := range p.Document.Faults {
		f, err := s.bind(p.App, p.place)
		if err != nil {
			return err.Error()
		}
		if why := s.kind.Lacks(c, f); why != "" {
			return why
		}
	}
	if s := p.Shift(); s != nil {
		for _, q := range s.of {
			if why := q.Lacks(c); why != "" {
				return why
			}
		}
	}
	return ""
}

func (s *FaultSpec) bind(a *app.App, place *cloud.Tenancy) (fault.Fault, error) {
	return s.kind.New(fault.Target{App: a, Service: s.Target, Place: place}, s.params())
}

// params is nil if there are none.
func (s *FaultSpec) params() *yaml.Node {
	if s.Params.IsZero() {
		return nil
	}
	return &s.Params
}

// Solution is the reference solution of the mitigation: commands for the agent's shell.
func (p *Problem) Solution() ([]string, error) {
	var commands []string
	if g := p.Goal(); g != nil && len(g.Solution) > 0 {
		for _, c := range g.Solution {
			commands = append(commands, strings.ReplaceAll(c, "{namespace}", p.App.Namespace))
		}
		return commands, nil
	}
	for _, s := range p.Faults() {
		c, err := s.kind.Fix(fault.Target{App: p.App, Service: s.Target, Place: p.place}, s.params())
		if err != nil {
			return nil, err
		}
		commands = append(commands, c...)
	}
	return commands, nil
}

// TrueFixes are the blunt remedies that truly solve the mitigation, with the reason. With several
// faults, a remedy must be one for each of them.
func (p *Problem) TrueFixes() map[string]string {
	fixes := p.fixes(func(k *fault.Kind, remedy string) string { return k.TrueFixes[remedy] })
	for remedy, why := range p.Document.TrueFixes {
		fixes[remedy] = why
	}
	return fixes
}

// MayFix are the blunt remedies that solve the mitigation with luck, with the reason. It proves nothing whether
// they do.
func (p *Problem) MayFix() map[string]string {
	fixes := p.fixes(func(k *fault.Kind, remedy string) string { return cmp.Or(k.MayFix[remedy], k.TrueFixes[remedy]) })
	for remedy := range p.TrueFixes() {
		delete(fixes, remedy)
	}
	return fixes
}

// fixes are the remedies for which why gives a reason with every fault. Where a report is asked for there are none: no
// remedy makes one.
func (p *Problem) fixes(why func(k *fault.Kind, remedy string) string) map[string]string {
	fixes := map[string]string{}
	if p.reports() {
		return fixes
	}
	for _, remedy := range fault.Remedies {
		reason := ""
		for _, s := range p.Faults() {
			reason = why(s.kind, remedy)
			if remedy == fault.RollBackEverything && !fault.RollsBack(p.App, s.Target) {
				reason = "" // It is for Deployments.
			}
			if reason == "" {
				break
			}
		}
		if reason != "" {
			fixes[remedy] = reason
		}
	}
	return fixes
}

// reports says whether what is asked for is a report.
func (p *Problem) reports() bool {
	g := p.Document.Goal
	return p.Task == Operation && len(g.Report) > 0
}

// questions are those of an incident: whether something is wrong, and those of the document's tasks. A document that
// names the incident itself asks where, what and to mend it as far as that has an answer.
func (d *Document) questions(a *app.App) []Task {
	list := []Task{Detection}
	ask := func(t Task, answered bool) {
		if slices.Contains(d.Tasks, t) || slices.Contains(d.Tasks, Incident) && answered {
			list = append(list, t)
		}
	}
	ask(Localization, len(d.Answer.Components) > 0)
	ask(Analysis, d.Answer.Cause != nil)
	ask(Mitigation, !slices.ContainsFunc(d.Faults, func(s FaultSpec) bool { return !s.mendable(a) }))
	return list
}

// mendable reports whether an agent can undo the fault.
func (s *FaultSpec) mendable(a *app.App) bool {
	if s.kind == nil {
		return false
	}
	fix, err := s.kind.Fix(fault.Target{App: a, Service: s.Target}, s.params())
	return err == nil && len(fix) > 0
}

// tasks are those of the document, and the incident if there is something to find or to mend.
func (d *Document) tasks() []Task {
	if len(d.Faults) > 0 && !slices.Contains(d.Tasks, Incident) &&
		(slices.Contains(d.Tasks, Localization) || slices.Contains(d.Tasks, Mitigation)) {
		return append(slices.Clone(d.Tasks), Incident)
	}
	return d.Tasks
}

// taskMark stands for the task in a document's id.
const taskMark = "{task}"

// problems are the document's problems: one for each task, the incident, and the healthy twins of the two that ask
// whether something is wrong.
func (d *Document) problems(a *app.App) []*Problem {
	var list []*Problem
	for _, t := range d.tasks() {
		p := &Problem{ID: strings.ReplaceAll(d.ID, taskMark, string(t)), Task: t, Origin: Ours, App: a, Document: d}
		switch {
		case slices.Contains(d.Original, t):
			p.Origin = AIOpsLab
		case slices.Contains(d.Disabled, t):
			p.Origin = Disabled
		}
		list = append(list, p)
		if (t == Detection || t == Incident || t == Operation && d.Goal.twin()) && p.Faulty() {
			list = append(list, &Problem{
				ID: p.ID + "-healthy", Task: t, Origin: Ours, App: a, Healthy: true,
				Document: d,
			})
		}
	}
	return list
}
