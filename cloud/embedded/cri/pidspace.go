package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	firstPID = 1

	// firstNodePID is what a node's own programs have used up when it runs its first container.
	firstNodePID = 1200
)

// pidSpace is a PID namespace: the programs that see each other. A container has one of its own, or
// shares that of its pod, of another container or of the node. The node's has everybody in it.
type pidSpace struct {
	mu    *sync.Mutex // one for all spaces of a node
	outer *pidSpace   // the node's; nil if it is that
	init  *Container  // with which it ends; nil for a pod's and the node's
	next  int
	all   map[int]*process
}

func newPIDSpace(outer *pidSpace, init *Container) *pidSpace {
	return &pidSpace{mu: outer.mu, outer: outer, init: init, all: map[int]*process{}}
}

// newNodeSpace returns the space of a node, with what runs on it besides containers.
func newNodeSpace(booted time.Time) *pidSpace {
	s := &pidSpace{mu: &sync.Mutex{}, all: map[int]*process{}}
	first := &process{info: kit.ProcessInfo{Args: []string{"/sbin/init"}, Started: booted}}
	s.enter(first, map[*pidSpace]int{s: firstPID})
	for pid, args := range map[int][]string{
		412: {"/usr/bin/containerd"},
		655: {
			"/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml",
			"--container-runtime-endpoint=unix://" + Endpoint,
		},
	} {
		p := &process{info: kit.ProcessInfo{Args: args, Started: booted}, parent: first}
		s.enter(p, map[*pidSpace]int{s: pid})
	}
	s.next = firstNodePID
	return s
}

// Endpoint is where a node's runtime would listen.
const Endpoint = "/run/containerd/containerd.sock"

// enter lists a program under the given IDs, or else under new ones, here and in the node's space.
func (s *pidSpace) enter(p *process, ids map[*pidSpace]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.space, p.ids = s, map[*pidSpace]int{}
	for in := s; in != nil; in = in.outer {
		id := ids[in]
		if id == 0 {
			in.next++
			id = in.next
		}
		in.next = max(in.next, id)
		p.ids[in], in.all[id] = id, p
	}
}

// leave takes a program off the lists, if no other has taken its place. Those it started belong to
// the first program from then on.
func (s *pidSpace) leave(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in, id := range p.ids {
		if in.all[id] == p {
			delete(in.all, id)
		}
	}
	for _, child := range s.all {
		if child.parent == p {
			child.parent = s.all[firstPID]
		}
	}
}

// get returns the program with an ID, or nil.
func (s *pidSpace) get(pid int) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[pid]
}

// list returns the programs by ID.
func (s *pidSpace) list() []kit.ProcessInfo {
	s.mu.Lock()
	list := make([]kit.ProcessInfo, 0, len(s.all))
	mains := map[int]*Container{}
	for pid, p := range s.all {
		list = append(list, p.seen(s, pid))
		if p.main {
			mains[pid] = p.container
		}
	}
	s.mu.Unlock()
	for i, p := range list {
		if c := mains[p.PID]; c != nil {
			list[i].CPU, list[i].Memory = groupCPU{c.group}.Info().Used, groupMemory{group: c.group}.Info().Used
		}
	}
	slices.SortFunc(list, func(a, b kit.ProcessInfo) int { return cmp.Compare(a.PID, b.PID) })
	return list
}

// seen is what a space shows of a program. A parent that is elsewhere is 0. It is called with the
// mutex held.
func (p *process) seen(in *pidSpace, pid int) kit.ProcessInfo {
	info := p.info
	info.PID, info.Parent = pid, 0
	if p.parent != nil {
		info.Parent = p.parent.ids[in]
	}
	return info
}

// signal delivers a signal of a user. PID -1 is everybody but the first program.
func (s *pidSpace) signal(pid int, sig syscall.Signal, from kit.User) error {
	s.mu.Lock()
	var targets []*process
	for id, p := range s.all {
		if id == pid || pid == -1 && id != firstPID {
			targets = append(targets, p)
		}
	}
	s.mu.Unlock()
	err := error(syscall.ESRCH)
	for _, p := range targets {
		switch {
		case from.UID != 0 && from.UID != p.info.User.UID, p.cancel == nil && sig != 0: // The node's own go on.
			if errors.Is(err, syscall.ESRCH) {
				err = syscall.EPERM
			}
		default:
			p.signal(sig)
			err = nil
		}
	}
	return err
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
	return c.procs.first[c.runtime.space]
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
	s.shim = &process{cancel: end, info: kit.ProcessInfo{
		Args: []string{
			"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", s.id, "-address",
			Endpoint,
		},
		Started: s.created,
	}, parent: r.space.get(firstPID)}
	r.space.enter(s.shim, nil)
	s.space = newPIDSpace(r.space, nil)
	s.pause = &process{cancel: end, parent: s.shim, info: kit.ProcessInfo{
		Args: []string{"/pause"}, User: kit.User{UID: 65535, GID: 65535}, Started: s.created,
	}}
	s.space.enter(s.pause, nil)
}

// depopulate ends what populate started.
func (r *Runtime) depopulate(s *sandbox) {
	s.space.leave(s.pause)
	r.space.leave(s.shim)
}
