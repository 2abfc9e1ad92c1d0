package runbook

import (
	"fmt"
	"slices"

	"github.com/aiopslab/aiopslab/problem"
)

// investigation is the work on one problem.
type investigation struct {
	*console
	*system
	task  problem.Task
	found []finding // by looks that are not repeated
	next  string    // what the last look says, for the thought before the next one
	well  bool      // a repair has helped
}

// investigate looks until it knows enough. The looks are in the order in which they tell most for
// their price: first what Kubernetes and monitoring know, then what is configured, then how requests
// fare, connections and logs.
func (i *investigation) investigate() {
	for _, look := range []func(){
		i.lookAtAlerts, i.lookAtPods, i.lookAtDeployments, i.lookAtServices, i.lookAtIllPods, i.lookAtHistory,
		i.lookAtTopology, i.lookAtMetrics, i.lookAtLogs, i.lookAtLastWords, i.lookAtConnections, i.lookAtEvents,
	} {
		look()
		if i.enough() {
			return
		}
	}
	i.lookAgain()
}

// enough reports whether the task can be done with what is known. To say that something is wrong, one
// cause is enough; to say what, all looks are needed.
func (i *investigation) enough() bool {
	return i.task == problem.Detection && slices.ContainsFunc(i.all(), func(f finding) bool {
		return f.rank() >= certain
	})
}

// all are the findings so far.
func (i *investigation) all() []finding { return append(slices.Clone(i.found), i.findings()...) }

// causes are the findings that explain the others.
func (i *investigation) causes() []finding { return conclude(i.all(), i.dependsOn) }

const (
	// settled is the rank of what does not go away by itself.
	settled = 65
	// pause is how many seconds pass before the second look, which is about these seconds only: what
	// was slow before must not count twice.
	pause = 15
)

// lookAgain repeats the looks whose findings may be of a moment, unless there are others: what is
// seen once only is no fault, and a fault may take a moment to show.
func (i *investigation) lookAgain() {
	list := i.causes()
	if len(list) > 0 && list[0].rank() >= settled {
		return
	}
	if len(list) > 0 {
		i.next = fmt.Sprintf("It looks as if %s were at fault: %s. To be sure I wait a moment and look again.",
			list[0].component, list[0].evidence)
	} else {
		i.next = "Nothing is wrong so far, but trouble may take a while to show. I wait a moment and look again."
	}
	before, measured := i.rows, i.samples
	i.pods, i.samples, i.probes = nil, nil, nil
	i.lookAtPodsAfter(pause)
	i.compare(before)
	defer func() { i.samples = lasting(i.samples, measured) }()
	for _, look := range []func(){
		i.lookAtIllPods, i.lookAtHistory, func() { i.lookAtMetricsOf(pause) }, i.lookAtConnections,
		i.lookAtLogs, i.lookAtLastWords,
	} {
		look()
		if i.enough() {
			return
		}
	}
}

// lasting leaves out what was slow only now: the whole machine may have been busy.
func lasting(now, before []sample) []sample {
	return slices.DeleteFunc(now, func(m sample) bool {
		return m.latency() && !slices.ContainsFunc(before, func(b sample) bool {
			return b.name == m.name && b.who == m.who
		})
	})
}

// compare finds pods that took the place of others since a look before.
func (i *investigation) compare(before []row) {
	for _, r := range i.rows {
		c := i.component(r.name)
		known := slices.ContainsFunc(before, func(b row) bool { return b.name == r.name })
		other := slices.ContainsFunc(before, func(b row) bool { return i.component(b.name) == c })
		if !known && other {
			i.found = append(i.found, finding{
				kind: replaced, component: c, node: r.node,
				evidence: "its pod was replaced while I looked",
			})
		}
	}
}
