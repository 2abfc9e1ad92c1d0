package runbook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// Operator is the runbook in parts, for an agent that decides itself what comes next. Its methods look and act through
// the agent's steps, so each returns when the steps that it took are done.
type Operator struct {
	i      *investigation
	runner *runner
	alerts map[string]bool // that fired when they were first looked at
	slow   map[string]bool // components that were slow before anything was tried
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
	o := &Operator{}
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
	o.i.prepare("First I set up a few helpers, which keep of long outputs what matters.")
	o.look(o.i.lookAtAlerts, o.i.lookAtPods, o.i.lookAtDeployments, o.i.lookAtServices)
	o.alerts = firing(o.i.alerts)
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

// Causes are what is known to be wrong, the most certain first, as far as it says what could be set right.
func (o *Operator) Causes() (list []Cause) {
	for _, f := range o.i.causes() {
		if !f.vague() {
			list = append(list, Cause{f.component, f.evidence, f})
		}
	}
	return list
}

// Fix sets causes right, as the runbook says.
func (o *Operator) Fix(causes []Cause) {
	var volumes, fixed []finding
	for _, c := range causes {
		if fixed = append(fixed, c.finding); c.finding.kind == volumeUnbound {
			volumes = append(volumes, c.finding)
		} else {
			o.i.fix(c.finding)
		}
	}
	o.i.fixVolumes(volumes)
	o.i.helpOthers(fixed)
}

// Well asks the oracles: that all is available, that pods are ready and services can be reached, that requests succeed,
// and that no alert fires that did not before. It returns what they say against it, or nothing. Who was not slow before
// may be so for a moment: a repair must not be taken back for that.
func (o *Operator) Well() (complaints []string) {
	if o.i.well = o.i.better(); !o.i.well {
		for _, f := range o.i.causes() {
			if f.kind != slow || o.slow[f.component] {
				complaints = append(complaints, fmt.Sprintf("%s: %s", f.component, f.evidence))
			}
		}
		o.i.well = len(complaints) == 0
	}
	o.i.alerts = o.Call("Does an alert fire that did not before?", "get_alerts", o.i.namespace)
	for a := range firing(o.i.alerts) {
		if o.alerts != nil && !o.alerts[a] {
			complaints = append(complaints, "the alert "+a+" fires")
		}
	}
	slices.Sort(complaints)
	return complaints
}

// firing are the alerts that fire, of a table of them.
func firing(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if f := columns.Split(strings.TrimSpace(line), -1); len(f) >= 4 && f[0] == "firing" {
			all[f[1]+" ("+f[3]+")"] = true
		}
	}
	return all
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
