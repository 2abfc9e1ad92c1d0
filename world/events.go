package world

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
)

// eventsKept is how long the API server keeps events.
const eventsKept = time.Hour

// tell writes the events of the last hour.
func (c *chronicle) tell() {
	for _, r := range c.rollouts {
		if c.Now.Sub(r.at) < eventsKept {
			c.tellRollout(r)
		}
	}
	for _, d := range c.deployments {
		c.tellScaling(d)
	}
	for _, o := range slices.Clone(c.Objects) {
		if p, ok := o.(*v1.Pod); ok && c.Now.Sub(p.CreationTimestamp.Time) < eventsKept {
			c.tellPod(p)
		}
	}
}

func (c *chronicle) tellRollout(r rollout) {
	d, replicas := r.deployment, ptr.Deref(r.deployment.Spec.Replicas, 1)
	deployment, set := ref(d, "Deployment", "apps/v1"), ref(r.to, "ReplicaSet", "apps/v1")
	const deployer, setter = "deployment-controller", "replicaset-controller"
	c.event(deployment, deployer, "ScalingReplicaSet", r.at,
		fmt.Sprintf("Scaled up replica set %s from 0 to %d", r.to.Name, replicas))
	for _, p := range c.pods[r.to.UID] {
		c.event(set, setter, "SuccessfulCreate", p.CreationTimestamp.Time, "Created pod: "+p.Name)
	}
	later := r.at.Add(3 * time.Second)
	c.event(deployment, deployer, "ScalingReplicaSet", later,
		fmt.Sprintf("Scaled down replica set %s from %d to 0", r.from.Name, replicas))
	for i := range replicas {
		c.tellGone(r.from, c.gonePod(r.from, fmt.Sprint(i)), later)
	}
}

// gonePod is a pod of a ReplicaSet that is no more.
func (c *chronicle) gonePod(set *appsv1.ReplicaSet, which string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + c.suffix(fmt.Sprintf("%s %s", set.UID, which)),
			UID: c.uid(fmt.Sprintf("pod %s %s", set.UID, which)),
		},
		Spec: set.Spec.Template.Spec,
	}
}

// tellGone writes the events of a pod's end.
func (c *chronicle) tellGone(set *appsv1.ReplicaSet, p *v1.Pod, at time.Time) {
	c.event(ref(set, "ReplicaSet", "apps/v1"), "replicaset-controller", "SuccessfulDelete", at, "Deleted pod: "+p.Name)
	for _, k := range p.Spec.Containers {
		on := ref(p, "Pod", "v1")
		on.FieldPath = "spec.containers{" + k.Name + "}"
		c.event(on, "kubelet", "Killing", at, "Stopping container "+k.Name)
	}
}

// tellPod writes the events of a pod's start.
func (c *chronicle) tellPod(p *v1.Pod) {
	at := p.CreationTimestamp.Time
	pod := ref(p, "Pod", "v1")
	c.event(pod, "default-scheduler", "Scheduled", at,
		fmt.Sprintf("Successfully assigned %s/%s to %s", p.Namespace, p.Name, p.Spec.NodeName))
	for i := range p.Spec.Containers {
		c.tellStart(p, &p.Spec.Containers[i], at.Add(time.Second))
	}
}

// tellStart writes the events of a container's start.
func (c *chronicle) tellStart(p *v1.Pod, k *v1.Container, at time.Time) {
	on := ref(p, "Pod", "v1")
	on.FieldPath = "spec.containers{" + k.Name + "}"
	c.event(on, "kubelet", "Pulled", at,
		fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", k.Image))
	c.event(on, "kubelet", "Created", at, "Container created")
	c.event(on, "kubelet", "Started", at, "Container started")
}

// event writes an event that happened once.
func (c *chronicle) event(on v1.ObjectReference, source, reason string, at time.Time, message string) {
	c.repeated(on, source, reason, message, at)
}

// repeated writes an event that happened at some times, in order.
func (c *chronicle) repeated(on v1.ObjectReference, source, reason, message string, times ...time.Time) {
	at, last := times[0], times[len(times)-1]
	c.events++
	e := &v1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: on.Namespace, Name: fmt.Sprintf("%s.%x", on.Name, at.UnixNano()+int64(c.events)),
			UID: c.uid(fmt.Sprintf("event %d", c.events)), CreationTimestamp: metav1.NewTime(at),
		},
		InvolvedObject: on, Reason: reason, Message: message, Type: v1.EventTypeNormal, Count: int32(len(times)),
		Source:         v1.EventSource{Component: source},
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(last), ReportingController: source,
	}
	c.Objects = append(c.Objects, cloud.Object(e))
}

// suffix is how the name of a pod ends.
func (c *chronicle) suffix(name string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // as Kubernetes has them
	r := c.draw("suffix " + name)
	b := make([]byte, 5)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}
