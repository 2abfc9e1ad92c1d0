package cloud

import "time"

// At returns to which degree, 0 to 1, a disturbance has effect some time after it began, and after which time that
// changes; 0 is never. What grows does so in steps of the given length.
func (s Schedule) At(elapsed, step time.Duration) (degree float64, change time.Duration) {
	degree = 1
	if elapsed < s.Ramp {
		end := (elapsed/step + 1) * step
		degree, change = min(1, float64(end)/float64(s.Ramp)), end-elapsed
	}
	if s.Every == 0 {
		return degree, change
	}
	at := elapsed % s.Every
	if at >= s.For {
		return 0, s.Every - at
	}
	if left := s.For - at; change == 0 || left < change {
		change = left
	}
	return degree, change
}
