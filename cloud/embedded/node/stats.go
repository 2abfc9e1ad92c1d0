package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// systemMemory is what the node's own daemons hold, in bytes, and systemCPU what they use, in cores.
const (
	systemMemory = 512 << 20
	systemCPU    = 0.05
)

// summary is what the node and its pods use. It is the kubelet's /stats/summary, and what evictions
// are decided by.
func (k *kubelet) summary() *statsapi.Summary {
	n := k.node
	at := metav1.NewTime(n.fleet.cfg.Clock.Now())
	disk := k.diskStats(at)
	s := &statsapi.Summary{}
	var cpu float64
	var used time.Duration
	for _, p := range k.machine.runtime.Stats() {
		ps := k.convertStats(&p, disk)
		for _, c := range p.Containers {
			cpu += c.CPURate
			used += c.CPU
		}
		s.Pods = append(s.Pods, *ps)
	}
	memory := k.machine.cpu.MemoryUsed() + systemMemory
	up := n.fleet.cfg.Clock.Since(k.machine.runtime.Booted())
	s.Node = statsapi.NodeStats{
		NodeName: n.spec.Name, StartTime: metav1.NewTime(k.machine.runtime.Booted()),
		CPU: &statsapi.CPUStats{
			Time: at, UsageNanoCores: nano(cpu + systemCPU),
			UsageCoreNanoSeconds: ptr.To(uint64(used + time.Duration(float64(up)*systemCPU))),
		},
		Memory: &statsapi.MemoryStats{
			Time: at, AvailableBytes: ptr.To(uint64(max(0, n.spec.Memory-memory))), UsageBytes: ptr.To(uint64(memory)),
			WorkingSetBytes: ptr.To(uint64(memory)), RSSBytes: ptr.To(uint64(memory)), PageFaults: ptr.To(uint64(0)),
			MajorPageFaults: ptr.To(uint64(0)),
		},
		Network: networkStats(at, k.machine.host.Counters()), Fs: &disk,
		Runtime: &statsapi.RuntimeStats{ImageFs: &disk, ContainerFs: &disk},
		Rlimit: &statsapi.RlimitStats{
			Time: at, MaxPID: ptr.To(int64(4194304)),
			NumOfRunningProcesses: ptr.To(int64(100)),
		},
	}
	return s
}

func nano(cores float64) *uint64 { return ptr.To(uint64(cores * 1e9)) }

// diskStats is what is used of the node's disk. It looks at every file, so it is asked for once, and what is told of
// parts of the disk are copies of it.
func (k *kubelet) diskStats(at metav1.Time) statsapi.FsStats {
	const inodes = 1 << 22
	_, files := k.machine.tree.Used()
	return statsapi.FsStats{
		Time: at, CapacityBytes: ptr.To(uint64(k.machine.disk.Total)), UsedBytes: ptr.To(uint64(k.machine.disk.Used())),
		AvailableBytes: ptr.To(uint64(max(0, k.machine.disk.Total-k.machine.disk.Used()))),
		Inodes:         ptr.To(uint64(inodes)), InodesUsed: ptr.To(uint64(files)),
		InodesFree: ptr.To(uint64(inodes - files)),
	}
}

func networkStats(at metav1.Time, c *vnet.Counters) *statsapi.NetworkStats {
	return &statsapi.NetworkStats{Time: at, InterfaceStats: statsapi.InterfaceStats{
		Name: "eth0", RxBytes: ptr.To(c.ReceivedBytes.Load()), RxErrors: ptr.To(uint64(0)),
		TxBytes: ptr.To(c.SentBytes.Load()), TxErrors: ptr.To(uint64(0)),
	}}
}

// partOf is a part of a disk that has so many bytes and files.
func partOf(disk statsapi.FsStats, bytes, files int64) *statsapi.FsStats {
	disk.UsedBytes, disk.InodesUsed = ptr.To(uint64(bytes)), ptr.To(uint64(files))
	return &disk
}

