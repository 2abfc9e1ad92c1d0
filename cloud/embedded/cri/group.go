package cri

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	cfsPeriod = 100 * time.Millisecond // over which the kernel counts a quota
	cfsSlice  = 5 * time.Millisecond   // for which a program keeps a core
	minShares = 2                      // the weight of a container that requests no CPU
)

// errOutOfMemory is what Memory.Add returns to a program that is about to be killed.
var errOutOfMemory = errors.New("cannot allocate memory")

// group is the control group of a container. It implements kit.CPU and kit.Memory.
type group struct {
	machine *Machine
	onOOM   func() // kills the container

	virtual float64 // protected by machine.mu

	mu      sync.Mutex
	limits  limits
	period  time.Time     // start of the current period
	waited  time.Time     // start of the last period whose end somebody waited for
	spent   time.Duration // quota used in it
	stats   groupStats
	marked  groupStats // stats when there began to be load
	before  groupStats // what was used before the stats begin
	samples [2]sample  // of used, for its rate
	memory  int64
	held    int64                           // the part of memory that no program holds
	swell   func() float64                  // how many times what it needs the main program shows; nil is once
	epoch   uint64                          // counts main programs
	calls   func(call string) syscall.Errno // decides which calls fail; nil is none
	dead    bool
	nextCPU chan struct{} // closed when limits change
}

// limits are what a container may use.
type limits struct {
	quota  time.Duration // CPU time a period; 0 is unlimited
	shares int64
	memory int64 // bytes; 0 is unlimited
}

type groupStats struct {
	used             time.Duration
	periods          uint64
	throttledPeriods uint64
	throttled        time.Duration
	oomKills         uint64
}

func newGroup(m *Machine, l limits, onOOM func()) *group {
	g := &group{machine: m, onOOM: onOOM, nextCPU: make(chan struct{})}
	g.setLimits(l)
	return g
}

func (g *group) setLimits(l limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l.shares = max(l.shares, minShares)
	g.limits = l
	close(g.nextCPU)
	g.nextCPU = make(chan struct{})
}

// Use implements kit.CPU.
func (g *group) Use(ctx context.Context, d time.Duration) error {
	running := false // on a core
	for d > 0 {
		slice, wait, changed := g.take(d)
		if slice == 0 {
			if running {
				g.machine.yield(g, 0, true)
				running = false
			}
			if err := g.throttle(ctx, wait, changed); err != nil {
				return err
			}
			continue
		}
		if !running {
			if err := g.machine.acquire(ctx, g); err != nil {
				return err
			}
		}
		err := sleep(ctx, slice)
		d -= slice
		running = g.machine.yield(g, slice.Seconds()/float64(g.shares()), d <= 0 || err != nil)
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (g *group) shares() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limits.shares
}

// take reserves up to d of this period's quota. If there is none left it returns how long the
// period still lasts.
func (g *group) take(d time.Duration) (slice, wait time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if end := g.period.Add(cfsPeriod); !now.Before(end) {
		g.period, g.spent = now, 0
		g.stats.periods++
	}
	slice = min(d, cfsSlice)
	if q := g.limits.quota; q > 0 {
		slice = min(slice, q-g.spent)
		if slice <= 0 {
			return 0, g.period.Add(cfsPeriod).Sub(now), g.nextCPU
		}
	}
	g.spent += slice
	g.stats.used += slice
	return slice, 0, nil
}

// throttle waits for the period to end. The first that does counts: a period is throttled once.
func (g *group) throttle(ctx context.Context, wait time.Duration, changed <-chan struct{}) error {
	start := time.Now()
	g.mu.Lock()
	first := !g.waited.Equal(g.period)
	g.waited = g.period
	g.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	var err error
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if first {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stats.throttled += time.Since(start)
		g.stats.throttledPeriods++
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cpuInfo and memoryInfo are the two faces of a group that a program sees.
type (
	groupCPU    struct{ *group }
	groupMemory struct {
		*group
		epoch uint64
	}
)

// ledger returns the memory of the programs that run now.
func (g *group) ledger() groupMemory {
	g.mu.Lock()
	defer g.mu.Unlock()
	return groupMemory{g, g.epoch}
}

func (g groupCPU) Info() kit.CPUInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	lived := g.lived()
	return kit.CPUInfo{
		Cores: g.machine.Cores, Limit: float64(g.limits.quota) / float64(cfsPeriod),
		Used: lived.used, Throttled: lived.throttled,
	}
}

func (g groupMemory) Info() kit.MemoryInfo {
	g.mu.Lock()
	defer g.mu.Unlock()
	return kit.MemoryInfo{Total: g.machine.Memory, Limit: g.limits.memory, Used: g.shown()}
}

// swellBy says how many times the memory that its programs have stated the group shows.
func (g *group) swellBy(f func() float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.swell = f
}

// shown is the memory of the group as others see it. What a program has stated is what decides whether it is killed:
// what it shows besides could be given back. It is called with g.mu held.
func (g *group) shown() int64 {
	if g.swell == nil {
		return g.memory
	}
	extra := float64(g.memory-g.held) * (g.swell() - 1)
	if l := g.limits.memory; l > 0 {
		extra = min(extra, float64(l-g.memory)/2)
	}
	return int64(past.Pages(float64(g.memory) + max(0, extra)))
}

// Add implements kit.Memory.
func (g groupMemory) Add(n int64) error {
	g.mu.Lock()
	calls, gone := g.calls, g.epoch != g.group.epoch
	g.mu.Unlock()
	switch {
	case gone && n <= 0: // It was given back with the program.
		return nil
	case gone:
		return errOutOfMemory
	case calls != nil && n > 0:
		if errno := calls("mmap"); errno != 0 {
			return os.NewSyscallError("mmap", errno)
		}
	}
	return g.grow(func() int64 { return max(n, g.held-g.memory) })
}

// hold sets how much memory is held by nobody.
func (g *group) hold(total int64) {
	_ = g.grow(func() int64 { // If it fails the container is killed.
		n := total - g.held
		g.held = total
		return n
	})
}

// grow adds what by returns, with the group locked, to the group's memory.
func (g *group) grow(by func() int64) error {
	m := g.machine
	m.mu.Lock()
	g.mu.Lock()
	if g.dead {
		g.mu.Unlock()
		m.mu.Unlock()
		return errOutOfMemory
	}
	n := by()
	over := n > 0 && (g.limits.memory > 0 && g.memory+n > g.limits.memory || m.used+n > m.Memory)
	if !over {
		g.memory += n
		m.used += n
	} else {
		g.stats.oomKills++
	}
	g.mu.Unlock()
	m.mu.Unlock()
	if over {
		g.onOOM()
		return errOutOfMemory
	}
	return nil
}

// onCall sets what decides which calls fail.
func (g *group) onCall(f func(call string) syscall.Errno) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = f
}

// renew gives back the memory of the programs that ran; what they still state is not counted.
func (g *group) renew() {
	g.machine.mu.Lock()
	defer g.machine.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.dead {
		g.machine.used -= g.memory - g.held
		g.memory = g.held
	}
	g.epoch++
}

// end gives the memory back. The group's figures stay readable.
func (g *group) end() {
	g.machine.mu.Lock()
	defer g.machine.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.machine.used -= g.memory
	g.memory, g.dead = 0, true
}
