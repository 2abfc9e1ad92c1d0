package runbook

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file has the oracles of an [Operator]: what they say against a try. They err on the side of a repair: what comes
// late, was there before, or is of a moment is no reason to take one back.

// try is what was tried last.
type try struct {
	fixed []finding
	seen  []finding // that there were before
	ended time.Time
}

// alertDelay is how late an alert comes, by when metrics are read and rules evaluated: one that came sooner after a try
// is of what was before.
const alertDelay = 20 * time.Second

// Well asks the oracles: that all is available, that pods are ready and services can be reached, that requests succeed,
// and that no alert fires that the try may have caused. It returns what they say against it, or nothing.
func (o *Operator) Well() (complaints []string) {
	i := o.i
	var bad []finding
	if !i.better() {
		bad = o.objections()
		if passing(bad) && i.left() > 3 {
			bad = o.lasting(bad)
		}
	}
	o.learn(bad)
	for _, f := range bad {
		complaints = append(complaints, fmt.Sprintf("%s: %s", f.component, f.evidence))
	}
	i.alerts = o.Call("Does an alert fire that did not before?", "get_alerts", i.namespace)
	for _, a := range readAlerts(i.alerts) {
		if a.firing && !o.alerts[a.name] && a.since < o.now().Sub(o.try.ended)-alertDelay {
			complaints = append(complaints, "the alert "+a.name+" fires")
		}
	}
	slices.Sort(complaints)
	i.well = len(complaints) == 0
	return complaints
}

// learn keeps what logs say for certain against a try: no try makes a store refuse its clients, so it was so before,
// and the next look, which is at the state of things, would not find it.
func (o *Operator) learn(objections []finding) {
	o.learnt = slices.DeleteFunc(slices.Clone(objections), func(f finding) bool {
		return !slices.Contains([]kind{loginRefused, tlsRequired, diskFailing, kernelFailing}, f.kind)
	})
}

// Reflect looks again after a try that was in vain, and was taken back. What was tried is ruled out, and what was
// learnt by it counts.
func (o *Operator) Reflect(thought string, tried ...string) []Cause {
	o.ruleOut(tried...)
	o.Again(thought)
	o.i.found = append(o.i.found, o.learnt...)
	return o.Causes()
}

// Tried notes that a try has ended, so that the oracles know what it cannot have caused.
func (o *Operator) Tried() { o.try.ended = o.now() }

// Fell notes that what was tried was taken back: nothing is mended.
func (o *Operator) Fell() { o.i.well = false }

// objections are the causes that are left after a try.
func (o *Operator) objections() []finding {
	all := slices.DeleteFunc(o.i.all(), func(f finding) bool { return o.excused(f) })
	return conclude(all, o.i.dependsOn)
}

// excused reports whether a finding says nothing against a try.
func (o *Operator) excused(f finding) bool {
	again := slices.ContainsFunc(o.try.fixed, f.like)
	switch f.kind {
	case slow:
		// Who was not slow before may be so for a moment. If it was known for certain what is wrong, and that is gone,
		// slowness is not what was to be mended.
		return !o.slow[f.component] || sure(o.try.fixed)
	case outOfMemory, killed, replaced:
		// A container that has ended and is ready again is history, unless that was to be mended and has come again.
		same := slices.ContainsFunc(o.try.seen, func(g finding) bool {
			return g.component == f.component && g.evidence == f.evidence
		})
		return o.i.ready(f.component) && (!again || same)
	}
	return false
}

// like reports whether a finding is of the same kind and component.
func (f finding) like(g finding) bool { return g.component == f.component && g.kind == f.kind }

// sure reports whether all findings are certain.
func sure(list []finding) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(f finding) bool { return f.rank() < certain })
}

// passing reports whether all findings may be of a moment.
func passing(list []finding) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(f finding) bool { return f.rank() >= settled })
}

// lasting looks once more, and returns those objections that are still there.
func (o *Operator) lasting(before []finding) []finding {
	i := o.i
	i.forget()
	i.next = fmt.Sprintf("%s: %s. That may be of a moment: I look again.", before[0].component, before[0].evidence)
	i.lookAtPods()
	i.lookAtConnections()
	if i.prometheus != "" {
		i.samples = readSamples(i.shell(i.next+" And do requests succeed now?", i.metricsCommand(pause), 60))
	}
	return slices.DeleteFunc(o.objections(), func(f finding) bool { return !slices.ContainsFunc(before, f.like) })
}

// alert is a line of the table of alerts.
type alert struct {
	name   string // with what it is about
	firing bool
	since  time.Duration
}

// readAlerts reads the table of alerts.
func readAlerts(text string) (list []alert) {
	for line := range strings.Lines(text) {
		f := columns.Split(strings.TrimSpace(line), -1)
		if len(f) < 5 || f[0] != "firing" && f[0] != "pending" {
			continue
		}
		since, _ := time.ParseDuration(f[4]) // If it is not known, it is new.
		list = append(list, alert{f[1] + " (" + f[3] + ")", f[0] == "firing", since})
	}
	return list
}
