package cri

import (
	"testing"
	"time"
)

// TestBurning lets one use the machine for a while, and then half of a core.
func TestBurning(t *testing.T) {
	var b burner
	now := time.Now()
	used := time.Duration(0)
	for start := now; now.Sub(start) < time.Minute; {
		now = now.Add(10 * time.Millisecond)
		used += 10 * time.Millisecond
		now = now.Add(b.add(10*time.Millisecond, now))
	}
	if used < 30*time.Second || used > 38*time.Second {
		t.Errorf("%v of a minute were used, want half of it and a burst", used)
	}
	if wait := b.add(time.Millisecond, now.Add(time.Minute)); wait != 0 {
		t.Errorf("a wait of %v after a pause", wait)
	}
}
