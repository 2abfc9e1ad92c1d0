package cri

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// took runs f in virtual time and returns how long it lasted.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestQuotaThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(4, 1<<30), limits{quota: 20 * time.Millisecond}, nil)
		// A fifth of a core: 100 ms of work fill five periods, the last one without waiting for its end.
		if d := took(func() { g.Use(t.Context(), 100*time.Millisecond) }); d != 420*time.Millisecond {
			t.Errorf("100 ms of work at 0.2 cores took %v", d)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.stats.used != 100*time.Millisecond || g.stats.throttled != 320*time.Millisecond || g.stats.throttledPeriods != 4 {
			t.Errorf("%+v", g.stats)
		}
	})
}

// However many wait for the next period, it is one period in which a container was throttled.
func TestManyAreThrottledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(4, 1<<30), limits{quota: 20 * time.Millisecond}, nil)
		lasted := took(func() {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() { g.Use(t.Context(), 20*time.Millisecond) })
			}
			all.Wait()
		})
		g.mu.Lock()
		defer g.mu.Unlock()
		if s := g.stats; s.throttledPeriods == 0 || s.throttledPeriods > s.periods || s.throttled == 0 || s.throttled > lasted {
			t.Errorf("in %v: %+v", lasted, s)
		}
	})
}

func TestNoLimitNoThrottling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(4, 1<<30), limits{}, nil)
		if d := took(func() { g.Use(t.Context(), time.Second) }); d != time.Second {
			t.Errorf("a second of work took %v", d)
		}
	})
}

func TestParallelWorkSharesTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(8, 1<<30), limits{quota: 100 * time.Millisecond}, nil)
		d := took(func() {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { g.Use(t.Context(), 250*time.Millisecond) })
			}
			wg.Wait()
		})
		if d < 900*time.Millisecond || d > time.Second {
			t.Errorf("a second of work in four threads at one core took %v", d)
		}
	})
}

func TestCoresAreSharedByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(1, 1<<30)
		heavy, light := newGroup(m, limits{shares: 3000}, nil), newGroup(m, limits{shares: 1000}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for _, g := range []*group{heavy, light} {
			wg.Go(func() { g.Use(ctx, time.Hour) })
		}
		wg.Wait()
		ratio := float64(heavy.stats.used) / float64(light.stats.used)
		if ratio < 2.8 || ratio > 3.2 {
			t.Errorf("the heavy one got %v, the light one %v", heavy.stats.used, light.stats.used)
		}
		if m.free != 1 || len(m.waiting) != 0 {
			t.Errorf("%d cores free, %d waiting", m.free, len(m.waiting))
		}
	})
}

func TestRaisedLimitWakesTheThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(1, 1<<30), limits{quota: time.Millisecond}, nil)
		time.AfterFunc(50*time.Millisecond, func() { g.setLimits(limits{}) })
		if d := took(func() { g.Use(t.Context(), 100*time.Millisecond) }); d != 149*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

func TestMemoryLedger(t *testing.T) {
	m := NewMachine(1, 100)
	killed := 0
	a := newGroup(m, limits{memory: 60}, func() { killed++ }).ledger()
	b := newGroup(m, limits{}, func() { killed++ }).ledger()
	for _, step := range []struct {
		g    groupMemory
		add  int64
		want error
	}{{a, 50, nil}, {a, 20, errOutOfMemory}, {a, -30, nil}, {b, 80, nil}, {b, 1, errOutOfMemory}, {a, -1000, nil}, {b, 20, nil}} {
		if err := step.g.Add(step.add); !errors.Is(err, step.want) {
			t.Errorf("add %d: %v, want %v", step.add, err, step.want)
		}
	}
	if killed != 2 || m.MemoryUsed() != 100 {
		t.Errorf("%d kills, %d bytes used", killed, m.MemoryUsed())
	}
	b.end()
	if m.MemoryUsed() != 0 || b.Add(1) == nil {
		t.Errorf("%d bytes used after the end", m.MemoryUsed())
	}
}

func TestCPURate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(NewMachine(4, 1<<30), limits{}, nil)
		g.sampleFrom(time.Now())
		rate := func() float64 {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.rate(time.Now())
		}
		g.Use(t.Context(), time.Second)
		time.Sleep(time.Second)
		if r := rate(); r != 0.5 {
			t.Errorf("half busy for two seconds is %v", r)
		}
		time.Sleep(time.Minute)
		rate()
		time.Sleep(time.Minute)
		if r := rate(); r != 0 {
			t.Errorf("idle for a minute is %v", r)
		}
	})
}
