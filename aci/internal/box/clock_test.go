package box

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	up := func(c *clock) bool { return errors.Is(context.Cause(c), context.DeadlineExceeded) }
	synctest.Test(t, func(t *testing.T) {
		c := startClock(t.Context(), 10*time.Second)
		defer c.stop()
		time.Sleep(4 * time.Second)
		c.hold()
		c.hold()
		time.Sleep(time.Hour)
		if left := left(c); left != 6*time.Second {
			t.Errorf("%v are left while it is held", left)
		}
		c.release()
		time.Sleep(time.Hour)
		c.release()
		c.release() // Once more than it was held.
		time.Sleep(5 * time.Second)
		if left := left(c); left != time.Second || c.Err() != nil {
			t.Errorf("%v are left, %v", left, c.Err())
		}
		time.Sleep(2 * time.Second)
		if !up(c) {
			t.Errorf("the time is up, and it ended by %v", context.Cause(c))
		}
		c.hold() // Nothing is to be held any more.
		c.release()
	})
	synctest.Test(t, func(t *testing.T) { // What is around it ends it, held or not.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c := startClock(ctx, 10*time.Second)
		defer c.stop()
		if left := left(c); left != 3*time.Second {
			t.Errorf("%v are left", left)
		}
		c.hold()
		time.Sleep(4 * time.Second)
		if !up(c) {
			t.Errorf("it goes on: %v", context.Cause(c))
		}
	})
	synctest.Test(t, func(t *testing.T) { // One that was stopped starts no timer.
		c := startClock(t.Context(), time.Second)
		c.hold()
		c.stop()
		c.release()
		time.Sleep(2 * time.Second)
		if up(c) {
			t.Error("its time was up after it was stopped")
		}
	})
}

// While somebody is asked, a command has as much time left as before. Both the environment and the shell keep it.
func TestHeld(t *testing.T) {
	b := newTestBox(t)
	done := make(chan Outcome, 1)
	go func() {
		done <- b.Run(t.Context(), "echo >/tmp/begun; for i in $(seq 55); do sleep 0.1; done; echo late", 5*time.Second)
	}()
	for _, err := b.Root().Stat("tmp/begun"); err != nil; _, err = b.Root().Stat("tmp/begun") {
		time.Sleep(10 * time.Millisecond)
	}
	release := b.Hold()
	if o := <-done; o.TimedOut || o.Output != "late\n" {
		t.Errorf("%+v", o)
	}
	release()
	release()
	if o := b.Run(t.Context(), "sleep 0.1; while :; do :; done", 300*time.Millisecond); !o.TimedOut {
		t.Errorf("the next command is held as well: %+v", o)
	}
	b.Hold()() // Nothing runs.
}
