package node

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// admit decides whether the node takes a pod, which may have been bound to it past the scheduler. A
// reason says why not. What runs already stays.
func (k *kubelet) admit(pod *v1.Pod, running bool) (reason, message string) {
	if running {
		return "", ""
	}
	if os := pod.Spec.OS; os != nil && os.Name != v1.Linux {
		return "PodOSNotSupported", fmt.Sprintf("Failed to admit pod as the OS doesn't match node's OS: %s", v1.Linux)
	}
	if node, err := k.watches.nodes.Get(k.node.spec.Name); err == nil {
		if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && !ok {
			return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		}
		if _, untolerated := v1helper.FindMatchingUntoleratedTaint(k.logger, node.Spec.Taints, pod.Spec.Tolerations, func(t *v1.Taint) bool {
			return t.Effect == v1.TaintEffectNoExecute
		}, true); untolerated {
			return "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
		}
	}
	return k.fits(pod)
}

// fits checks that the node has what the pod requests.
func (k *kubelet) fits(pod *v1.Pod) (reason, message string) {
	used, count := v1.ResourceList{}, 0
	for _, w := range k.all() {
		other := w.current()
		if other.UID == pod.UID || w.terminated() || podutil.IsPodTerminal(other) || !w.hasStarted() {
			continue
		}
		count++
		for name, q := range resourcehelper.PodRequests(other, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	allocatable := k.node.allocatable()
	if count+1 > maxPods {
		return "OutOfpods", fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", count, maxPods)
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
		has, taken := allocatable[name], used[name]
		left := has.DeepCopy()
		left.Sub(taken)
		if want.IsZero() || want.Cmp(left) <= 0 {
			continue
		}
		value := func(list v1.ResourceList) int64 {
			q := list[name]
			if name == v1.ResourceCPU {
				return q.MilliValue()
			}
			return q.Value()
		}
		return "OutOf" + string(name), fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, value(v1.ResourceList{name: want}), value(used), value(allocatable))
	}
	return "", ""
}

// hasStarted reports whether the pod was admitted.
func (w *worker) hasStarted() bool {
	st, ok := w.kubelet.statuses.GetPodStatus(w.uid)
	return ok && st.Phase != v1.PodFailed && st.Phase != v1.PodSucceeded
}
