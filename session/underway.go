package session

import (
	"fmt"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
)

// How long things may take that are under way by themselves after the agent is done.
const (
	// backOffTimeout is Kubernetes' longest back-off, after which a container is tried again.
	backOffTimeout = 5 * time.Minute
	// startTimeout is how long a container may take to be ready, beyond what its probes wait for.
	startTimeout = 30 * time.Second
	// createTimeout is how long a pod may take until its containers run.
	createTimeout = time.Minute
	// goTimeout is how long a pod that goes may take, beyond its grace period.
	goTimeout = 5 * time.Second
	// scaleTimeout is how long an autoscaler may take to act: it looks every 15 seconds, at metrics
	// that may be as old.
	scaleTimeout = 45 * time.Second
	// settleTime is how long after it became ready a pod may be taken for one that dies again.
	settleTime = 10 * time.Second
)

// scene is what of a cluster tells whether something is under way.
type scene struct {
	pods    []v1.Pod // of the application's namespace, as are claims and scalers
	claims  []v1.PersistentVolumeClaim
	scalers []autoscalingv2.HorizontalPodAutoscaler
	nodes   []v1.Node
}

// times are when the agent began and was done, and when it is now.
type times struct{ began, done, now time.Time }

// underWay says what may still set the system right by itself, in plain words.
func (s scene) underWay(t times) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	since := s.lastBetter(t.done)
	for i := range s.pods {
		p := &s.pods[i]
		if what := podUnderWay(p, since, t); what != "" {
			add("%s %s", p.Name, what)
		}
	}
	for _, h := range s.scalers {
		switch last := h.Status.LastScaleTime; {
		case h.Status.DesiredReplicas > h.Status.CurrentReplicas:
			add("%s scales %s up", h.Name, h.Spec.ScaleTargetRef.Name)
		case last != nil && t.now.Sub(last.Time) < scaleTimeout:
			add("%s has scaled %s", h.Name, h.Spec.ScaleTargetRef.Name)
		case h.CreationTimestamp.After(t.began) && t.now.Sub(h.CreationTimestamp.Time) < scaleTimeout:
			add("%s has only just begun to watch %s", h.Name, h.Spec.ScaleTargetRef.Name)
		}
	}
	return list
}

// lastBetter is when a pod last became ready, at least from. What failed before that may have failed
// for want of that pod.
func (s scene) lastBetter(from time.Time) time.Time {
	for i := range s.pods {
		if at, ready := fault.ReadySince(&s.pods[i]); ready && at.After(from) {
			from = at
		}
	}
	return from
}

// backOff is what a container does that failed before, and was not tried again since the system last
// changed.
const backOff = "waits in its back-off to be tried again"

// podUnderWay says what a pod is about to do, or "".
func podUnderWay(p *v1.Pod, since time.Time, t times) string {
	if d := p.DeletionTimestamp; d != nil { // It has the grace period in it.
		if t.now.Before(d.Add(goTimeout)) {
			return "is going"
		}
		return ""
	}
	if at, ready := fault.ReadySince(p); ready {
		if age := t.now.Sub(at); age < settleTime {
			return fmt.Sprintf("has been ready for %v only", max(age, 0).Round(time.Second))
		}
		return ""
	}
	begun := p.Status.StartTime
	statuses := append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...)
	for _, c := range statuses {
		if c.Ready {
			continue
		}
		w, r, last := c.State.Waiting, c.State.Running, c.LastTerminationState.Terminated
		switch {
		case r != nil:
			if t.now.Sub(r.StartedAt.Time) < startTime(p, c.Name, r.StartedAt.Time, t) {
				return "is starting"
			}
		case w != nil && w.Reason == "CrashLoopBackOff":
			if last != nil && !last.FinishedAt.After(since) &&
				t.now.Sub(last.FinishedAt.Time) < backOffTimeout+startTimeout {
				return backOff
			}
		case w != nil && (w.Reason == "ContainerCreating" || w.Reason == "PodInitializing") && begun != nil &&
			t.now.Sub(begun.Time) < createTimeout:
			return "is being created"
		case c.State.Terminated != nil && t.now.Sub(c.State.Terminated.FinishedAt.Time) < goTimeout:
			return "has only just ended" // What comes next is not decided yet.
		}
	}
	if len(p.Status.ContainerStatuses) == 0 && begun != nil && t.now.Sub(begun.Time) < createTimeout {
		return "is being created"
	}
	return ""
}

// startTime is how long a container that runs may take to be ready: what its probes wait for, and
// some time more for one that may have been started by what the agent did.
func startTime(p *v1.Pod, name string, started time.Time, t times) time.Duration {
	wait := time.Duration(0)
	if started.After(t.began) {
		wait = startTimeout
	}
	for _, c := range p.Spec.Containers {
		if c.Name != name {
			continue
		}
		wait += probeTime(c.ReadinessProbe, func(p *v1.Probe) int32 { return p.SuccessThreshold })
		wait += probeTime(c.StartupProbe, func(p *v1.Probe) int32 { return p.FailureThreshold })
	}
	return wait
}

// probeTime is how long a probe may take to succeed, in as many rounds as are given.
func probeTime(p *v1.Probe, rounds func(*v1.Probe) int32) time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.InitialDelaySeconds+max(p.PeriodSeconds, 1)*(max(rounds(p), 1)+1)) * time.Second
}

// reached is how far a system has come, in numbers that only grow while it gets better.
func (s scene) reached(baseline, l grade.Look) map[string]int {
	n := map[string]int{
		"complaints": -len(grade.Broken(baseline, l)),
		"served":     int(10 * l.Load.Total.Success),
	}
	for _, w := range l.Workloads {
		n["ready "+w.Kind+" "+w.Name] = w.Ready
	}
	for _, p := range s.pods {
		owner := "none"
		if len(p.OwnerReferences) > 0 {
			owner = p.OwnerReferences[0].Name
		}
		if p.Spec.NodeName != "" {
			n["scheduled "+owner]++
		}
		if p.Status.Phase == v1.PodRunning {
			n["running "+owner]++
		}
	}
	for _, c := range s.claims {
		if c.Status.Phase == v1.ClaimBound {
			n["bound claims"]++
		}
	}
	for _, node := range s.nodes {
		if !node.Spec.Unschedulable {
			n["open nodes"]++
		}
	}
	for _, h := range s.scalers {
		n["wanted by "+h.Name] = int(h.Status.DesiredReplicas)
	}
	return n
}
