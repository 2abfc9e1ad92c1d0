package vnet

import (
	"sync"
	"time"
)

// deadline is a point in time that can be moved while others wait for it. The zero value never
// expires. It is the structure net.Pipe uses.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	cancel chan struct{} // closed when the deadline has passed; nil until somebody needs it
}

// set moves the deadline; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.cancel // The timer fired; wait until its callback has closed the channel.
	}
	d.timer = nil

	expired := d.cancel != nil && isClosed(d.cancel)
	if t.IsZero() {
		if expired {
			d.cancel = nil
		}
		return
	}
	if d.cancel == nil || expired {
		d.cancel = make(chan struct{})
	}
	cancel := d.cancel
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(cancel) })
		return
	}
	close(cancel)
}

// done is closed once the deadline has passed. A later set may make it stale, so callers fetch it
// anew each time they start to wait.
func (d *deadline) done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel == nil {
		d.cancel = make(chan struct{})
	}
	return d.cancel
}

func (d *deadline) expired() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cancel != nil && isClosed(d.cancel)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
