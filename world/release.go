package world

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// maxReleases is how often a workload was released, at most; one that is not released in the present once more.
	maxReleases = 6
	// freshest is how long ago the last release was, at least.
	freshest = 4 * time.Minute

	revisionAnnotation = "deployment.kubernetes.io/revision"
)

// rollout is the last release of a Deployment.
type rollout struct {
	deployment *appsv1.Deployment
	from, to   *appsv1.ReplicaSet
	at         time.Time
}

// release tells how a Deployment came to be what it is: it was made when its namespace was, and released
// anew now and then. Of the earlier releases there are ReplicaSets without pods.
func (c *chronicle) release(d *appsv1.Deployment) error {
	sets := c.sets[d.UID]
	if c.steady(d.Namespace) || len(sets) != 1 { // It was really released more than once.
		return nil
	}
	current := sets[0]
	r := c.draw("deployment " + d.Namespace + "/" + d.Name)
	n := 1 + r.IntN(maxReleases)
	if !c.releasedAgain(d) { // What is released in the present is not to show in the number.
		n++
	}
	times := c.releaseTimes(r, n, d.CreationTimestamp.Time, freshest)
	back := c.earlier(r, d.Namespace)
	// The further back, the more differs.
	template := d.Spec.Template.DeepCopy()
	hashes := map[string]bool{current.Labels[appsv1.DefaultDeploymentUniqueLabelKey]: true}
	old := make([]*appsv1.ReplicaSet, len(times)-1)
	for i := len(times) - 2; i >= 0; i-- {
		if err := back(template); err != nil {
			return err
		}
		set := c.oldSet(d, current, template, i+1, times[i])
		hash := set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		if hashes[hash] {
			return nil // Two releases would be one.
		}
		hashes[hash], old[i] = true, set
	}
	last := times[len(times)-1]
	c.setRevision(d, current, len(times), last)
	for _, set := range old {
		c.Objects = append(c.Objects, set)
	}
	c.old[d.UID] = old
	for _, p := range c.pods[current.UID] {
		c.movePod(p, last.Add(p.CreationTimestamp.Sub(current.CreationTimestamp.Time)))
	}
	shift(current, last.Sub(current.CreationTimestamp.Time))
	if len(old) > 0 {
		c.rollouts = append(c.rollouts, rollout{d, old[len(old)-1], current, last})
	}
	return nil
}

// releasedAgain reports whether a Deployment is released once more in the present.
func (c *chronicle) releasedAgain(d *appsv1.Deployment) bool {
	if c.Released == nil {
		return !keeps(d)
	}
	return slices.Contains(c.Released, d.Namespace+"/"+d.Name)
}

// lately is how long ago workloads were released last: some minutes ago, some on this day or in this week, most before.
// Within each span an age is as likely as one twice as long.
var lately = []struct {
	upTo  time.Duration
	share float64
}{{time.Hour, 0.2}, {24 * time.Hour, 0.2}, {7 * 24 * time.Hour, 0.2}, {math.MaxInt64, 0.4}}

// lastRelease draws how long ago the last release was of a workload of an age, which is more than so recent.
func lastRelease(r *rand.Rand, recent, age time.Duration) time.Duration {
	var from, to []time.Duration
	var upTo []float64 // shares, added up
	sum, after := 0.0, recent
	for _, span := range lately {
		if before := min(span.upTo, age); before > after {
			sum += span.share
			from, to, upTo = append(from, after), append(to, before), append(upTo, sum)
			after = before
		}
	}
	at := r.Float64() * sum
	i := slices.IndexFunc(upTo, func(u float64) bool { return at < u })
	return time.Duration(float64(from[i]) * math.Pow(float64(to[i])/float64(from[i]), r.Float64()))
}

// releaseTimes are when a workload was released n times, first and last included. The last time was so recent at most.
func (c *chronicle) releaseTimes(r *rand.Rand, n int, made time.Time, recent time.Duration) []time.Time {
	age := c.Now.Sub(made)
	times := []time.Time{made}
	if n == 1 || age < 2*recent {
		return times
	}
	last := c.Now.Add(-lastRelease(r, recent, age)).Truncate(time.Second)
	for range n - 2 {
		times = append(times, between(r, made.Add(time.Hour), last.Add(-time.Minute)))
	}
	times = append(times, last)
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Minute })
}

// setRevision says that a Deployment is at its nth release, of a time.
func (c *chronicle) setRevision(d *appsv1.Deployment, current *appsv1.ReplicaSet, n int, at time.Time) {
	d.Annotations[revisionAnnotation] = strconv.Itoa(n)
	d.Generation += int64(n - 1)
	d.Status.ObservedGeneration = d.Generation
	current.Annotations[revisionAnnotation] = strconv.Itoa(n)
	by := at.Sub(d.CreationTimestamp.Time)
	for i := range d.ManagedFields {
		if m := &d.ManagedFields[i]; m.Time != nil {
			m.Time.Time = m.Time.Add(by)
		}
	}
	for i := range d.Status.Conditions {
		if s := &d.Status.Conditions[i]; s.Type == appsv1.DeploymentProgressing {
			s.LastUpdateTime.Time = s.LastUpdateTime.Add(by)
		}
	}
}

// oldSet is what is left of a release: a ReplicaSet that was scaled to nothing.
func (c *chronicle) oldSet(d *appsv1.Deployment, current *appsv1.ReplicaSet, template *v1.PodTemplateSpec,
	n int, at time.Time,
) *appsv1.ReplicaSet {
	set := current.DeepCopy()
	hash := c.Hash(template)
	set.Name = d.Name + "-" + hash
	set.UID = c.uid(fmt.Sprintf("replicaset %s/%s %d", d.Namespace, d.Name, n))
	set.Generation = 2
	set.Annotations[revisionAnnotation] = strconv.Itoa(n)
	set.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Spec.Replicas = ptr.To(int32(0))
	set.Spec.Selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	t := template.DeepCopy()
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Spec.Template = *t
	set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 2}
	if current.Status.TerminatingReplicas != nil { // Where they are counted, who finds none writes one now.
		set.Status.TerminatingReplicas = new(int32)
	}
	shift(set, at.Sub(set.CreationTimestamp.Time))
	return set
}

// uid is the identity of something that is only in the past.
func (c *chronicle) uid(name string) types.UID {
	r := c.draw("uid " + name)
	a, b := r.Uint64(), r.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff,
		0x8000|b>>48&0x3fff, b&0xffffffffffff))
}

// ref is a reference to an object in an event.
func ref(o metav1.Object, kind, apiVersion string) v1.ObjectReference {
	return v1.ObjectReference{
		Kind: kind, APIVersion: apiVersion, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(),
	}
}
