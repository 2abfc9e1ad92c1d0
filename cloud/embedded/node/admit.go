package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	v1helper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
)

// admit decides whether the node takes a pod, which may have been bound to it past the scheduler. A
// reason says why not. What runs already stays.
func (k *kubelet) admit(pod *v1.Pod, running bool) (reason, message string) {
	if running {
		return "", ""
	}
	node, err := k.watches.nodes.Get(k.node.spec.Name)
	if err != nil {
		return lifecycle.InvalidNodeInfo, "Kubelet cannot get node info."
	}
	var others []*v1.Pod
	for _, w := range k.all() {
		if other := w.current(); other.UID != pod.UID && !w.terminated() && !podutil.IsPodTerminal(other) &&
			w.hasStarted() {
			others = append(others, other)
		}
	}
	return refusal(k.logger, node, others, pod)
}

// safeParameters are the kernel parameters that the kubelet lets pods set: what they change is the
// pod's alone.
var safeParameters = func() lifecycle.PodAdmitHandler {
	list, err := sysctl.NewAllowlist([]string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
		"net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_rmem", "net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
	})
	if err != nil {
		panic(err)
	}
	return list
}()

// refusal says why a node that runs others does not take pod, in the kubelet's words.
func refusal(logger klog.Logger, node *v1.Node, others []*v1.Pod, pod *v1.Pod) (reason, message string) {
	if os := pod.Spec.OS; os != nil && os.Name != v1.Linux {
		return lifecycle.PodOSNotSupported, "Failed to admit pod as the OS field doesn't match node OS"
	}
	failure := func(predicate, why string) (string, string) {
		return predicate, (&lifecycle.PredicateFailureError{PredicateName: predicate, PredicateDesc: why}).Error()
	}
	// The scheduler's own checks: resources, node affinity and host ports.
	info := framework.NewNodeInfo(others...)
	info.SetNode(node)
	for _, r := range scheduler.AdmissionCheck(pod, info, true) {
		short := r.InsufficientResource
		if short == nil {
			return failure(r.Name, r.Reason)
		}
		if _, known := node.Status.Allocatable[short.ResourceName]; known { // The rest is not the node's to give.
			return lifecycle.InsufficientResourcePrefix + string(short.ResourceName),
				(&lifecycle.InsufficientResourceError{
					ResourceName: short.ResourceName, Requested: short.Requested, Used: short.Used,
					Capacity: short.Capacity,
				}).Error()
		}
	}
	if r := safeParameters.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod}); !r.Admit {
		return r.Reason, r.Message
	}
	if _, untolerated := v1helper.FindMatchingUntoleratedTaint(logger, node.Spec.Taints, pod.Spec.Tolerations,
		func(t *v1.Taint) bool {
			return t.Effect == v1.TaintEffectNoExecute
		}, true); untolerated {
		return failure(tainttoleration.Name, tainttoleration.ErrReasonNotMatch)
	}
	return "", ""
}

// hasStarted reports whether the pod was admitted.
func (w *worker) hasStarted() bool {
	st, ok := w.kubelet.statuses.GetPodStatus(w.uid)
	return ok && st.Phase != v1.PodFailed && st.Phase != v1.PodSucceeded
}
