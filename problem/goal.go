package problem

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// Goal is what an operation asks for: a state that services are to be in, a report, or both. It is judged by what the
// cluster and the telemetry show, and by what users get, never by how it was done.
type Goal struct {
	// Level is the level of autonomy that it asks for: L1 is a step that is given, L2 a task that is to be planned, L3
	// to notice, L4 to find the cause, L5 to set it right.
	Level string `yaml:"level" json:"level"`
	// Services are those that it is about.
	Services []string `yaml:"services" json:"services"`
	// Ask is what the agent is told.
	Ask string `yaml:"ask" json:"ask"`
	// AtFirst is what is done before the agent's turn.
	AtFirst *AtFirst `yaml:"at_first,omitempty" json:"at_first,omitempty"`
	// Want are conditions that must hold in the end, for a while.
	Want []Want `yaml:"want,omitempty" json:"want,omitempty"`
	// Objectives are what a report is about that says whether they hold. They must hold in a healthy twin: one that
	// misses them from before the agent's first call on tells nothing about the agent.
	Objectives []Want `yaml:"objectives,omitempty" json:"objectives,omitempty"`
	// Report is what the answer must tell.
	Report []Item `yaml:"report,omitempty" json:"report,omitempty"`
	// Rises is how long more and more users come, from the beginning of the agent's turn. What is reached before they
	// are all there does not count.
	Rises time.Duration `yaml:"-" json:"rises,omitempty"`
	// Budget is the part of users' requests that may fail from the beginning of the agent's turn until it is judged.
	// With 0 nobody counts them.
	Budget float64 `yaml:"budget,omitempty" json:"budget,omitempty"`
	// Solution is the reference: commands for the agent's shell, in which {namespace} is the application's.
	Solution []string `yaml:"solution,omitempty" json:"-"`
}

// AtFirst is how a Deployment is left for the agent.
type AtFirst struct {
	// Delete is a Deployment that is not there. Its manifest is in the ConfigMap manifests.
	Delete string `yaml:"delete,omitempty" json:"delete,omitempty"`
	// Image is one that a Deployment, Of, is given.
	Image string `yaml:"image,omitempty" json:"image,omitempty"`
	Of    string `yaml:"of,omitempty" json:"of,omitempty"`
}

// Want is a condition. All that it says must hold.
type Want struct {
	// Service is whose it is. With several, in Together, P99 is of all of them in sum.
	Service  string   `yaml:"service,omitempty" json:"service,omitempty"`
	Together []string `yaml:"together,omitempty" json:"together,omitempty"`

	Ready     bool              `yaml:"ready,omitempty" json:"ready,omitempty"`         // all pods, and at least one
	Replicas  int               `yaml:"replicas,omitempty" json:"replicas,omitempty"`   // exactly
	Image     string            `yaml:"image,omitempty" json:"image,omitempty"`         // of all pods
	Env       map[string]string `yaml:"env,omitempty" json:"env,omitempty"`             // of all pods
	Restarted bool              `yaml:"restarted,omitempty" json:"restarted,omitempty"` // all pods are newer than the turn, and else as they were
	// CPU and Memory are less than these parts of the limits.
	CPU    float64 `yaml:"cpu,omitempty" json:"cpu,omitempty"`
	Memory float64 `yaml:"memory,omitempty" json:"memory,omitempty"`
	// P99 is what 99 of 100 requests take less than.
	P99 time.Duration `yaml:"p99,omitempty" json:"p99,omitempty"`
	// Autoscaled says that a HorizontalPodAutoscaler with sensible bounds scales it, and works.
	Autoscaled bool `yaml:"autoscaled,omitempty" json:"autoscaled,omitempty"`

	// Bounded says that all containers have requests and limits of CPU and memory, and Probed that all have readiness
	// probes.
	Bounded bool `yaml:"bounded,omitempty" json:"bounded,omitempty"`
	Probed  bool `yaml:"probed,omitempty" json:"probed,omitempty"`
	// Like says that the service is not part of the application yet, and is to be like one that is: a Deployment of its
	// own with a Service of the same name in front of it, where, on Port, it answers what only the other could answer.
	Like string `yaml:"like,omitempty" json:"like,omitempty"`
	Port int    `yaml:"port,omitempty" json:"port,omitempty"`
}

