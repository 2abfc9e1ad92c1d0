package cri

import (
	"context"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	firstPID = 1

	// firstNodePID is what is left by a node's own programs for those of containers.
	firstNodePID = 1201
)

// pidSpace is a PID namespace: the programs that see each other. A container has one of its own, or
// shares that of its pod, of another container or of the node. The node's has everybody in it.
type pidSpace struct {
	*kit.Table
	init *Container // with which it ends; nil for a pod's and the node's
}

func newPIDSpace(outer *pidSpace, init *Container) *pidSpace { return &pidSpace{outer.Inside(), init} }

// newNodeSpace returns the space of a node, with what runs on it besides containers.
func newNodeSpace(booted time.Time) *pidSpace {
	s := &pidSpace{Table: kit.NewTable(firstNodePID)}
	first := &kit.Running{Info: kit.ProcessInfo{Args: []string{"/sbin/init"}, Started: booted}}
	s.Add(first, kit.IDs{s.Table: firstPID})
	for pid, args := range map[int][]string{
		412: {"/usr/bin/containerd"},
		655: {
			"/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml",
			"--container-runtime-endpoint=unix://" + Endpoint,
		},
	} {
		p := &kit.Running{Info: kit.ProcessInfo{Args: args, Started: booted}, Parent: first}
		s.Add(p, kit.IDs{s.Table: pid})
	}
	return s
}

// place is what a container's programs have for an owner.
type place struct {
	container *Container // nil if it belongs to none
	main      bool       // it is the container's main program
}

func placeOf(p *kit.Running) place {
	at, _ := p.Owner.(place)
	return at
}

// Endpoint is where a node's runtime would listen.
const Endpoint = "/run/containerd/containerd.sock"

// list returns the programs by ID. A container's main program has what all of the container has used.
func (s *pidSpace) list() []kit.ProcessInfo {
	list := s.List()
	mains := map[int]*Container{}
	for _, p := range s.All() {
		if at := placeOf(p); at.main {
			mains[p.IDs()[s.Table]] = at.container
		}
	}
	for i, p := range list {
		if c := mains[p.PID]; c != nil {
			list[i].CPU, list[i].Memory = groupCPU{c.group}.Info().Used, groupMemory{group: c.group}.Info().Used
		}
	}
	return list
}

// spaceOf returns the space for the programs of a new container.
func (c *Container) spaceOf(s *sandbox) (*pidSpace, error) {
	options := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	switch {
	case options == nil || options.Pid == runtimeapi.NamespaceMode_CONTAINER:
	case options.Pid == runtimeapi.NamespaceMode_POD:
		return s.space, nil
	case options.Pid == runtimeapi.NamespaceMode_NODE:
		return c.runtime.space, nil
	case options.Pid == runtimeapi.NamespaceMode_TARGET:
		target, err := c.runtime.container(options.TargetId)
		if err != nil {
			return nil, fmt.Errorf("invalid target container: %w", err)
		}
		if target.sandbox != s {
			return nil, fmt.Errorf("invalid target container: container %q is in another pod", target.id)
		}
		return target.procs.space, nil
	}
	return newPIDSpace(c.runtime.space, c), nil
}

// looksOn reports whether the container was put beside another one, to look at its processes.
func (c *Container) looksOn() bool {
	return c.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetPid() == runtimeapi.NamespaceMode_TARGET
}

// nodePID is the ID of the container's main program on the node; 0 if it never ran.
func (c *Container) nodePID() int {
	c.procs.mu.Lock()
	defer c.procs.mu.Unlock()
	return c.procs.first[c.runtime.space.Table]
}

// collapse ends the containers that shared the space of c, which has ended.
func (c *Container) collapse() {
	space := c.procs.space
	if space.init != c {
		return
	}
	for _, other := range c.runtime.containersOf(c.sandbox.id) {
		if other != c && other.procs.space == space {
			other.kill()
		}
	}
}

// populate lists what a sandbox itself runs: what watches over its containers, and what holds its
// namespaces.
func (r *Runtime) populate(s *sandbox) {
	end := func(error) { go func() { _ = r.StopPodSandbox(context.Background(), s.id) }() }
	first, _ := r.space.Get(firstPID)
	s.shim = &kit.Running{End: end, Info: kit.ProcessInfo{
		Args: []string{
			"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", s.id, "-address",
			Endpoint,
		},
		Started: s.created,
	}, Parent: first}
	r.space.Add(s.shim, nil)
	s.space = newPIDSpace(r.space, nil)
	s.pause = &kit.Running{End: end, Parent: s.shim, Info: kit.ProcessInfo{
		Args: []string{"/pause"}, User: kit.User{UID: 65535, GID: 65535}, Started: s.created,
	}}
	s.space.Add(s.pause, nil)
}

// depopulate ends what populate started.
func (r *Runtime) depopulate(s *sandbox) {
	s.space.Remove(s.pause)
	r.space.Remove(s.shim)
}
