package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/app/kit"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// Node is a machine with a container runtime, and a kubelet while the fleet runs.
type Node struct {
	spec  Spec
	fleet *Fleet
	dir   string // on the host

	booted  time.Time
	disk    *vfs.Disk
	tree    *vfs.Tree
	files   *vfs.Namespace
	host    *vnet.Host
	machine *cri.Machine
	runtime *cri.Runtime

	mu      sync.Mutex
	kubelet *kubelet                 // nil while it is stopped
	memory  map[string]*memoryVolume // by mount point
}

func newNode(f *Fleet, spec Spec) (*Node, error) {
	n := &Node{spec: spec, fleet: f, dir: filepath.Join(f.cfg.Dir, spec.Name), booted: f.cfg.Clock.Now(), memory: map[string]*memoryVolume{}}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return nil, err
	}
	n.machine = cri.NewMachine(spec.Cores, spec.Memory)
	var err error
	if n.host, err = f.cfg.Network.AddHost(spec.Address); err != nil {
		return nil, err
	}
	tree, err := newDisk(spec)
	if err != nil {
		return nil, err
	}
	n.useDisk(tree)
	return n, nil
}

// newDisk returns a disk with what a node's operating system has on it.
func newDisk(spec Spec) (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "ext4"})
	env := &kit.Env{FS: t.Root(), Dir: "/"}
	for _, dir := range []string{"/etc", "/home", "/mnt", "/opt", "/run/containerd", "/tmp", "/var/lib/kubelet/pods", "/var/lib/containerd", "/var/log/pods"} {
		if err := env.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for name, content := range map[string]string{
		"/etc/hostname":   spec.Name + "\n",
		"/etc/hosts":      fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\n", spec.Address, spec.Name),
		"/etc/os-release": "PRETTY_NAME=\"" + osImage + "\"\nNAME=\"Debian GNU/Linux\"\nID=debian\n",
	} {
		if err := env.WriteFile(name, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// useDisk puts a disk in the machine, with a new runtime on it.
func (n *Node) useDisk(t *vfs.Tree) {
	n.disk = &vfs.Disk{Name: "/dev/vda1", Total: n.spec.Disk}
	n.tree = t.Clone(n.disk)
	n.files = vfs.NewNamespace(n.tree)
	cfg := n.fleet.cfg
	n.runtime = cri.New(cri.Config{
		NodeName: n.spec.Name, Images: cfg.Images, Machine: n.machine, Network: cfg.Network, Host: n.host, Pods: n.spec.Pods,
		Disk: n.tree, Files: n.files, Dir: n.dir, Now: cfg.Clock.Now, OnChange: func(uid string) { n.wake(types.UID(uid)) },
	})
}

// Name returns the node's name.
func (n *Node) Name() string { return n.spec.Name }

// Runtime returns the node's container runtime.
func (n *Node) Runtime() *cri.Runtime { return n.runtime }

func (n *Node) env() *kit.Env { return &kit.Env{FS: n.files.As(kit.User{}), Dir: "/"} }

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

func (n *Node) current() *kubelet {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kubelet
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
	n.runtime.KillAll()
	n.host.Close()
}
