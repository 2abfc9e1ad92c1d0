package session

import (
	"testing"
	"time"
)

func TestHunger(t *testing.T) {
	start := time.Now()
	var ran, waited time.Duration
	h := hunger{read: func() (time.Duration, time.Duration) { return ran, waited }}
	at := func(seconds int, r, w time.Duration, want float64) {
		t.Helper()
		ran, waited = r*time.Second, w*time.Second
		if got := h.waited(start.Add(time.Duration(seconds) * time.Second)); got != want {
			t.Errorf("after %d s it waited %v, want %v", seconds, got, want)
		}
	}
	at(0, 10, 90, 0) // What was before the first look is nobody's.
	at(2, 12, 90, 0)
	at(4, 13, 93, 0.5)
	at(5, 13, 93, 0.5)
	at(10, 14, 96, 0.75)  // Only the last five seconds count.
	at(15, 18, 96, 0)     // It is over.
	at(16, 9, 80, 0)      // Threads have ended.
	at(40, 9, 80, 0)      // It had nothing to do.
	at(41, 10, 83, 0.75)  // And is hungry again.
	at(100, 13, 84, 0.25) // One sample before the window is kept.
}

// The kernel counts what this process runs.
func TestProcessTimes(t *testing.T) {
	first, _ := processTimes()
	if first == 0 {
		t.Skip("this system does not count it")
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if now, _ := processTimes(); now > first {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the process has run for a minute, and nothing was counted")
		}
	}
}
