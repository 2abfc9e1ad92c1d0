package world

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// elastic is the chance that a workload was scaled up and down in the last hour, and maxScaled how
	// often, at most.
	elastic   = 0.45
	maxScaled = 8
	// scaledFor is how long it had a pod more, at most.
	scaledFor = 4 * time.Minute
)

// tellScaling tells how a workload was scaled up by a pod and down again in the last hour. So some that
// are well have as many events as one that fails.
func (c *chronicle) tellScaling(d *appsv1.Deployment) {
	sets, r := c.sets[d.UID], c.draw("scaling "+d.Namespace+"/"+d.Name)
	if c.steady(d.Namespace) || len(sets) != 1 || keeps(d) || len(c.Nodes) == 0 || r.Float64() >= elastic {
		return
	}
	set, replicas := sets[0], ptr.Deref(d.Spec.Replicas, 1)
	from, to := set.CreationTimestamp.Add(settled), c.Now.Add(-settled-scaledFor)
	if hour := c.Now.Add(-eventsKept); from.Before(hour) {
		from = hour
	}
	if !to.After(from) {
		return
	}
	n := 1 + r.IntN(maxScaled)
	slot := to.Sub(from) / time.Duration(n)
	var ups, downs []time.Time
	for i := range n {
		begin := from.Add(time.Duration(i) * slot)
		up := between(r, begin, begin.Add(slot/2))
		down := between(r, up.Add(10*time.Second), up.Add(max(11*time.Second, min(slot/2, scaledFor))))
		ups, downs = append(ups, up), append(downs, down)
		p := c.gonePod(set, fmt.Sprintf("scaled %d", i))
		p.CreationTimestamp.Time, p.Spec.NodeName = up, c.Nodes[r.IntN(len(c.Nodes))].Name
		c.event(ref(set, "ReplicaSet", "apps/v1"), "replicaset-controller", "SuccessfulCreate", up,
			"Created pod: "+p.Name)
		c.tellPod(p)
		c.tellGone(set, p, down)
	}
	on := ref(d, "Deployment", "apps/v1")
	c.repeated(on, "deployment-controller", "ScalingReplicaSet",
		fmt.Sprintf("Scaled up replica set %s from %d to %d", set.Name, replicas, replicas+1), ups...)
	c.repeated(on, "deployment-controller", "ScalingReplicaSet",
		fmt.Sprintf("Scaled down replica set %s from %d to %d", set.Name, replicas+1, replicas), downs...)
	d.Generation += int64(2 * n)
	d.Status.ObservedGeneration = d.Generation
	set.Generation += int64(2 * n)
	set.Status.ObservedGeneration = set.Generation
}

// keeps reports whether a workload has what a second pod could not share.
func keeps(d *appsv1.Deployment) bool {
	claims := func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil }
	return d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || ptr.Deref(d.Spec.Replicas, 1) == 0 ||
		slices.ContainsFunc(d.Spec.Template.Spec.Volumes, claims)
}
