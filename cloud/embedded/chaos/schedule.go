package chaos

import (
	"time"

	"github.com/aiopslab/aiopslab/cloud"
)

// A gradual disturbance grows in steps: as many as anybody could tell apart, but not more often than
// is worth the trouble.
const (
	rampSteps   = 50
	minRampStep = 100 * time.Millisecond
)

// degreeAt returns to which degree, 0 to 1, a disturbance has effect some time after it began, and
// after which time that changes; 0 is never.
func degreeAt(s cloud.Schedule, elapsed time.Duration) (degree float64, change time.Duration) {
	return s.At(elapsed, max(s.Ramp/rampSteps, minRampStep))
}