// Item is a fact that a report must tell.
type Item struct {
	Key string `yaml:"key" json:"key"`
	// Is a measured number, of a service: cpu in thousandths of a core, or p99 in milliseconds.
	Is string `yaml:"is,omitempty" json:"is,omitempty"`
	Of string `yaml:"of,omitempty" json:"of,omitempty"`
	// Value is the right word, if it is no number. A healthy twin has Else.
	Value string `yaml:"value,omitempty" json:"value,omitempty"`
	Else  string `yaml:"else,omitempty" json:"-"`
	// Words are those to choose from.
	Words []string `yaml:"words,omitempty" json:"words,omitempty"`
}

// What a number of a report can be.
const (
	CPUItem = "cpu"
	P99Item = "p99"
)

// Goal is what an operation asks for, nil for other tasks. In a healthy twin, the report is that of a healthy system.
func (p *Problem) Goal() *Goal {
	if p.Task != Operation {
		return nil
	}
	g := *p.Document.Goal
	g.Report = slices.Clone(g.Report)
	g.Rises = p.Document.Load.Users.Rise()
	for _, ns := range p.Namespaces() {
		if called := p.place.Name(ns); called != ns {
			g.Ask = regexp.MustCompile(`\b`+regexp.QuoteMeta(ns)+`\b`).ReplaceAllLiteralString(g.Ask, called)
		}
	}
	for i, item := range g.Report {
		if p.Healthy {
			g.Report[i].Value = item.Else
		}
	}
	return &g
}

// Told is what an agent is told of the goal: what is asked, and how to report.
func (g *Goal) Told() string {
	text := strings.TrimSpace(g.Ask)
	if len(g.Report) == 0 {
		return text
	}
	var keys []string
	for _, i := range g.Report {
		what := "one of " + strings.Join(i.Words, ", ")
		switch i.Is {
		case CPUItem:
			what = "a number: how much CPU " + i.Of + " uses, all pods together, in thousandths of a core"
		case P99Item:
			what = "a number: what 99 of 100 requests to " + i.Of + " take less than, in milliseconds"
		}
		keys = append(keys, fmt.Sprintf("%q (%s)", i.Key, what))
	}
	return text + " Submit a dict with " + strings.Join(keys, " and ") + "."
}

// measured reports whether a condition needs telemetry.
func (w Want) measured() bool { return w.CPU > 0 || w.Memory > 0 || w.P99 > 0 }

// Measured reports whether anything of the goal is measured, and so follows with a delay.
func (g *Goal) Measured() bool {
	return slices.ContainsFunc(g.Want, func(w Want) bool { return w.measured() || w.Autoscaled })
}

