package node

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/apimachinery/lease"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

const (
	osImage = "Debian GNU/Linux 13 (trixie)"

	leaseDuration    = 40 // seconds after which a silent node is suspect
	leaseRenew       = 10 * time.Second
	statusPeriod     = 10 * time.Second // how often the node looks at its own status
	statusReport     = 5 * time.Minute  // how often it reports an unchanged one
	maxImagesInState = 50
)

// What the kubelet keeps for itself and the system.
var reserved = v1.ResourceList{v1.ResourceMemory: resource.MustParse("100Mi")}

func (n *Node) capacity() v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(int64(n.spec.Cores), resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(n.spec.Memory, resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(n.spec.Disk, resource.BinarySI),
		v1.ResourcePods:             *resource.NewQuantity(maxPods, resource.DecimalSI),
		"hugepages-1Gi":             *resource.NewQuantity(0, resource.DecimalSI),
		"hugepages-2Mi":             *resource.NewQuantity(0, resource.DecimalSI),
	}
}

func (n *Node) allocatable() v1.ResourceList {
	list := n.capacity()
	for name, q := range reserved {
		left := list[name]
		left.Sub(q)
		list[name] = left
	}
	return list
}

// nodeConditions are the pressures a node suffers from.
type nodeConditions struct {
	mu           sync.Mutex
	memory, disk bool
}

func (c *nodeConditions) get() (memory, disk bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory, c.disk
}

// register creates the node's object, or takes over the one that is there.
func (k *kubelet) register() error {
	n := k.node
	nodes := n.fleet.cfg.Client.CoreV1().Nodes()
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.spec.Name, Labels: map[string]string{
			v1.LabelHostname: n.spec.Name, v1.LabelOSStable: runtime.GOOS, v1.LabelArchStable: runtime.GOARCH,
			"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
		}},
		Spec: v1.NodeSpec{PodCIDR: n.spec.Pods.String(), PodCIDRs: []string{n.spec.Pods.String()}},
	}
	node.Labels[v1.LabelOSStable], node.Labels["beta.kubernetes.io/os"] = "linux", "linux"
	for key, value := range n.spec.Labels {
		node.Labels[key] = value
	}
	node.Status = k.nodeStatus(v1.NodeStatus{})
	_, err := nodes.Create(k.ctx, node, metav1.CreateOptions{})
	switch {
	case err == nil:
		k.recorder.Event(nodeRef(n.spec.Name), v1.EventTypeNormal, events.StartingKubelet, "Starting kubelet.")
		for _, reason := range []string{
			"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID",
			events.NodeReady,
		} {
			k.recordStatus(reason)
		}
		return nil
	case apierrors.IsAlreadyExists(err):
		return nil
	}
	return fmt.Errorf("register: %w", err)
}

// nodeStatus describes the node. Times of conditions that did not change are kept from old.
func (k *kubelet) nodeStatus(old v1.NodeStatus) v1.NodeStatus {
	n := k.node
	now := metav1.NewTime(n.fleet.cfg.Clock.Now())
	s := v1.NodeStatus{
		Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{},
		Addresses: []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: n.spec.Address.String()},
			{Type: v1.NodeHostName, Address: n.spec.Name},
		},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: KubeletPort}},
		NodeInfo: v1.NodeSystemInfo{
			MachineID: machineID(n.spec.Name), SystemUUID: machineID(n.spec.Name), BootID: machineID(n.spec.Name),
			KernelVersion: cri.KernelVersion, OSImage: osImage, ContainerRuntimeVersion: cri.Name + "://" + cri.Version,
			KubeletVersion: n.fleet.cfg.Version, OperatingSystem: "linux", Architecture: runtime.GOARCH,
		},
		RuntimeHandlers: []v1.NodeRuntimeHandler{{Name: ""}, {Name: cri.DefaultHandler}},
		Features:        &v1.NodeFeatures{SupplementalGroupsPolicy: ptr.To(true)},
	}
	// Others may add resources of their own to the capacity; what is there can be allocated.
	maps.Copy(s.Capacity, old.Capacity)
	maps.Copy(s.Capacity, n.capacity())
	maps.Copy(s.Allocatable, s.Capacity)
	maps.Copy(s.Allocatable, n.allocatable())
	memory, disk := k.conditions.get()
	condition := func(kind v1.NodeConditionType, bad bool, badReason, badMessage, goodReason, goodMessage string) {
		c := v1.NodeCondition{
			Type: kind, Status: v1.ConditionFalse, Reason: goodReason, Message: goodMessage,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
		if bad {
			c.Status, c.Reason, c.Message = v1.ConditionTrue, badReason, badMessage
		}
		for _, o := range old.Conditions {
			if o.Type == kind && o.Status == c.Status {
				c.LastTransitionTime = o.LastTransitionTime
			}
		}
		s.Conditions = append(s.Conditions, c)
	}
	condition(v1.NodeMemoryPressure, memory, "KubeletHasInsufficientMemory",
		"kubelet has insufficient memory available", "KubeletHasSufficientMemory",
		"kubelet has sufficient memory available")
	condition(v1.NodeDiskPressure, disk, "KubeletHasDiskPressure", "kubelet has disk pressure",
		"KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	condition(v1.NodePIDPressure, false, "", "", "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	condition(v1.NodeReady, true, "KubeletReady", "kubelet is posting ready status", "", "")
	for _, c := range old.Conditions { // Others may have theirs.
		switch c.Type {
		case v1.NodeMemoryPressure, v1.NodeDiskPressure, v1.NodePIDPressure, v1.NodeReady:
		default:
			s.Conditions = append(s.Conditions, c)
		}
	}
	images, _ := k.machine.runtime.ListImages(k.ctx, nil)
	for _, i := range images[:min(len(images), maxImagesInState)] {
		s.Images = append(s.Images, v1.ContainerImage{
			Names: append(append([]string{}, i.RepoDigests...), i.RepoTags...), SizeBytes: int64(i.Size),
		})
	}
	return s
}

// heartbeat renews the node's lease and keeps its status current.
func (k *kubelet) heartbeat() {
	cfg := k.node.fleet.cfg
	renewals := lease.NewController(clock.RealClock{}, cfg.Client, k.node.spec.Name, leaseDuration, nil, leaseRenew,
		k.node.spec.Name, v1.NamespaceNodeLease, k.ownLease)
	k.wg.Go(func() { renewals.Run(k.ctx) })
	reported, cordoned := time.Now(), k.isCordoned()
	t := time.NewTicker(statusPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-k.ctx.Done():
			return
		}
		cordoned = k.tellCordon(cordoned)
		if k.reportStatus(time.Since(reported) >= statusReport) {
			reported = time.Now()
		}
	}
}

