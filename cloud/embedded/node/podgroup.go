package node

import (
	"math"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/utils/ptr"
)

// containerManager is the kubelet's container manager as far as anything here asks it: it keeps the
// limits of pods' own control groups, by which a resize proceeds.
type containerManager struct {
	cm.ContainerManager
	groups *podGroups
}

func newContainerManager() *containerManager {
	stub := cm.NewStubContainerManager()
	return &containerManager{stub, &podGroups{
		PodContainerManager: stub.NewPodContainerManager(),
		limits:              map[types.UID]cm.ResourceConfig{},
	}}
}

// NewPodContainerManager implements cm.ContainerManager.
func (m *containerManager) NewPodContainerManager() cm.PodContainerManager { return m.groups }

// podGroups are the control groups of pods. Limits have their effect on containers; a pod's are only
// remembered.
type podGroups struct {
	cm.PodContainerManager

	mu     sync.Mutex
	limits map[types.UID]cm.ResourceConfig
}

// create makes the group of a pod.
func (g *podGroups) create(pod *v1.Pod) {
	// What is not limited reads as the kernel has it.
	limits := cm.ResourceConfig{
		Memory: ptr.To(int64(math.MaxInt64)), CPUQuota: ptr.To(int64(-1)),
		CPUShares: ptr.To(uint64(cm.MinShares)),
	}
	if want := cm.ResourceConfigForPod(pod, true, cm.QuotaPeriod, false,
		kubeletconfig.NoneMemoryReservationPolicy); want != nil {
		limits = merged(limits, want)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits[pod.UID] = limits
}

func (g *podGroups) remove(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.limits, uid)
}

// GetPodCgroupConfig implements cm.PodContainerManager.
func (g *podGroups) GetPodCgroupConfig(pod *v1.Pod, resource v1.ResourceName) (*cm.ResourceConfig, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limits[pod.UID]
	if resource == v1.ResourceMemory {
		return &cm.ResourceConfig{Memory: l.Memory}, nil
	}
	return &cm.ResourceConfig{CPUQuota: l.CPUQuota, CPUPeriod: l.CPUPeriod, CPUShares: l.CPUShares}, nil
}

// SetPodCgroupConfig implements cm.PodContainerManager.
func (g *podGroups) SetPodCgroupConfig(_ klog.Logger, pod *v1.Pod, change *cm.ResourceConfig) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits[pod.UID] = merged(g.limits[pod.UID], change)
	return nil
}

// merged returns limits with what change sets.
func merged(limits cm.ResourceConfig, change *cm.ResourceConfig) cm.ResourceConfig {
	if change.Memory != nil {
		limits.Memory = change.Memory
	}
	if change.CPUQuota != nil {
		limits.CPUQuota = change.CPUQuota
	}
	if change.CPUPeriod != nil {
		limits.CPUPeriod = change.CPUPeriod
	}
	if change.CPUShares != nil {
		limits.CPUShares = change.CPUShares
	}
	return limits
}
