package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
)

// withMemory is a machine with so much memory to be had.
func withMemory(bytes int64) fstest.MapFS {
	return fstest.MapFS{"proc/meminfo": {Data: fmt.Appendf(nil, "MemAvailable: %d kB\n", bytes>>10)}}
}

// The defaults are of what this process may use, not of the machine.
func TestUsual(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, test := range []struct {
		memory            int64
		workers, sessions int
	}{
		{1, 1, 1},
		{2 * usualMemory, 2, 2},
		{8 * sessionMemory, 3, 8},
		{1 << 40, 3, 3 * sessionsForProcessor},
	} {
		root := withMemory(test.memory)
		if w, s := usualWorkers(root, 0), usualSessions(root); w != test.workers || s != test.sessions {
			t.Errorf("%d MB: %d runs and %d sessions, want %d and %d", test.memory>>20, w, s, test.workers, test.sessions)
		}
	}
	if w, s := usualWorkers(fstest.MapFS{}, 2), usualSessions(fstest.MapFS{}); w != 3 || s != 3*sessionsForProcessor {
		t.Errorf("if the memory is not known: %d runs and %d sessions", w, s)
	}
	if w := usualWorkers(withMemory(4*usualMemory), 2); w != 2 {
		t.Errorf("%d runs beside two prepared ones, with memory for four", w)
	}
}

// What is being set up has yet to take its memory.
func TestRoomForMore(t *testing.T) {
	for _, test := range []struct {
		memory  int64
		growing int
		want    bool
	}{
		{usualMemory - 1<<10, 0, false},
		{usualMemory, 0, true},
		{usualMemory, 1, false},
		{2 * usualMemory, 2, true},
		{2 * usualMemory, 3, false},
	} {
		if got := roomForMore(withMemory(test.memory), test.growing); got != test.want {
			t.Errorf("%d MB, %d growing: %v", test.memory>>20, test.growing, got)
		}
	}
	if !roomForMore(fstest.MapFS{}, 100) {
		t.Error("where nobody knows there is no room")
	}
}

// Environments of a server are set up as memory allows, one after another, and none is refused for it. The only one is
// set up in any case, and who is cancelled while it waits leaves no place taken.
func TestEnvironmentsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		free, growth := 0, []int{}
		p := &processes{setups: make(chan struct{}, 2), room: func(growing int) bool {
			mu.Lock()
			defer mu.Unlock()
			growth = append(growth, growing)
			return free > 0
		}}
		log, settled := slog.New(slog.DiscardHandler), make(chan func(), 8)
		ctx, cancel := context.WithCancel(t.Context())
		queueUp := func(ctx context.Context) {
			give, err := p.queueUp(ctx, log)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				give = nil
			}
			settled <- give
		}
		go queueUp(t.Context())
		(<-settled)() // The first one, which is alone, is set up.
		go queueUp(t.Context())
		go queueUp(ctx)
		synctest.Wait()
		if len(settled) > 0 {
			t.Error("an environment is set up without memory for it")
		}
		cancel()
		if give := <-settled; give != nil {
			t.Error("who was cancelled is set up")
		}
		mu.Lock()
		free = 1
		mu.Unlock()
		give := <-settled // A look later.
		if give == nil || p.up != 2 {
			t.Errorf("%d are up", p.up)
		}
		give()
		give() // It may be given back more than once.
		p.leave()
		p.leave()
		if len(p.setups) > 0 || p.up != 0 || len(growth) < 3 || growth[0] > 1 {
			t.Errorf("%d are being set up, %d are up, beside %v", len(p.setups), p.up, growth)
		}
	})
}
