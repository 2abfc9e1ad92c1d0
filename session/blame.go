package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
)

// This file decides whose it is if a run cannot be judged as usual: the system cannot be looked at, is
// not as the agent was to find it, or the machine is too busy. The rule is in docs/grading.md. An
// agent whose own doing may be the cause is judged by what there is, as if nothing were in the way: so
// it is never better off than with a plain wrong answer. An agent that did nothing of the kind is
// not blamed.

// changes are what the journal tells of what an agent did to a cluster.
type changes struct {
	made int // writes that were carried out, or may have been
	// far are those that can keep the lab from looking: to what is not of the application, or so large
	// that a cluster is busy with it.
	far []string
}

const (
	manyWrites   = 300
	manyReplicas = 20
)

// clientGone is the status of a write whose client left before the answer.
const clientGone = 499

// doings are the writes that may be the agent's doing. An application may have programs that write by themselves, such
// as an operator. Who wants to write through them must write first, or connect to one: until then it is their own.
func doings(journal []guard.Entry) []guard.Entry {
	i := slices.IndexFunc(journal, func(e guard.Entry) bool { return e.User == "" })
	if i < 0 {
		return nil
	}
	return journal[i:]
}

// add takes a write into account.
func (c *changes) add(e guard.Entry, namespace string) {
	if e.DryRun || e.Status >= 300 && e.Status != clientGone {
		return
	}
	c.made++
	what := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Verb, e.Resource, e.Name))
	switch {
	case namespace != "" && e.Namespace != namespace, startsPods[e.Resource] && e.Verb == "create",
		replicas(e) > manyReplicas, runsOn(e):
		c.far = append(c.far, what)
	case c.made == manyWrites:
		c.far = append(c.far, fmt.Sprintf("%d writes", c.made))
	}
}

// startsPods are the resources that start pods when they are created.
var startsPods = map[string]bool{
	"pods": true, "jobs": true, "cronjobs": true, "deployments": true, "replicasets": true, "statefulsets": true,
	"daemonsets": true, "replicationcontrollers": true, "horizontalpodautoscalers": true,
}