// checkGoal notes what is wrong with the goal.
func (r *reader) checkGoal() {
	d := r.d
	asks := slices.Contains(d.Tasks, Operation)
	switch {
	case d.Goal == nil && asks:
		r.missing(at("goal"), "goal is missing: the operation asks for it")
		return
	case d.Goal == nil:
		return
	case !asks || len(d.Tasks) != 1:
		r.add(at("goal"), "goal: it is for documents with the task %s alone", Operation)
	}
	g := d.Goal
	if !slices.Contains(Levels, g.Level) {
		r.add(at("goal", "level"), "goal.level: %s", strict.Unknown("level", g.Level, Levels))
	}
	if strings.TrimSpace(g.Ask) == "" {
		r.missing(at("goal", "ask"), "goal.ask is missing: what the agent is told")
	}
	if len(g.Services) == 0 {
		r.missing(at("goal", "services"), "goal.services is missing: whom it is about")
	}
	if len(g.Want) == 0 && len(g.Report) == 0 {
		r.missing(at("goal", "want"), "goal.want is missing: what must hold in the end, or goal.report")
	}
	var names []string
	for _, s := range r.app.Services {
		names = append(names, s.Name)
	}
	service := func(name string, path ...any) {
		if !slices.Contains(names, name) {
			r.add(path, "goal: in %s %s", r.app.Name, strict.Unknown("service", name, names))
		}
	}
	for i, s := range g.Services {
		service(s, "goal", "services", i)
	}
	conditions := func(field string, list []Want) {
		for i, w := range list {
			if len(w.Together) > 0 {
				for j, s := range w.Together {
					service(s, "goal", field, i, "together", j)
				}
				continue
			}
			r.checkAdded(field, w, i, names)
			if w.Like == "" {
				service(w.Service, "goal", field, i, "service")
			} else {
				service(w.Like, "goal", field, i, "like")
			}
		}
	}
	conditions("want", g.Want)
	conditions("objectives", g.Objectives)
	for i, w := range g.Objectives {
		if !slices.Contains(g.Services, w.Service) {
			r.add(at("goal", "objectives", i), "goal.objectives: each is of one of goal.services, which are %s",
				strings.Join(g.Services, ", "))
		}
	}
	if len(g.Objectives) > 0 && !g.twin() {
		r.add(at("goal", "objectives"), "goal.objectives: they are for a report with else, whose healthy twin must "+
			"meet them")
	}
	if g.Budget < 0 || g.Budget >= 1 {
		r.add(at("goal", "budget"), "goal.budget: %v is no part of the requests that may fail; such is 0.05", g.Budget)
	}
	for i, item := range g.Report {
		switch {
		case item.Key == "":
			r.add(at("goal", "report", i), "goal.report: an item needs a key")
		case item.Is != "":
			if item.Is != CPUItem && item.Is != P99Item {
				r.add(at("goal", "report", i, "is"), "goal.report: %s",
					strict.Unknown("number", item.Is, []string{CPUItem, P99Item}))
			}
			service(item.Of, "goal", "report", i, "of")
		case !slices.Contains(item.Words, item.Value):
			r.add(at("goal", "report", i), "goal.report: %s: the value %q is not among the words", item.Key, item.Value)
		}
	}
	switch a := g.AtFirst; {
	case a == nil:
	case (a.Delete == "") == (a.Image == ""), (a.Image == "") != (a.Of == ""):
		r.add(at("goal", "at_first"), "goal.at_first: give either delete, or image with of")
	default:
		service(cmp.Or(a.Delete, a.Of), "goal", "at_first")
	}
}

// checkAdded notes what is wrong with a condition on a service that is to be added.
func (r *reader) checkAdded(list string, w Want, i int, names []string) {
	wrong := func(field, format string, args ...any) {
		r.add(at("goal", list, i, field), "goal."+list+": "+format, args...)
	}
	switch {
	case w.Like == "" && w.Port != 0:
		wrong("port", "port goes with like, of a service that is to be added")
	case w.Like == "":
	case slices.Contains(names, w.Service):
		wrong("service", "%s is there already; like is of a service that is to be added", w.Service)
	case !dnsLabel.MatchString(w.Service):
		wrong("service", "%q is no name for a service; take small letters, digits and -", w.Service)
	case w.Port < 1 || w.Port > 65535:
		wrong("port", "%s needs a port between 1 and 65535, where it is to answer", w.Service)
	}
}

var dnsLabel = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Looked are the services that are looked at: those that it is about, and those that are to be added.
func (g *Goal) Looked() []string {
	list := slices.Clone(g.Services)
	for _, w := range g.Want {
		if w.Like != "" && !slices.Contains(list, w.Service) {
			list = append(list, w.Service)
		}
	}
	return list
}

// Levels are the levels of autonomy.
var Levels = []string{"L1", "L2", "L3", "L4", "L5"}

// twin reports whether a document has a healthy twin: its report tells a faulty system from a healthy one.
func (g *Goal) twin() bool {
	return slices.ContainsFunc(g.Report, func(i Item) bool { return i.Else != "" })
}

// Asked is what an operation asks for, as an agent is told, or how long a shift is; "" for other tasks.
func (p *Problem) Asked() string {
	if p.Shift() != nil {
		return fmt.Sprintf("Your shift begins now and lasts %v.", spelled(p.Length())) + p.dayTold()
	}
	if g := p.Goal(); g != nil {
		return g.Told()
	}
	return ""
}
