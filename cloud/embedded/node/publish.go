package node

import (
	"sync"
	"time"
)

// publishDelay is for how long the status of a pod that is being started may wait for a better one.
const publishDelay = 50 * time.Millisecond

// publication is a status that will be out of date soon. A pod that starts in a few milliseconds need
// not tell the API first that it is about to.
type publication struct {
	once  sync.Once
	write func()
	timer *time.Timer
}

// publish writes a status after a moment, unless it is dropped before.
func publish(write func()) *publication {
	p := &publication{write: write}
	p.timer = time.AfterFunc(publishDelay, func() { p.once.Do(p.write) })
	return p
}

// now writes it, if nobody has.
func (p *publication) now() {
	p.timer.Stop()
	p.once.Do(p.write)
}

// drop forgets it. When it returns, it is written or never will be.
func (p *publication) drop() {
	p.timer.Stop()
	p.once.Do(func() {})
}
