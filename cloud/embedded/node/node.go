package node

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// Node is a machine, and a kubelet while the fleet runs.
type Node struct {
	spec  Spec
	fleet *Fleet
	host  *vnet.Host

	mu      sync.Mutex
	machine *machine
	kubelet *kubelet // nil while it is stopped
}

func newNode(f *Fleet, spec Spec) (*Node, error) {
	n := &Node{spec: spec, fleet: f}
	var err error
	if n.host, err = f.cfg.Network.AddHost(spec.Address); err != nil {
		return nil, err
	}
	disk, err := newDisk(f.cfg, spec)
	if err != nil {
		return nil, err
	}
	return n, n.replace(disk)
}

// replace gives the node a new machine with a copy of a disk.
func (n *Node) replace(disk *vfs.Tree) error {
	m, err := newMachine(n, disk)
	if err != nil {
		return err
	}
	n.mu.Lock()
	old := n.machine
	n.machine = m
	n.mu.Unlock()
	if old != nil {
		old.discard()
	}
	return nil
}

// Name returns the node's name.
func (n *Node) Name() string { return n.spec.Name }

// Runtime returns the node's container runtime, until the next restore.
func (n *Node) Runtime() *cri.Runtime { return n.hardware().runtime }

func (n *Node) hardware() *machine {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.machine
}

func (n *Node) current() *kubelet {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kubelet
}

func (n *Node) startKubelet(ctx context.Context, w *watches) error {
	k, err := newKubelet(ctx, n, w)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.kubelet = k
	n.mu.Unlock()
	return k.start()
}

func (n *Node) stopKubelet() {
	n.mu.Lock()
	k := n.kubelet
	n.kubelet = nil
	n.mu.Unlock()
	if k != nil {
		k.stop()
	}
}

// deliver tells the kubelet of a pod that is bound to it.
func (n *Node) deliver(pod *v1.Pod, gone bool) {
	if k := n.current(); k != nil {
		k.update(pod, gone)
	}
}

// wake makes the kubelet look at a pod.
func (n *Node) wake(uid types.UID) {
	if k := n.current(); k != nil {
		k.wake(uid)
	}
}

func (n *Node) refreshVolumes(namespace string) {
	if k := n.current(); k != nil {
		k.refreshVolumes(namespace)
	}
}

// Fail cuts the power: the kubelet stops, all containers die, and the node is off the network. Only
// a restore brings it back.
func (n *Node) Fail() {
	n.stopKubelet()
	n.hardware().runtime.Shutdown()
	n.host.Close()
}
