package node

import (
	"math"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/utils/ptr"
)

// The kubelet reads a pod's limits before a resize and dereferences them, so none may be missing.
func TestPodGroups(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kubelet computes the limits of control groups on Linux only")
	}
	pods := newContainerManager().NewPodContainerManager()
	groups := pods.(*podGroups)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("1Mi")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("2Mi")},
		},
	}}}}
	check := func(memory, quota int64, shares uint64) {
		t.Helper()
		m, err := pods.GetPodCgroupConfig(pod, v1.ResourceMemory)
		if err != nil {
			t.Fatal(err)
		}
		c, err := pods.GetPodCgroupConfig(pod, v1.ResourceCPU)
		if err != nil {
			t.Fatal(err)
		}
		if *m.Memory != memory || *c.CPUQuota != quota || *c.CPUShares != shares {
			t.Errorf("memory %d, quota %d, shares %d; want %d, %d, %d", *m.Memory, *c.CPUQuota, *c.CPUShares, memory, quota, shares)
		}
	}
	groups.create(pod)
	check(2<<20, -1, 256)
	if err := pods.SetPodCgroupConfig(klog.Background(), pod, &cm.ResourceConfig{CPUQuota: ptr.To(int64(50_000))}); err != nil {
		t.Fatal(err)
	}
	check(2<<20, 50_000, 256)
	groups.remove(pod.UID)
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{}
	groups.create(pod)
	check(math.MaxInt64, -1, 2)
}
