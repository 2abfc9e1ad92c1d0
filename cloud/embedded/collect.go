package embedded

import (
	"runtime/debug"
	"sync"
	"time"
)

const (
	// gcPercent favours memory over time, from the start: a lazier collector would save a tenth of
	// its CPU time, and leave the heap in pieces that can never be given back.
	gcPercent = 75
	// hurriedPercent is for while a cluster is made ready for a run. Most of what that makes stays, so there is
	// little to collect, and somebody waits for it.
	hurriedPercent = 250
	// longestHurry is how long that goes on if nobody says that it is over.
	longestHurry = 10 * time.Second
)

// collector sets how eagerly memory is collected, which is one setting for the whole process. The zero value is ready.
type collector struct {
	mu     sync.Mutex
	timer  *time.Timer // ends the hurry; nil for none
	before int         // what the percentage was
}

// hurry has memory be collected lazily until rest is called, for some seconds at most.
func (c *collector) hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Reset(longestHurry)
		return
	}
	c.before = debug.SetGCPercent(hurriedPercent)
	c.timer = time.AfterFunc(longestHurry, c.rest)
}

// rest has it be collected as usual.
func (c *collector) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer == nil {
		return
	}
	c.timer.Stop()
	c.timer = nil
	debug.SetGCPercent(c.before)
}
