package box

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"time"
)

// maxGoroutines is how many a command may have at work in the shell's process.
const maxGoroutines = 50_000

var errTooLarge = errors.New("the command takes too much memory")

// watchMemory calls stop when the process holds so much more than now. The channel is closed when it
// no longer watches, which is when ctx ends.
func watchMemory(ctx context.Context, most uint64, stop func()) <-chan struct{} {
	start := held()
	tooLarge := func() bool { return held() > start+most || runtime.NumGoroutine() > maxGoroutines }
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(watchPeriod)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if !tooLarge() {
					continue
				}
				runtime.GC() // What others left for it does not count.
				if tooLarge() {
					stop()
					return
				}
			}
		}
	}()
	return done
}

// held is how much memory the objects and the stacks of the process take.
func held() (sum uint64) {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() == metrics.KindUint64 {
			sum += s[i].Value.Uint64()
		}
	}
	return sum
}
