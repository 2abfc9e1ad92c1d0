package past_test

import (
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit/past"
)

// TestSwell holds that the memory of a process grows with its age, a little, that it is not even, that it has no steps,
// and that two processes differ.
func TestSwell(t *testing.T) {
	const day = 24 * time.Hour
	if x := past.Swell("shop/front", 0); x != 1 {
		t.Errorf("a new process holds %v of what it needs", x)
	}
	up, down, differ := 0, 0, 0
	for age := time.Duration(0); age < day; age += 5 * time.Second {
		x, y := past.Swell("shop/front", age), past.Swell("shop/front", age+5*time.Second)
		if x < 1 || x > 1.1 {
			t.Fatalf("at %v it is %v", age, x)
		}
		if step := y - x; step > 0.003 || step < -0.003 {
			t.Fatalf("at %v it changes by %v in five seconds", age, step)
		} else if step > 0 {
			up++
		} else {
			down++
		}
		if past.Swell("shop/back", age) != x {
			differ++
		}
	}
	if up < 1000 || down < 1000 || differ < 10_000 {
		t.Errorf("it goes up %d times and down %d times, and differs %d times from another", up, down, differ)
	}
	young, old := mean(time.Minute, 20*time.Minute), mean(day, day+6*time.Hour)
	if old-young < 0.03 {
		t.Errorf("it grows from %v to %v", young, old)
	}
}

// mean is how much a process swells between two ages, on average.
func mean(from, to time.Duration) (sum float64) {
	for i := range 100 {
		sum += past.Swell("shop/front", from+(to-from)*time.Duration(i)/100) / 100
	}
	return sum
}
