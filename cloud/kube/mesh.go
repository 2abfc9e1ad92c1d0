package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/aiopslab/aiopslab/cloud"
)

// meshVersion is the API of Chaos Mesh (https://chaos-mesh.org), which disturbs pods in ways that the API of Kubernetes
// cannot: its controller and a daemon on each node act on objects of these kinds.
var meshVersion = schema.GroupVersion{Group: "chaos-mesh.org", Version: "v1alpha1"}

// The resources of Chaos Mesh that are used. It has schedules since version 2, since when objects also tell whether
// they have effect.
const (
	podChaos     = "podchaos"
	networkChaos = "networkchaos"
	stressChaos  = "stresschaos"
	ioChaos      = "iochaos"
	meshSecond   = "schedules"
)

// mesh is what a cluster has of Chaos Mesh.
type mesh struct {
	resources []string
	idle      bool  // its controller does not run
	err       error // why it is not known
}

// findMesh looks for Chaos Mesh, and writes nothing.
func (c *Cloud) findMesh(ctx context.Context) (m mesh) {
	list, err := c.client.Discovery().ServerResourcesForGroupVersionWithContext(ctx, meshVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return m
	case err != nil:
		m.err = err
		return m
	}
	for _, r := range list.APIResources {
		m.resources = append(m.resources, r.Name)
	}
	pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=controller-manager",
	})
	// Who may not list them cannot know better.
	m.idle = err == nil && !slices.ContainsFunc(pods.Items, controlsMesh)
	return m
}

// controlsMesh reports whether a pod is of Chaos Mesh's controller, and runs.
func controlsMesh(p v1.Pod) bool {
	return p.Labels["app.kubernetes.io/component"] == "controller-manager" && p.Status.Phase == v1.PodRunning &&
		strings.HasPrefix(p.Labels["app.kubernetes.io/part-of"]+p.Labels["app.kubernetes.io/name"], "chaos-mesh")
}

// usable reports whether there is anything to be had of it.
func (m mesh) usable() bool { return len(m.resources) > 0 && !m.idle }

// refuses says why it cannot bring about a disturbance, or "".
func (m mesh) refuses(d cloud.Disturbance) string {
	resource, what := meshKind(d)
	switch {
	case resource == "":
		return "nothing in this cluster can make calls into the kernel fail: Chaos Mesh has no such disturbance"
	case m.err != nil:
		return fmt.Sprintf("it takes Chaos Mesh to %s, and whether this cluster has it is not known: %v", what, m.err)
	case len(m.resources) == 0:
		return fmt.Sprintf("it takes Chaos Mesh to %s, and this cluster does not have it", what)
	case m.idle:
		return fmt.Sprintf("it takes Chaos Mesh to %s, and its controller does not run in this cluster", what)
	case !slices.Contains(m.resources, resource) || !slices.Contains(m.resources, meshSecond):
		return fmt.Sprintf("it takes Chaos Mesh 2 to %s, and this cluster has an older one", what)
	}
	switch n, io := d.Network, d.IO; {
	case n != nil && n.Target == nil && !n.Partition && (n.Direction == cloud.From || n.Direction == cloud.Both):
		return "Chaos Mesh disturbs what pods receive only if it comes from pods that are named: leave direction at " +
			"\"to\", or set a target"
	case io != nil && io.Path == "/":
		return "Chaos Mesh disturbs the files of volumes only: set a path that is on one"
	}
	return ""
}

// meshKind is the resource that brings about a disturbance, and what it does; "" if there is none.
func meshKind(d cloud.Disturbance) (resource, what string) {
	switch {
	case d.Network != nil:
		return networkChaos, "disturb the network of pods"
	case d.Stress != nil:
		return stressChaos, "use up CPU or memory in pods"
	case d.IO != nil:
		return ioChaos, "disturb the files of pods"
	case d.Pod != nil && d.Pod.Action == cloud.ContainerKill:
		return podChaos, "kill containers"
	case d.Pod != nil:
		return podChaos, "make pods fail"
	}
	return "", ""
}
