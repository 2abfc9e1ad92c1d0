package node

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

func TestRefusal(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "ssd"}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi"), v1.ResourcePods: resource.MustParse("2"),
		}},
	}
	pod := func(name string, edit func(*v1.PodSpec)) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
		if edit != nil {
			edit(&p.Spec)
		}
		return p
	}
	asks := func(name v1.ResourceName, quantity string) func(*v1.PodSpec) {
		return func(s *v1.PodSpec) {
			s.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(quantity)}
		}
	}
	opens := func(s *v1.PodSpec) {
		s.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080, Protocol: v1.ProtocolTCP}}
	}
	tests := []struct {
		name            string
		others          []*v1.Pod
		pod             *v1.Pod
		taints          []v1.Taint
		reason, message string
	}{
		{name: "fits", others: []*v1.Pod{pod("a", nil)}, pod: pod("p", asks(v1.ResourceCPU, "2"))},
		{
			name: "processor", others: []*v1.Pod{pod("a", asks(v1.ResourceCPU, "1500m"))}, pod: pod("p", asks(v1.ResourceCPU, "1")),
			reason: "OutOfcpu", message: "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000",
		},
		{
			name: "pods", others: []*v1.Pod{pod("a", nil), pod("b", nil)}, pod: pod("p", nil),
			reason: "OutOfpods", message: "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
		},
		// The kubelet leaves what no plug-in of the node announced to whoever did.
		{name: "a resource the node does not know", pod: pod("p", asks("example.com/gpu", "1"))},
		{
			name: "host port", others: []*v1.Pod{pod("a", opens)}, pod: pod("p", opens),
			reason: "NodePorts", message: "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
		},
		{
			name: "selector", pod: pod("p", func(s *v1.PodSpec) { s.NodeSelector = map[string]string{"disk": "hdd"} }),
			reason: "NodeAffinity", message: "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
		},
		{
			name: "taint", pod: pod("p", nil), taints: []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoExecute}},
			reason: "TaintToleration", message: "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
		},
		// This taint is for the scheduler alone.
		{name: "taint against scheduling", pod: pod("p", nil), taints: []v1.Taint{{Key: "k", Value: "v", Effect: v1.TaintEffectNoSchedule}}},
		{
			name: "kernel parameter", pod: pod("p", func(s *v1.PodSpec) {
				s.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
			}),
			reason: "SysctlForbidden", message: `forbidden sysctl: "kernel.msgmax" not allowlisted`,
		},
		{
			name: "operating system", pod: pod("p", func(s *v1.PodSpec) { s.OS = &v1.PodOS{Name: v1.Windows} }),
			reason: "PodOSNotSupported", message: "Failed to admit pod as the OS field doesn't match node OS",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := node.DeepCopy()
			n.Spec.Taints = tt.taints
			tt.pod.Spec.NodeName = n.Name
			reason, message := refusal(klog.Background(), n, tt.others, tt.pod)
			if reason != tt.reason || message != tt.message {
				t.Errorf("got %q, %q; want %q, %q", reason, message, tt.reason, tt.message)
			}
		})
	}
}
