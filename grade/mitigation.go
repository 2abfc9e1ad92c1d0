package grade

import (
	"fmt"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

// What a healthy system may differ from its baseline by. Machines are noisy, and latency is the
// noisiest of what is measured, so it has the widest margin; faults that show in latency alone are
// far beyond it.
const (
	successTolerance   = 0.02 // of all requests
	operationTolerance = 0.10 // of the requests of one operation, of which there are few
	operationRequests  = 8    // fewer requests than these say nothing
	rateTolerance      = 0.30
	rateCovered        = 4 * time.Second // requests come at random; a shorter time says nothing of their rate
	latencyFactor      = 3
	latencySlack       = 300 * time.Millisecond
)

// tooLate is how late the load may be on a machine that is fit to judge a system.
const tooLate = 500 * time.Millisecond

// Overloaded reports whether the machine was too busy for this look to count.
func (l Look) Overloaded() bool { return l.Late > tooLate }

// tooHungry is the part of the time in which the lab wanted to run and others had the processors, on a machine that is
// fit to judge how well users are served.
const tooHungry = 0.5

// Starved reports whether others had so much of the machine that users may have been served badly for it.
func (l Look) Starved() bool { return l.Waited > tooHungry }

// Exemplary reports whether a look shows so well a system that others may be compared with it on another day. One that
// was slow, or served not everybody, because the machine was busy would let a broken system pass later.
func (l Look) Exemplary() bool {
	return !l.Overloaded() && l.Load.Total.Failed == 0 && l.Load.Total.P95 <= latencySlack
}

// Workload is a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Replicas int    `json:"replicas"` // wanted
	Ready    int    `json:"ready"`    // of the current generation
	// Elastic says that the application scales it by itself, to nothing as well: its numbers say nothing.
	Elastic bool `json:"elastic,omitempty"`
}

// Look is the system at one moment.
type Look struct {
	Time      time.Time       `json:"time"`
	Load      workload.Window `json:"load"` // the last few seconds
	Workloads []Workload      `json:"workloads"`
	// Services are the names of the Services.
	Services []string `json:"services,omitempty"`
	// Serving is who answers for them.
	Serving []Serving `json:"serving,omitempty"`
	// Operated is how the services are that an operation is about.
	Operated []Operated `json:"operated,omitempty"`
	// Spent is what users got since the turn of an agent began that has an operation with a budget.
	Spent *Spent `json:"spent,omitempty"`
	// Late is how late the load sent its requests in the last few seconds, at the 99th percentile. See Overloaded.
	Late time.Duration `json:"late"`
	// Waited is the part of the last few seconds of its work in which the lab waited for a processor that another
	// program had. See Starved.
	Waited float64 `json:"waited,omitempty"`
	// Symptoms are how the faults show.
	Symptoms []string `json:"symptoms,omitempty"`
	// UnderWay lists what may still set the system right by itself. It is filled in only if the system is not well.
	UnderWay []string `json:"under_way,omitempty"`
}

// Complaints lists what is worse in a look than in the baseline. A healthy system gives none.
func Complaints(baseline, now Look) []string {
	list := append(Broken(baseline, now), loadComplaints(baseline.Load, now.Load)...)
	return append(impostors(baseline, now, len(list) > 0), list...)
}

// Broken lists the complaints about the system itself: what is gone, not ready or faulty. What users get is not
// among them; it follows with a delay.
func Broken(baseline, now Look) []string {
	list := Missing(baseline, now)
	for _, b := range baseline.Workloads {
		if w := now.workload(b); w != nil && !b.Elastic && w.Replicas >= b.Replicas && w.Ready < b.Replicas {
			list = append(list, fmt.Sprintf("%s %s: %d of %d ready", b.Kind, b.Name, w.Ready, b.Replicas))
		}
	}
	list = append(list, deserted(baseline, now)...)
	return append(list, now.Symptoms...)
}

// Missing lists the complaints that a busy machine cannot cause: what is gone, or scaled down.
func Missing(baseline, now Look) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, b := range baseline.Workloads {
		switch w := now.workload(b); {
		case w == nil:
			add("%s %s is gone", b.Kind, b.Name)
		case w.Replicas < b.Replicas && !b.Elastic:
			add("%s %s is scaled from %d to %d", b.Kind, b.Name, b.Replicas, w.Replicas)
		}
	}
	for _, s := range baseline.Services {
		if !slices.Contains(now.Services, s) {
			add("service %s is gone", s)
		}
	}
	return list
}

// workload is the one of the same name in a look, or nil.
func (l Look) workload(b Workload) *Workload {
	i := slices.IndexFunc(l.Workloads, func(w Workload) bool { return w.Kind == b.Kind && w.Name == b.Name })
	if i < 0 {
		return nil
	}
	return &l.Workloads[i]
}

// loadComplaints are what users of the application have to complain about.
func loadComplaints(baseline, now workload.Window) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	b, n := baseline.Total, now.Total
	switch wanted := now.Wanted; {
	case now.Covered < rateCovered:
	case wanted > 0 && n.Rate < wanted*(1-rateTolerance):
		add("%.1f requests/s are answered, %.1f are sent", n.Rate, wanted)
	case wanted == 0 && n.Rate < b.Rate*(1-rateTolerance): // Records did not always have it.
		add("%.1f requests/s, %.1f in the baseline", n.Rate, b.Rate)
	}
	if n.Success < b.Success-successTolerance {
		add("%.1f %% of requests succeed, %.1f %% in the baseline", 100*n.Success, 100*b.Success)
	}
	if n.P95 > latencyFactor*b.P95+latencySlack {
		add("95 %% of requests within %v, %v in the baseline", n.P95.Round(time.Millisecond),
			b.P95.Round(time.Millisecond))
	}
	for _, o := range now.Operations {
		i := slices.IndexFunc(baseline.Operations, func(x workload.SLI) bool { return x.Operation == o.Operation })
		if i < 0 || o.Requests < operationRequests {
			continue
		}
		if was := baseline.Operations[i]; was.Requests > 0 && o.Success < was.Success-operationTolerance {
			add("%.1f %% of %s requests succeed, %.1f %% in the baseline", 100*o.Success, o.Operation, 100*was.Success)
		}
	}
	return list
}

// Mitigated reports whether the system has been well for as long as hold, up to and including the last look.
func Mitigated(baseline Look, looks []Look, hold time.Duration) bool {
	if len(looks) == 0 {
		return false
	}
	last := looks[len(looks)-1].Time
	for i := len(looks) - 1; i >= 0; i-- {
		if len(Complaints(baseline, looks[i])) > 0 {
			return false
		}
		if last.Sub(looks[i].Time) >= hold {
			return true
		}
	}
	return false
}

// Mitigation judges the system after the agent was done. The looks are in order; they end when the system had been
// well for as long as hold, or when patience ran out.
func Mitigation(baseline Look, looks []Look, hold Holding) Result {
	if Mitigated(baseline, looks, hold.Least()) {
		return Result{"success": true}
	}
	var complaints []string
	if len(looks) > 0 {
		complaints = Complaints(baseline, looks[len(looks)-1])
	}
	if len(complaints) == 0 {
		complaints = []string{fmt.Sprintf("the system was not well for %v on end", hold)}
	}
	return Result{"success": false, "complaints": complaints}
}
