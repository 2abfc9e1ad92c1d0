package box

import (
	"context"
	"sync"
	"time"
)

// clock is a context that ends when a command has taken its time. The time stands still while it is held.
type clock struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	holds int
	left  time.Duration // when the timer was started, or while it is held
	since time.Time     // when it was
	timer *time.Timer
}

// startClock starts a clock. Its cause, when the time is up, is [context.DeadlineExceeded]. It must be stopped.
func startClock(ctx context.Context, d time.Duration) *clock {
	c := &clock{left: d, since: time.Now()}
	c.Context, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(d, func() { c.cancel(context.DeadlineExceeded) })
	return c
}

// Deadline is when the time is up, if it is not held any more.
func (c *clock) Deadline() (time.Time, bool) {
	c.mu.Lock()
	at := c.since.Add(c.left)
	if c.holds > 0 {
		at = time.Now().Add(c.left)
	}
	c.mu.Unlock()
	if outer, ok := c.Context.Deadline(); ok && outer.Before(at) {
		return outer, true
	}
	return at, true
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
	c.cancel(context.Canceled)
}

// hold has the time stand still, until it was released as often as held.
func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds++
	if c.holds == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds == 0 {
		return
	}
	if c.holds--; c.holds == 0 && c.Err() == nil {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}
