package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
)

const (
	// restarted is the chance that a container has been restarted, and maxRestarts how often it was at most.
	restarted   = 0.2
	maxRestarts = 3
	// oldEnough is the age of a pod whose container may have been restarted.
	oldEnough = 30 * time.Minute
	// maxPause is how long it took until a container was started again, at most.
	maxPause = 12 * time.Second
)

// The kubelet says how a container ended that the kernel killed for its memory.
const (
	killedCode   = 137
	killedReason = "OOMKilled"
)

// restart has the first container of a pod killed some time ago, for its memory. What runs now is its
// successor.
func (c *chronicle) restart(p *v1.Pod, r *rand.Rand) {
	if len(p.Status.ContainerStatuses) == 0 {
		return
	}
	s := &p.Status.ContainerStatuses[0]
	k := c.containers[containerID(s.ContainerID)]
	if k == nil || k.machine == nil || s.State.Running == nil || c.Now.Sub(k.Started) < oldEnough {
		return
	}
	n := 1 + r.IntN(maxRestarts)
	end := between(r, k.Started.Add(oldEnough/2), c.Now.Add(-settled-maxPause))
	end = end.Add(time.Duration(r.Int64N(int64(time.Second))))
	before := &cloud.Container{
		ID: c.containerID(p, k.ID), Sandbox: k.Sandbox, Created: k.Created, Started: k.Started, Finished: end,
		Log: slices.Clone(k.Log), Restarts: n - 1, ExitCode: killedCode, Reason: killedReason, Like: k.ID,
	}
	if n > 1 { // It was itself started again.
		by := between(r, k.Started, end.Add(-time.Minute)).Sub(k.Started).Truncate(time.Second)
		before.Created, before.Started = before.Created.Add(by), before.Started.Add(by)
		moveLog(before.Log, by)
	}
	k.machine.Containers = append(k.machine.Containers, before)

	// Whole seconds: what is written to the second agrees with what is written to the nanosecond.
	by := end.Add(time.Second + time.Duration(r.Int64N(int64(maxPause)))).Sub(k.Started).Truncate(time.Second)
	k.Created, k.Started, k.Restarts = k.Created.Add(by), k.Started.Add(by), n
	moveLog(k.Log, by)
	scheme, _, _ := strings.Cut(s.ContainerID, "://")
	s.RestartCount = int32(n)
	s.State.Running.StartedAt = second(k.Started)
	s.LastTerminationState.Terminated = &v1.ContainerStateTerminated{
		ExitCode: killedCode, Reason: killedReason, StartedAt: second(before.Started), FinishedAt: second(end),
		ContainerID: scheme + "://" + before.ID,
	}
	c.readyAgain(p, by)
	if c.Now.Sub(k.Started) < eventsKept {
		c.tellStart(p, &p.Spec.Containers[0], k.Started)
	}
}

// readyAgain says that a pod got ready later, and whatever follows from that.
func (c *chronicle) readyAgain(p *v1.Pod, by time.Duration) {
	for i := range p.Status.Conditions {
		if s := &p.Status.Conditions[i]; s.Type == v1.PodReady || s.Type == v1.ContainersReady {
			s.LastTransitionTime.Time = s.LastTransitionTime.Add(by)
		}
	}
	for i := range p.ManagedFields {
		if m := &p.ManagedFields[i]; m.Subresource == "status" && m.Time != nil {
			m.Time = ptr.To(metav1.NewTime(m.Time.Add(by)))
		}
	}
	ready := readySince(p)
	for _, d := range c.deployments {
		owns := func(s *appsv1.ReplicaSet) bool { return metav1.IsControlledBy(p, s) }
		if d.Status.Replicas != 1 || !slices.ContainsFunc(c.sets[d.UID], owns) {
			continue // Others of its pods were available meanwhile.
		}
		for i := range d.Status.Conditions {
			if s := &d.Status.Conditions[i]; s.Type == appsv1.DeploymentAvailable {
				s.LastUpdateTime, s.LastTransitionTime = ready, ready
			}
		}
		for i := range d.ManagedFields {
			if m := &d.ManagedFields[i]; m.Subresource == "status" && m.Time != nil {
				m.Time = &ready
			}
		}
	}
}

// readySince is when a pod got ready.
func readySince(p *v1.Pod) metav1.Time {
	for _, s := range p.Status.Conditions {
		if s.Type == v1.PodReady {
			return s.LastTransitionTime
		}
	}
	return p.CreationTimestamp
}

// dateEndpoints gives slices of endpoints the time at which the last of their pods got ready: the
// controller notes it on them.
func (c *chronicle) dateEndpoints() {
	since := map[string]metav1.Time{}
	for _, o := range c.Objects {
		if p, ok := o.(*v1.Pod); ok {
			since[p.Namespace+"/"+p.Name] = readySince(p)
		}
	}
	for _, o := range c.Objects {
		s, ok := o.(*discovery.EndpointSlice)
		if !ok {
			continue
		}
		var last metav1.Time
		for _, e := range s.Endpoints {
			if e.TargetRef == nil {
				continue
			}
			if t := since[s.Namespace+"/"+e.TargetRef.Name]; t.After(last.Time) {
				last = t
			}
		}
		if last.IsZero() {
			continue
		}
		if _, ok := s.Annotations[v1.EndpointsLastChangeTriggerTime]; ok {
			s.Annotations[v1.EndpointsLastChangeTriggerTime] = last.UTC().Format(time.RFC3339Nano)
		}
		for i := range s.ManagedFields {
			if s.ManagedFields[i].Time != nil {
				s.ManagedFields[i].Time = &last
			}
		}
	}
}

// containerID is the identity of a container that is only in the past.
func (c *chronicle) containerID(p *v1.Pod, next string) string {
	r := c.draw("container " + c.part(p))
	var b strings.Builder
	for b.Len() < len(next) {
		fmt.Fprintf(&b, "%016x", r.Uint64())
	}
	return b.String()[:len(next)]
}

// second is a time as statuses have it.
func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
