package box

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"time"
)

const (
	// maxMemory is how much a command may add to the memory of the process, in bytes. Its tools run
	// in it, and "yes | sort" must not end the lab.
	maxMemory = 512 << 20
	// memoryPeriod is how often that is looked at.
	memoryPeriod = 20 * time.Millisecond
)

var errTooLarge = errors.New("the command takes too much memory")

// watchMemory calls stop when the process holds so much more than now. The channel is closed when it
// no longer watches, which is when ctx ends.
func watchMemory(ctx context.Context, most uint64, stop func()) <-chan struct{} {
	start := heap()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(memoryPeriod)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if heap() <= start+most {
					continue
				}
				runtime.GC() // What others left for it does not count.
				if heap() > start+most {
					stop()
					return
				}
			}
		}
	}()
	return done
}

// heap is how much memory the objects of the process take.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
