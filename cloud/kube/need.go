package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Need is what is to run on a cluster.
type Need struct {
	Objects    []*unstructured.Unstructured // what is applied at once
	Namespaces []string                     // where
	Images     []string                     // beside those of the objects and the applications
	Apps       []App                        // that may run, one or another
}

// App is an application, and what is applied to have it.
type App struct {
	Name    string
	Objects []*unstructured.Unstructured
}

// demand is what a need comes to.
type demand struct {
	pods   []amount // what each requests
	daemon []amount // what each node has one of
	claims []v1.PersistentVolumeClaimSpec
	images []string
	anew   []string // those of the images that are pulled for each container, though its node has them
}

// amount is a part of what nodes have.
type amount struct{ cpu, memory int64 } // thousandths of a core, bytes

func (a amount) fits(free amount) bool { return a.cpu <= free.cpu && a.memory <= free.memory }

func (a *amount) add(b amount, times int64) {
	a.cpu += b.cpu * times
	a.memory += b.memory * times
}

func (n Need) demand() (d demand) {
	d.images = slices.Clone(n.Images)
	for _, u := range n.Objects {
		d.add(u)
	}
	for _, a := range n.Apps {
		for _, u := range a.Objects {
			if spec := podOf(u); spec != nil {
				d.pull(spec)
			}
		}
	}
	slices.Sort(d.images)
	d.images = slices.Compact(d.images)
	slices.Sort(d.anew)
	d.anew = slices.Compact(d.anew)
	slices.SortFunc(d.pods, func(a, b amount) int { // The biggest first.
		return cmp.Or(cmp.Compare(b.cpu, a.cpu), cmp.Compare(b.memory, a.memory))
	})
	return d
}

func (d *demand) add(u *unstructured.Unstructured) {
	replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	if u.GetKind() == "PersistentVolumeClaim" {
		d.claim(u.Object, 1)
	}
	spec := podOf(u)
	if spec == nil {
		return
	}
	templates, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		if m, ok := t.(map[string]any); ok {
			d.claim(m, replicas)
		}
	}
	d.pull(spec)
	if u.GetKind() == "DaemonSet" {
		d.daemon = append(d.daemon, requests(spec))
		return
	}
	for range replicas {
		d.pods = append(d.pods, requests(spec))
	}
}

// podOf is what an object has pods of; nil if it has none, or the API server will say what is wrong with it.
func podOf(u *unstructured.Unstructured) *v1.PodSpec {
	var path []string
	switch u.GetKind() {
	case "Pod":
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "Job":
		path = []string{"spec", "template"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template"}
	default:
		return nil
	}
	template, _, _ := unstructured.NestedMap(u.Object, append(path, "spec")...)
	var spec v1.PodSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(template, &spec) != nil {
		return nil
	}
	return &spec
}

// pull adds the images of a pod.
func (d *demand) pull(spec *v1.PodSpec) {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		d.images = append(d.images, c.Image)
		latest := c.ImagePullPolicy == "" && strings.HasSuffix(fullName(c.Image), ":latest")
		if latest || c.ImagePullPolicy == v1.PullAlways {
			d.anew = append(d.anew, c.Image)
		}
	}
}

func (d *demand) claim(object map[string]any, times int64) {
	spec, _, _ := unstructured.NestedMap(object, "spec")
	var claim v1.PersistentVolumeClaimSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &claim) == nil {
		for range times {
			d.claims = append(d.claims, claim)
		}
	}
}

// requests is what a pod requests: its containers and sidecars together, or more if a container before them does.
func requests(spec *v1.PodSpec) (a amount) {
	var first amount
	for _, c := range spec.InitContainers {
		r := requested(c.Resources)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			a.add(r, 1)
			continue
		}
		r.add(a, 1)
		first = amount{max(first.cpu, r.cpu), max(first.memory, r.memory)}
	}
	for _, c := range spec.Containers {
		a.add(requested(c.Resources), 1)
	}
	a = amount{max(a.cpu, first.cpu), max(a.memory, first.memory)}
	a.add(amountOf(spec.Overhead), 1)
	return a
}

// requested is what a container requests, which is its limit if it says nothing else.
func requested(r v1.ResourceRequirements) amount {
	list := v1.ResourceList{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if q, ok := r.Requests[name]; ok {
			list[name] = q
		} else if q, ok := r.Limits[name]; ok {
			list[name] = q
		}
	}
	return amountOf(list)
}

func amountOf(list v1.ResourceList) amount {
	return amount{list.Cpu().MilliValue(), list.Memory().Value()}
}

// String is as in "2.5 CPUs and 1536Mi of memory".
func (a amount) String() string {
	return fmt.Sprintf("%v CPUs and %v of memory", float64(a.cpu/100)/10,
		resource.NewQuantity(a.memory>>20<<20, resource.BinarySI))
}