// isCordoned reports whether the node takes no new pods.
func (k *kubelet) isCordoned() bool {
	node, err := k.watches.nodes.Get(k.node.spec.Name)
	return err == nil && node.Spec.Unschedulable
}

// tellCordon makes an event of it if the node was cordoned or uncordoned since, and returns what it is now.
func (k *kubelet) tellCordon(before bool) bool {
	now := k.isCordoned()
	if now != before {
		reason := events.NodeSchedulable
		if now {
			reason = events.NodeNotSchedulable
		}
		k.recordStatus(reason)
	}
	return now
}

// recordStatus makes an event of what the node's status is now.
func (k *kubelet) recordStatus(reason string) {
	name := k.node.spec.Name
	k.recorder.Eventf(nodeRef(name), v1.EventTypeNormal, reason, "Node %s status is now: %s", name, reason)
}

// ownLease makes the node the owner of its lease, so that they go together.
func (k *kubelet) ownLease(l *coordinationv1.Lease) error {
	node, err := k.watches.nodes.Get(k.node.spec.Name)
	if err == nil && len(l.OwnerReferences) == 0 {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	}
	return nil
}

// reportStatus writes the node's status if it changed, or if it is time to. It reports whether it did.
func (k *kubelet) reportStatus(due bool) bool {
	node, err := k.watches.nodes.Get(k.node.spec.Name)
	if err != nil {
		return false // It was deleted. Only a restart of the kubelet registers it again.
	}
	s := k.nodeStatus(node.Status)
	if !due && !statusChanged(&node.Status, &s) {
		return false
	}
	changed := node.DeepCopy()
	s.VolumesAttached, s.VolumesInUse, s.Config, s.DeclaredFeatures = node.Status.VolumesAttached,
		node.Status.VolumesInUse, node.Status.Config, node.Status.DeclaredFeatures
	changed.Status = s
	_, _, err = nodeutil.PatchNodeStatus(k.node.fleet.cfg.Client.CoreV1(), types.NodeName(k.node.spec.Name), node,
		changed)
	return err == nil
}

// statusChanged compares what matters, which the time of the last heartbeat does not.
func statusChanged(a, b *v1.NodeStatus) bool {
	strip := func(s *v1.NodeStatus) (map[v1.NodeConditionType]v1.ConditionStatus, int) {
		m := map[v1.NodeConditionType]v1.ConditionStatus{}
		for _, c := range s.Conditions {
			m[c.Type] = c.Status
		}
		return m, len(s.Images)
	}
	ca, ia := strip(a)
	cb, ib := strip(b)
	return !reflect.DeepEqual(ca, cb) || ia != ib || !equality.Semantic.DeepEqual(a.Capacity, b.Capacity) ||
		!equality.Semantic.DeepEqual(a.Allocatable, b.Allocatable) ||
		a.NodeInfo.KubeletVersion != b.NodeInfo.KubeletVersion
}

// machineID derives the identifiers of a machine from its name.
func machineID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%x", sum[:16])
}
