package cri

import (
	"container/heap"
	"context"
	"sync"
)

// Machine is the CPU and memory of a node, which its containers share.
type Machine struct {
	Cores  int
	Memory int64 // bytes

	mu      sync.Mutex
	free    int     // idle cores
	waiting runners // who wants one
	virtual float64 // virtual run time of who ran last
	used    int64   // bytes of memory
}

// NewMachine returns an idle machine.
func NewMachine(cores int, memory int64) *Machine {
	return &Machine{Cores: cores, Memory: memory, free: cores}
}

// runner waits for a core.
type runner struct {
	virtual float64
	core    chan struct{} // closed when it has one
	index   int           // in the heap; -1 once out of it
}

// runners is a heap: the one that ran least for its weight is first, which is the kernel's
// completely fair scheduler.
type runners []*runner

func (r runners) Len() int           { return len(r) }
func (r runners) Less(i, j int) bool { return r[i].virtual < r[j].virtual }
func (r runners) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].index, r[j].index = i, j
}

func (r *runners) Push(x any) {
	n := x.(*runner)
	n.index = len(*r)
	*r = append(*r, n)
}

func (r *runners) Pop() any {
	old := *r
	n := old[len(old)-1]
	n.index = -1
	*r = old[:len(old)-1]
	return n
}

// acquire waits for a core.
func (m *Machine) acquire(ctx context.Context, g *group) error {
	m.mu.Lock()
	g.virtual = max(g.virtual, m.virtual) // Who slept does not get to catch up.
	if m.free > 0 {
		m.free--
		m.virtual = g.virtual
		m.mu.Unlock()
		return nil
	}
	r := &runner{virtual: g.virtual, core: make(chan struct{})}
	heap.Push(&m.waiting, r)
	m.mu.Unlock()
	select {
	case <-r.core:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.index >= 0 {
		heap.Remove(&m.waiting, r.index)
	} else {
		m.release()
	}
	return ctx.Err()
}

// yield counts what a group ran and passes its core on if the group is done or another is more
// entitled to it. It reports whether the group keeps the core.
func (m *Machine) yield(g *group, ran float64, done bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	g.virtual += ran
	if !done && (len(m.waiting) == 0 || m.waiting[0].virtual >= g.virtual) {
		m.virtual = g.virtual
		return true
	}
	m.release()
	return false
}

// release passes a core on. It is called with m.mu held.
func (m *Machine) release() {
	if len(m.waiting) == 0 {
		m.free++
		return
	}
	r := heap.Pop(&m.waiting).(*runner)
	m.virtual = r.virtual
	close(r.core)
}

// MemoryUsed returns the bytes all containers hold.
func (m *Machine) MemoryUsed() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}
