package runbook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// Operator is the runbook in parts, for an agent that decides itself what comes next. Its methods look and act through
// the agent's steps, so each returns when the steps that it took are done.
type Operator struct {
	i      *investigation
	runner *runner
	now    func() time.Time
	try    try             // the last one
	out    map[string]bool // causes that are ruled out, by their keys
	alerts map[string]bool // that there were when they were first looked at
	slow   map[string]bool // components that were slow before anything was tried
	learnt []finding       // by the last try
	set    bool            // the helpers are
}

// Cause is what is wrong, and with what.
type Cause struct {
	Component, Evidence string
	finding             finding
}

// Key names it.
func (c Cause) Key() string { return fmt.Sprintf("%s %d", c.Component, c.finding.kind) }

// Operate is an agent whose work is sequential code. It makes so many calls at most, and the submission.
func Operate(b agent.Briefing, calls int, work func(*Operator)) agent.Agent {
	o := &Operator{now: time.Now}
	o.runner = start(func(c *console) {
		o.i = &investigation{console: c, system: newSystem(b.Namespace), task: b.Task}
		work(o)
	})
	if calls > 0 {
		o.runner.console.most = calls
	}
	return o.runner
}

// Context is that of the step which is waited for.
func (o *Operator) Context() context.Context { return o.i.ctx }

// Fail ends the work with an error.
func (o *Operator) Fail(err error) {
	o.runner.failed = err
	o.i.closed = true
}

// Closed reports whether no more steps can be taken.
func (o *Operator) Closed() bool { return o.i.closed }

// Left is how many calls can still be made.
func (o *Operator) Left() int { return o.i.left() }

// Call calls an action, and returns what came of it.
func (o *Operator) Call(thought, action string, args ...any) string {
	return o.i.call(thought, action, args...)
}

// Do takes a step with a response of somebody else, and returns what came of it.
func (o *Operator) Do(response string) string {
	if o.i.closed || o.i.left() < 1 {
		return ""
	}
	o.i.looks++
	if !o.i.yield(response) {
		o.i.closed = true
		return ""
	}
	_, pages := aci.CutPages(o.i.observation)
	o.i.console.heard(pages)
	text := strings.TrimRight(o.i.observation, " \n")
	o.i.console.refused = o.i.console.refused || strings.Contains(text, inTransaction)
	return text
}

// Refused reports whether something was refused since it was last called, because a transaction is open and it cannot
// be taken back.
func (o *Operator) Refused() bool {
	was := o.i.console.refused
	o.i.console.refused = false
	return was
}

// Detect looks at what the monitoring and Kubernetes know, and reports whether something is wrong.
func (o *Operator) Detect() bool {
	if !o.set {
		o.i.prepare("First I set up a few helpers, which keep of long outputs what matters.")
		o.set = true
	}
	o.look(o.i.lookAtAlerts, o.i.lookAtPods, o.i.lookAtDeployments, o.i.lookAtServices)
	o.alerts = map[string]bool{}
	for _, a := range readAlerts(o.i.alerts) {
		o.alerts[a.name] = true // One that is pending may fire soon, whatever is done.
	}
	return len(o.i.all()) > 0 || len(o.alerts) > 0
}

// Diagnose finds out what is wrong. It begins with who calls whom, so that what is wrong with somebody who depends on
// another is told from its cause.
func (o *Operator) Diagnose() []Cause {
	i := o.i
	o.look(i.lookAtTopology, i.lookAtIllPods, i.lookAtHistory, i.lookAtMetrics, i.lookAtLogs, i.lookAtLastWords,
		i.lookAtConnections, i.lookAtEvents)
	if !i.enough() {
		i.lookAgain()
	}
	o.slow = map[string]bool{}
	for _, f := range i.all() {
		o.slow[f.component] = o.slow[f.component] || f.kind == slow
	}
	return o.Causes()
}

// Again looks once more at what a repair, or taking it back, may have changed.
func (o *Operator) Again(thought string) []Cause {
	i := o.i
	i.forget()
	i.next = thought
	o.look(i.lookAtPods, i.lookAtDeployments, i.lookAtIllPods, i.lookAtHistory, i.lookAtConnections)
	return o.Causes()
}

func (o *Operator) look(looks ...func()) {
	for _, l := range looks {
		if l(); o.i.enough() {
			return
		}
	}
}

// Causes are what is known to be wrong, the most certain first, as far as it says what could be set right and is not
// ruled out.
func (o *Operator) Causes() (list []Cause) {
	all := slices.DeleteFunc(o.i.all(), func(f finding) bool { return o.out[causeOf(f).Key()] })
	for _, f := range conclude(all, o.i.dependsOn) {
		if !f.vague() {
			list = append(list, causeOf(f))
		}
	}
	return list
}

func causeOf(f finding) Cause { return Cause{f.component, f.evidence, f} }

// ruleOut notes causes that were set right in vain: they explain nothing any more, so that others come to light.
func (o *Operator) ruleOut(keys ...string) {
	if o.out == nil {
		o.out = map[string]bool{}
	}
	for _, k := range keys {
		o.out[k] = true
	}
}

// Fix sets causes right, as the runbook says. It ends early if something is refused.
func (o *Operator) Fix(causes []Cause) {
	o.try = try{seen: o.i.all()}
	var volumes []finding
	for _, c := range causes {
		if o.try.fixed = append(o.try.fixed, c.finding); c.finding.kind == volumeUnbound {
			volumes = append(volumes, c.finding)
		} else {
			o.i.fix(c.finding)
		}
	}
	o.i.fixVolumes(volumes)
	if !o.i.console.refused {
		o.i.helpOthers(o.try.fixed)
	}
}

// Last is [Operator.Call] for a call that must be made, though no more can be: it ends what is under way.
func (o *Operator) Last(thought, action string, args ...any) string {
	if o.i.closed {
		return ""
	}
	o.i.looks++
	return o.i.send(thought, agent.Call(action, args...))
}

// Submit answers what the task asks for, and returns the question that is asked next, of an incident, or "".
func (o *Operator) Submit() problem.Task {
	o.i.submit()
	if o.i.closed {
		return ""
	}
	next := problem.Task(aci.Asked(o.i.observation))
	if next != "" {
		o.i.task = next
	}
	return next
}

// Ask sets the question that is worked on.
func (o *Operator) Ask(q problem.Task) { o.i.task = q }
