package node

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// State is a saved node: its disk, its volumes in memory and its containers.
type State struct {
	Name    string
	Disk    *vfs.Tree
	Memory  map[string]MemoryState // by mount point
	Runtime cri.State
}

// MemoryState is a saved volume in memory.
type MemoryState struct {
	Files *vfs.Tree
	Total int64 // bytes
}

// Save records all nodes. The kubelets must be stopped, so that nothing is half done.
func (f *Fleet) Save() ([]State, error) {
	var list []State
	for _, n := range f.Nodes() {
		s, err := n.hardware().save()
		if err != nil {
			return nil, fmt.Errorf("save node %s: %w", n.spec.Name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// Halt kills all containers. The kubelets must be stopped.
func (f *Fleet) Halt() {
	var nodes sync.WaitGroup
	for _, n := range f.Nodes() {
		nodes.Go(n.hardware().runtime.Shutdown)
	}
	nodes.Wait()
}

// Restore brings all nodes to a saved state: every container ends, disks are replaced, and the
// containers of the state start. The kubelets must be stopped.
func (f *Fleet) Restore(states []State) error {
	byName := map[string]*State{}
	for i := range states {
		byName[states[i].Name] = &states[i]
	}
	f.Halt() // All addresses are free before the first is taken again.
	for _, n := range f.Nodes() {
		s := byName[n.spec.Name]
		if s == nil {
			return fmt.Errorf("the snapshot has no node %s", n.spec.Name)
		}
		if err := n.restore(s); err != nil {
			return fmt.Errorf("restore node %s: %w", n.spec.Name, err)
		}
	}
	// A program that calls another whose pod has no address yet would wait long for an answer.
	for _, n := range f.Nodes() {
		if err := n.hardware().runtime.RestoreContainers(byName[n.spec.Name].Runtime); err != nil {
			return fmt.Errorf("restore node %s: %w", n.spec.Name, err)
		}
	}
	return nil
}

// restore brings the node back without its containers.
func (n *Node) restore(s *State) error {
	if n.fleet.cfg.Network.Host(n.spec.Address) != n.host { // The node had failed.
		var err error
		if n.host, err = n.fleet.cfg.Network.AddHost(n.spec.Address); err != nil {
			return err
		}
	}
	if err := n.replace(s.Disk); err != nil {
		return err
	}
	return n.hardware().restore(s)
}

// RemoveDir deletes a directory of a node's disk. It is no error if the node is unknown.
func (f *Fleet) RemoveDir(node, dir string) error {
	if n := f.nodes[node]; n != nil {
		return n.hardware().env().RemoveAll(dir)
	}
	return nil
}

// Mark notes what containers have used, and their programs have counted, before there was the usual load.
func (f *Fleet) Mark(ctx context.Context) error {
	for _, n := range f.Nodes() {
		n.hardware().runtime.Mark()
	}
	return f.recall(ctx, kit.Beginning, nil)
}

// Recall tells containers and their programs their past: those that count first, then those that keep data, then
// those that collect.
func (f *Fleet) Recall(ctx context.Context, p *past.Past) error {
	for _, n := range f.Nodes() {
		n.hardware().runtime.Age(p)
	}
	for _, as := range []kit.Telling{kit.Source, kit.Keeper, kit.Collector} {
		if err := f.recall(ctx, as, p); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) recall(ctx context.Context, as kit.Telling, p *past.Past) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range f.Nodes() {
		g.Go(func() error { return n.hardware().runtime.Recall(ctx, as, p) })
	}
	return g.Wait()
}

// Restored must be called when restored programs serve: from then on their output is logged.
func (f *Fleet) Restored() {
	for _, n := range f.Nodes() {
		n.hardware().runtime.Restored()
	}
}

// WaitServing returns when the programs of all ready pods accept connections on the ports their
// manifests declare, or after the given time: a program is not bound to what its manifest says.
func (f *Fleet) WaitServing(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !f.serving() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			if context.Cause(ctx) == context.DeadlineExceeded {
				return nil
			}
			return ctx.Err()
		}
	}
	return nil
}

func (f *Fleet) serving() bool {
	f.mu.Lock()
	w := f.running
	f.mu.Unlock()
	if w == nil {
		return true
	}
	pods, err := w.pods.List(labels.Everything())
	if err != nil {
		return true
	}
	for _, pod := range pods {
		n := f.nodes[pod.Spec.NodeName]
		if n == nil || !podutil.IsPodReady(pod) || pod.Spec.HostNetwork {
			continue
		}
		host := f.cfg.Network.Host(parseAddr(pod.Status.PodIP))
		if host == nil {
			return false
		}
		for _, c := range pod.Spec.Containers {
			for _, p := range c.Ports {
				if (p.Protocol == v1.ProtocolTCP || p.Protocol == "") && !host.Listens(uint16(p.ContainerPort)) {
					return false
				}
			}
		}
	}
	return true
}

func parseAddr(s string) netip.Addr {
	a, _ := netip.ParseAddr(s)
	return a
}
