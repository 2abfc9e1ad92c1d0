package cri

import (
	"context"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// rateWindow is the least time over which a container's CPU use is averaged.
const rateWindow = 10 * time.Second

// ContainerStats are the figures of a running container.
type ContainerStats struct {
	ID, Name         string
	PodUID           string
	Namespace, Pod   string
	Image            string
	Started          time.Time
	CPU              time.Duration // used since the start
	CPURate          float64       // cores, over the last seconds
	CPULimit         float64       // cores; 0 is unlimited
	CPUShares        int64
	Periods          uint64
	ThrottledPeriods uint64
	Throttled        time.Duration
	Memory           int64 // bytes
	MemoryLimit      int64 // bytes; 0 is unlimited
	OOMKills         uint64
	Files            int64 // bytes in the container's own layer
	FileCount        int
	Processes        int
}

// PodStats are the figures of a pod.
type PodStats struct {
	UID, Namespace, Name string
	Created              time.Time
	HostNetwork          bool
	Network              *vnet.Counters
	Containers           []ContainerStats
}

// sample is a point of a container's CPU curve.
type sample struct {
	at   time.Time
	used time.Duration
}

// rate averages CPU use over rateWindow to twice that, or since sampling began. It is called with g.mu held.
func (g *group) rate(now time.Time) float64 {
	if now.Sub(g.samples[1].at) >= rateWindow {
		g.samples = [2]sample{g.samples[1], {now, g.stats.used}}
	}
	from := g.samples[0]
	if d := now.Sub(from.at); d > 0 {
		return float64(g.stats.used-from.used) / float64(d)
	}
	return 0
}

// sampleFrom begins to sample CPU use anew.
func (g *group) sampleFrom(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.samples = [2]sample{{now, g.stats.used}, {now, g.stats.used}}
}

// Stats returns the figures of all running pods, ordered by namespace and name.
func (r *Runtime) Stats() []PodStats {
	r.mu.Lock()
	pods := map[string]*PodStats{}
	for _, s := range r.sandboxes {
		if s.ready {
			m := s.config.GetMetadata()
			pods[s.id] = &PodStats{
				UID: m.GetUid(), Namespace: m.GetNamespace(), Name: m.GetName(), Created: s.created,
				HostNetwork: s.shared, Network: s.host.Counters(),
			}
		}
	}
	r.mu.Unlock()
	for _, c := range r.containersOf("") {
		p := pods[c.sandbox.id]
		c.mu.Lock()
		running, started := c.state == runtimeapi.ContainerState_CONTAINER_RUNNING, c.started
		c.mu.Unlock()
		if p == nil || !running {
			continue
		}
		p.Containers = append(p.Containers, c.stats(started))
	}
	list := make([]PodStats, 0, len(pods))
	for _, p := range pods {
		slices.SortFunc(p.Containers, func(a, b ContainerStats) int { return strings.Compare(a.Name, b.Name) })
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b PodStats) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return list
}

func (c *Container) stats(started time.Time) ContainerStats {
	pod := c.sandbox.config.GetMetadata()
	s := ContainerStats{
		ID: c.id, Name: c.config.GetMetadata().GetName(), PodUID: pod.GetUid(), Namespace: pod.GetNamespace(),
		Pod: pod.GetName(), Image: c.image.full, Started: started, Processes: c.procs.count(),
	}
	s.Files, s.FileCount = c.runtime.cfg.Disk.UsedBy(containerDir(c.id) + "/rootfs")
	g := c.group
	g.mu.Lock()
	defer g.mu.Unlock()
	lived := g.lived()
	s.CPU, s.CPURate = lived.used, g.rate(c.runtime.cfg.Now())
	s.CPULimit, s.CPUShares = float64(g.limits.quota)/float64(cfsPeriod), g.limits.shares
	s.Periods, s.ThrottledPeriods, s.Throttled = lived.periods, lived.throttledPeriods, lived.throttled
	s.Memory, s.MemoryLimit, s.OOMKills = g.shown(), g.limits.memory, g.stats.oomKills
	return s
}

// SandboxesOf returns the IDs of a pod's sandboxes, the newest first.
func (r *Runtime) SandboxesOf(podUID string) ([]string, error) {
	list, err := r.ListPodSandbox(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s *runtimeapi.PodSandbox) bool { return s.Metadata.Uid != podUID })
	slices.SortFunc(list, func(a, b *runtimeapi.PodSandbox) int { return int(b.CreatedAt - a.CreatedAt) })
	var ids []string
	for _, s := range list {
		ids = append(ids, s.Id)
	}
	return ids, nil
}

// Kill ends a container at once.
func (r *Runtime) Kill(id string) {
	if c, err := r.container(id); err == nil {
		c.kill()
	}
}

// KillAll ends all containers and waits for them.
func (r *Runtime) KillAll() {
	all := r.containersOf("")
	for _, c := range all {
		c.kill()
	}
	for _, c := range all {
		c.mu.Lock()
		started := c.main != nil
		c.mu.Unlock()
		if started {
			<-c.done
		}
	}
}

// Shutdown ends all containers and takes all sandboxes off the network. It reports none of this. The runtime must
// not be used any more.
func (r *Runtime) Shutdown() {
	r.silent.Store(true)
	r.mu.Lock()
	sandboxes := make([]*sandbox, 0, len(r.sandboxes))
	for _, s := range r.sandboxes {
		sandboxes = append(sandboxes, s)
	}
	r.mu.Unlock()
	r.KillAll()
	for _, s := range sandboxes {
		if s.ready {
			r.closeNetwork(s)
		}
	}
}

// Discard ends the runtime for good, after Shutdown: its containers have no files any more.
func (r *Runtime) Discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		c.files.Clear()
	}
}
