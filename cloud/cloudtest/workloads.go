package cloudtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Stick says whether the pods of a Deployment, there or to come, fail to become ready.
func (c *Cloud) Stick(namespace, name string, stuck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := deployment(namespace, name)
	c.stuck[path] = stuck
	if u := c.objects[path]; u != nil {
		c.put(path, u.DeepCopy())
	}
}

func deployment(namespace, name string) string {
	return "/apis/apps/v1/namespaces/" + namespace + "/deployments/" + name
}

// serves reports whether somebody answers at an address.
func (c *Cloud) serves(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	host, _, _ := strings.Cut(address, ":")
	name, namespace, _ := strings.Cut(host, ".")
	path := deployment(namespace, name)
	if u := c.objects[path]; u != nil && (replicas(u) == 0 || c.stuck[path]) {
		return false
	}
	return c.programs[address] != nil
}

// replicas is how many pods a Deployment has.
func replicas(u *unstructured.Unstructured) int64 {
	if n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		return n
	}
	return 1
}

// view is an object as a client sees it: a Deployment has a status.
func (c *Cloud) view(path string) *unstructured.Unstructured {
	u := c.objects[path].DeepCopy()
	if u.GetKind() == "Deployment" {
		n := replicas(u)
		ready := n
		if c.stuck[path] {
			ready = 0
		}
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": ready,
		}
	}
	return u
}

// made are the objects of a kind that others make: the pods of Deployments, and the EndpointSlices of
// Services.
func (c *Cloud) made(resource string) (list []*unstructured.Unstructured) {
	for i, path := range slices.Sorted(maps.Keys(c.objects)) {
		switch u := c.objects[path]; {
		case resource == "pods" && u.GetKind() == "Deployment":
			for n := range replicas(u) {
				list = append(list, toUnstructured("Pod", "v1", pod(u, i, n, !c.stuck[path])))
			}
		case resource == "endpointslices" && u.GetKind() == "Service":
			list = append(list, toUnstructured("EndpointSlice", "discovery.k8s.io/v1", c.slice(u)))
		}
	}
	return list
}

// pod is a pod of a Deployment, the nth of the ith object.
func pod(u *unstructured.Unstructured, i int, n int64, ready bool) *v1.Pod {
	var template v1.PodTemplateSpec
	spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &template) // What is wrong with it a test notices.
	since := metav1.Time{Time: time.Unix(0, 0)}
	for _, f := range u.GetManagedFields() {
		since = *f.Time
	}
	ip := fmt.Sprintf("10.0.%d.%d", i, n)
	condition := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: since}
	if ready {
		condition.Status = v1.ConditionTrue
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", u.GetName(), n), Namespace: u.GetNamespace(), Labels: template.Labels,
			CreationTimestamp: since,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: u.GetName(), Controller: ptr.To(true)},
			},
		},
		Spec: template.Spec,
		Status: v1.PodStatus{
			Phase: v1.PodRunning, Conditions: []v1.PodCondition{condition}, PodIP: ip, PodIPs: []v1.PodIP{{IP: ip}},
		},
	}
}

// slice has the ready pods of a Service: those of the Deployment with its name.
func (c *Cloud) slice(service *unstructured.Unstructured) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: service.GetName(), Namespace: service.GetNamespace(),
		Labels: map[string]string{discoveryv1.LabelServiceName: service.GetName()},
	}}
	path := deployment(service.GetNamespace(), service.GetName())
	i := slices.Index(slices.Sorted(maps.Keys(c.objects)), path)
	if i < 0 || c.stuck[path] {
		return s
	}
	for n := range replicas(c.objects[path]) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i, n)}})
	}
	return s
}

func toUnstructured(kind, version string, o any) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err) // It is of our own types.
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetKind(kind)
	u.SetAPIVersion(version)
	return u
}
