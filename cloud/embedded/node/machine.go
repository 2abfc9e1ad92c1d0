package node

import (
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// machine is the hardware of a node with a container runtime. A restore replaces it as a whole, so
// that what still works on the old one cannot touch the new.
type machine struct {
	spec    Spec
	dir     string // on the host, for the few files that must be there
	host    *vnet.Host
	cpu     *cri.Machine
	disk    *vfs.Disk
	tree    *vfs.Tree      // on the disk
	files   *vfs.Namespace // the tree, with volumes in memory mounted on it
	runtime *cri.Runtime
	journal *journal

	mu     sync.Mutex
	memory map[string]*memoryVolume // by mount point
}

// memoryVolume is an emptyDir in memory. It belongs to the machine, not to the kubelet that made it.
type memoryVolume struct {
	tree *vfs.Tree
	disk *vfs.Disk
}

// realDisk is how many bytes of files all nodes together really hold, in memory, each an equal part. What
// a disk says it has is the model's; a write beyond this fails as on a disk that is full.
const realDisk = 1 << 30

// realPart is the part of a node, at least enough to work with.
func realPart(nodes int) int64 { return max(realDisk/int64(max(nodes, 1)), 64<<20) }

// newMachine puts a copy of a disk into new hardware.
func newMachine(n *Node, disk *vfs.Tree) (*machine, error) {
	cfg := n.fleet.cfg
	m := &machine{
		spec: n.spec, host: n.host, cpu: cri.NewMachine(n.spec.Cores, n.spec.Memory),
		disk:   &vfs.Disk{Name: "/dev/vda1", Total: n.spec.Disk, On: &vfs.Disk{Total: realPart(len(cfg.Nodes))}},
		memory: map[string]*memoryVolume{},
	}
	var err error
	if err = os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp(cfg.Dir, n.spec.Name+"-"); err != nil {
		return nil, err
	}
	m.journal = &journal{host: n.spec.Name, dir: m.dir, now: cfg.Clock.Now}
	m.tree = disk.Clone(m.disk)
	m.files = vfs.NewNamespace(m.tree)
	m.runtime = cri.New(cri.Config{
		NodeName: n.spec.Name, Images: cfg.Images, Machine: m.cpu, Network: cfg.Network, Host: n.host,
		Pods: n.spec.Pods, Disk: m.tree, Files: m.files, Dir: m.dir, Now: cfg.Clock.Now, OnChange: func(uid string) {
			n.wake(types.UID(uid))
		},
	})
	if err := m.runtime.Mount(); err != nil {
		return nil, err
	}
	logged, err := m.journal.tree()
	if err != nil {
		return nil, err
	}
	return m, m.files.Mount("/run/log/journal", logged, vfs.MountOptions{ReadOnly: true})
}

// env gives access to the machine's files.
func (m *machine) env() *kit.Env { return &kit.Env{FS: m.files.As(kit.User{}), Dir: "/"} }

// mountMemory mounts a volume in memory at a path, or returns the one that is there.
func (m *machine) mountMemory(at string, size int64) (*memoryVolume, error) {
	m.mu.Lock()
	v := m.memory[at]
	m.mu.Unlock()
	if v != nil {
		return v, nil
	}
	disk := &vfs.Disk{Name: "tmpfs", Total: size, On: m.disk.On}
	return m.addMemory(at, vfs.NewTree(vfs.Options{Type: "tmpfs", Disk: disk, Mode: 0o777}), disk)
}

func (m *machine) addMemory(at string, t *vfs.Tree, disk *vfs.Disk) (*memoryVolume, error) {
	if err := m.files.Mount(at, t, vfs.MountOptions{Source: "tmpfs"}); err != nil {
		return nil, err
	}
	v := &memoryVolume{t, disk}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.memory[at] = v
	return v, nil
}

func (m *machine) unmountMemory(at string) {
	m.files.Unmount(at)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.memory, at)
}

// save records the machine.
func (m *machine) save() (State, error) {
	st, err := m.runtime.Save()
	if err != nil {
		return State{}, err
	}
	s := State{Name: m.spec.Name, Disk: m.tree.Clone(nil), Memory: map[string]MemoryState{}, Runtime: st}
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, v := range m.memory {
		s.Memory[at] = MemoryState{v.tree.Clone(nil), v.disk.Total}
	}
	return s, nil
}

// restore fills a new machine with a saved one's volumes and containers.
func (m *machine) restore(s *State) error {
	for at, v := range s.Memory {
		disk := &vfs.Disk{Name: "tmpfs", Total: v.Total, On: m.disk.On}
		if _, err := m.addMemory(at, v.Files.Clone(disk), disk); err != nil {
			return err
		}
	}
	return m.runtime.Restore(s.Runtime)
}

// discard ends the machine for good.
func (m *machine) discard() {
	m.runtime.Shutdown()
	m.runtime.Discard()
	m.files.Clear()
	_ = os.RemoveAll(filepath.Clean(m.dir))
}