func (k *kubelet) convertStats(p *cri.PodStats, disk statsapi.FsStats) *statsapi.PodStats {
	at := disk.Time
	s := &statsapi.PodStats{
		PodRef:    statsapi.PodReference{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
		StartTime: metav1.NewTime(p.Created), Network: networkStats(at, p.Network),
	}
	var cpu float64
	var used time.Duration
	var memory, layer int64
	for _, c := range p.Containers {
		cpu, used, memory, layer = cpu+c.CPURate, used+c.CPU, memory+c.Memory, layer+c.Files
		s.Containers = append(s.Containers, statsapi.ContainerStats{
			Name: c.Name, StartTime: metav1.NewTime(c.Started),
			CPU: &statsapi.CPUStats{
				Time: at, UsageNanoCores: nano(c.CPURate),
				UsageCoreNanoSeconds: ptr.To(uint64(c.CPU)),
			},
			Memory: containerMemory(at, c.Memory, c.MemoryLimit),
			Rootfs: partOf(disk, c.Files, int64(c.FileCount)), Logs: partOf(disk, 0, 0),
		})
	}
	s.CPU = &statsapi.CPUStats{Time: at, UsageNanoCores: nano(cpu), UsageCoreNanoSeconds: ptr.To(uint64(used))}
	s.Memory = containerMemory(at, memory, 0)
	k.volumeStats(s, disk, layer)
	return s
}

func containerMemory(at metav1.Time, used, limit int64) *statsapi.MemoryStats {
	m := &statsapi.MemoryStats{
		Time: at, UsageBytes: ptr.To(uint64(used)), WorkingSetBytes: ptr.To(uint64(used)),
		RSSBytes: ptr.To(uint64(used)), PageFaults: ptr.To(uint64(0)), MajorPageFaults: ptr.To(uint64(0)),
	}
	if limit > 0 {
		m.AvailableBytes = ptr.To(uint64(max(0, limit-used)))
	}
	return m
}

// volumeStats adds a pod's volumes. Those that are gone with it count as its ephemeral storage.
func (k *kubelet) volumeStats(s *statsapi.PodStats, disk statsapi.FsStats, layer int64) {
	ephemeral := layer
	var w *worker
	for _, o := range k.all() {
		if string(o.uid) == s.PodRef.UID {
			w = o
		}
	}
	if w != nil {
		pod := w.current()
		for i := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[i]
			dir, ok := w.volumes.path(v.Name)
			if !ok || dir == "" {
				continue
			}
			bytes, files := k.machine.tree.UsedBy(dir)
			if m := w.volumes.inMemory(v.Name); m != nil {
				bytes, files = m.Used()
			} else if v.PersistentVolumeClaim == nil && v.HostPath == nil && v.Ephemeral == nil {
				ephemeral += bytes
			}
			vs := statsapi.VolumeStats{FsStats: *partOf(disk, bytes, int64(files)), Name: v.Name}
			if c := v.PersistentVolumeClaim; c != nil {
				vs.PVCRef = &statsapi.PVCReference{Name: c.ClaimName, Namespace: pod.Namespace}
			}
			s.VolumeStats = append(s.VolumeStats, vs)
		}
	}
	disk.UsedBytes = ptr.To(uint64(ephemeral))
	s.EphemeralStorage = &disk
}

// podStats returns what one pod uses.
func (k *kubelet) podStats(pod *v1.Pod) *statsapi.PodStats {
	at := metav1.NewTime(k.node.fleet.cfg.Clock.Now())
	for _, p := range k.machine.runtime.Stats() {
		if p.UID == string(pod.UID) {
			return k.convertStats(&p, k.diskStats(at))
		}
	}
	return &statsapi.PodStats{PodRef: statsapi.PodReference{
		Name: pod.Name, Namespace: pod.Namespace,
		UID: string(pod.UID),
	}}
}

// Get implements the eviction manager's source of figures.
func (k *kubelet) Get(context.Context, bool) (*statsapi.Summary, error) { return k.summary(), nil }

// GetCPUAndMemoryStats implements the same.
func (k *kubelet) GetCPUAndMemoryStats(context.Context) (*statsapi.Summary, error) {
	return k.summary(), nil
}