// replicas is how many pods an object asks for after a write.
func replicas(e guard.Entry) int {
	var o struct {
		Spec struct {
			Replicas    int `json:"replicas"`
			Parallelism int `json:"parallelism"`
			MaxReplicas int `json:"maxReplicas"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(e.After, &o) // What is no such object asks for none.
	return max(o.Spec.Replicas, o.Spec.Parallelism, o.Spec.MaxReplicas)
}

// lastLooks are how many looks say whether the machine was fit to judge.
const lastLooks = 15

// starved says how much of its time the lab waited for a processor if others had too much of the machine in a third of
// the last looks. Then users may have been served badly for it.
func (h *history) starved() (waited float64, starved bool) {
	looks := h.looks[max(0, len(h.looks)-lastLooks):]
	n := 0
	for _, l := range looks {
		if l.Starved() {
			n++
			waited = max(waited, l.Waited)
		}
	}
	return waited, n > 0 && 3*n >= len(looks)
}

// tooBusy says how late the load was if the machine was too busy to judge the system after the agent
// was done: in a third of the last looks, or when it last saw a fault that comes and goes.
func (h *history) tooBusy() (late time.Duration, busy bool) {
	if late, busy = h.busyWhenSeen(); busy {
		return late, true
	}
	looks := h.looks[max(0, len(h.looks)-lastLooks):]
	n := 0
	for _, l := range looks {
		if l.Overloaded() {
			n++
			late = max(late, l.Late)
		}
	}
	return late, n > 0 && 3*n >= len(looks)
}

// busyWhenSeen says how late the load was when a fault that comes and goes, and is away now, was last seen. It counts
// as there for a while after that. If the machine was too busy then, it may have been the machine that was seen.
func (h *history) busyWhenSeen() (late time.Duration, busy bool) {
	away := func(symptom string) bool { return strings.Contains(symptom, fault.Away) }
	for i, l := range slices.Backward(h.looks) {
		if len(l.Symptoms) == 0 {
			return 0, false
		}
		if fresh := slices.ContainsFunc(l.Symptoms, func(s string) bool { return !away(s) }); fresh {
			return l.Late, i < len(h.looks)-1 && l.Overloaded()
		}
	}
	return 0, false
}

// busyBefore reports whether the machine was too busy already before the agent's turn.
func (h *history) busyBefore() bool { return grade.Look{Late: h.doing.LateBefore}.Overloaded() }

// load is what of the agent's doing can make a machine busy, or "".
func (h *history) load() string {
	list := slices.Clone(h.hold.Left)
	if much := h.doing.much(); much != "" {
		list = append([]string{much}, list...)
	}
	return strings.Join(list, ", ")
}

// touched is what of the agent's doing can have changed how the system is, or "". Over a connection
// into the cluster it can have told any service anything.
func (h *history) touched() string {
	switch {
	case h.changes.made > 0:
		return plural(h.changes.made, "write")
	case h.doing.Connections > 0:
		return plural(h.doing.Connections, "connection") + " into the cluster"
	}
	return h.load()
}

// unreported reports whether the agent was asked for a report and has given none, or not all of it.
func (h *history) unreported() bool {
	return h.truth.Goal != nil && grade.Unreported(h.truth.Goal, decodeAnswer(h.submission.Answer))
}

// onlyLooks reports whether all that was asked for is a report, and no fault is there to be seen: then who did nothing
// but look did all of it, and may have seen what a busy machine looks like.
func (h *history) onlyLooks(last grade.Look) bool {
	g := h.truth.Goal
	there := len(h.truth.Faults) > 0 && len(last.Symptoms) >= len(h.truth.Faults)
	return g != nil && len(g.Want) == 0 && !there
}

// excuse says why the run does not count though there is something to judge, and whose that is; the
// class is empty if it counts.
func (h *history) excuse(res grade.Result) (Class, string) {
	if len(h.looks) == 0 {
		return "", ""
	}
	late, busy := h.tooBusy()
	busyText := fmt.Sprintf("the machine is too busy to judge: the load itself was %v late",
		late.Round(time.Millisecond))
	innocent := h.busyBefore() || h.load() == ""
	last := h.looks[len(h.looks)-1]
	if h.truth.byState() {
		// Who did nothing has mended nothing, what is gone is gone, and what was not reported was not, however busy the
		// machine is.
		sure := h.touched() == "" && !h.onlyLooks(last) || len(grade.Missing(h.baseline, last)) > 0 || h.unreported()
		if busy && innocent && !res.Success() && !sure {
			return Infra, busyText
		}
		// A fault that is gone, and users who are not well, are what a machine looks like that others use.
		if waited, starved := h.starved(); starved && innocent && !res.Success() && !sure && len(last.Symptoms) == 0 {
			return Infra, fmt.Sprintf("the machine is too busy to judge: for %.0f %% of its time of work the lab "+
				"waited for a processor that other programs had; run less beside it, or with a smaller -j", 100*waited)
		}
		if why := h.misled(); why != "" {
			return Infra, why
		}
		if why := spoilt(h.baseline, last, len(h.truth.Faults)); h.mends && why != "" && h.touched() == "" {
			return Inconclusive, why // As the answers to the other questions are.
		}
		return "", ""
	}
	why := spoilt(h.baseline, last, len(h.truth.Faults))
	switch {
	case why == "" || h.changes.made > 0 || h.mends && h.touched() != "":
	case busy && innocent:
		return Infra, busyText
	case h.touched() == "":
		return Inconclusive, why
	}
	return "", ""
}

// misled says why a report on a healthy twin cannot be judged, or "": it is to say that the objectives hold, and one
// was missed at the beginning of the agent's turn and ever after. What was so before its first call is not the agent's
// doing.
func (h *history) misled() string {
	g := h.truth.Goal
	if g == nil || len(g.Objectives) == 0 || len(h.truth.Faults) > 0 || h.unreported() {
		return ""
	}
	missed := grade.Missed(g, h.found)
	for _, l := range h.looks {
		now := grade.Missed(g, l.Operated)
		maps.DeleteFunc(missed, func(key, _ string) bool { return now[key] == "" })
	}
	if len(missed) == 0 {
		return ""
	}
	return "nothing was wrong, and the objectives were missed all the same: " +
		strings.Join(slices.Sorted(maps.Values(missed)), "; ")
}

// inTheWay says how the agent's own doing was in the way of judging a mitigation, or "".
func (h *history) inTheWay() string {
	if late, busy := h.tooBusy(); busy && h.load() != "" {
		return fmt.Sprintf("; the load was %v late, which the agent's own doing can have caused: %s",
			late.Round(time.Millisecond), h.load())
	}
	return ""
}

// spoilt says why the situation is not the one that the agent was to find, or "".
func spoilt(baseline, l grade.Look, faults int) string {
	if len(l.Symptoms) < faults {
		return "the fault did not show any more when the agent was done, though nobody had touched it"
	}
	if faults == 0 {
		if c := grade.Complaints(baseline, l); len(c) > 0 {
			return "the system without a fault was not well when the agent was done: " + strings.Join(c, "; ")
		}
	}
	return ""
}

// unseen is the verdict on a system that could not be looked at.
func (h *history) unseen() (v Verdict, judged bool) {
	why := "the system could not be looked at after the agent was done"
	if h.blind != "" {
		why += ": " + h.blind
	}
	cause := h.load()
	if len(h.changes.far) > 0 {
		cause = strings.Join(h.changes.far[:min(3, len(h.changes.far))], ", ")
	}
	switch {
	case cause == "":
		return Verdict{GraderFailed, why, h.metrics(nil)}, true
	case h.truth.byState():
		return Verdict{AgentFailed, why + "; the agent's own doing can be the cause: " + cause, h.metrics(nil)}, true
	}
	return Verdict{}, false // It is judged by its answer.
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
