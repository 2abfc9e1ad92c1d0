package past

import (
	"hash/fnv"
	"math"
	"time"
)

const (
	// swollen is how much more memory than it needs an old process holds, and swelling how long it takes to get there.
	swollen  = 0.05
	swelling = 4 * time.Hour
	// uneven is since when the memory of a process goes up and down.
	uneven = 10 * time.Minute
)

// Swell is how many times the memory that it needs a process holds which has run for a while. Its runtime gives memory
// back late, so it grows, ever more slowly, is never quite even, and begins anew with the process. Who shows the memory
// of now and who makes up that of the past use the same curve, so it reads alike before and after a join.
func Swell(who string, age time.Duration) float64 {
	if age <= 0 {
		return 1
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(who)) // It never fails.
	seed := h.Sum64()
	noise := 0.018 + 0.012*Noise(seed, age, 17*time.Minute) + 0.006*Noise(seed+1, age, 90*time.Second)
	return 1 + swollen*(1-math.Exp(-age.Hours()/swelling.Hours())) + noise*min(1, age.Seconds()/uneven.Seconds())
}

// page is what memory is counted in, in bytes.
const page = 4096

// Pages is an amount of memory as a kernel counts it.
func Pages(bytes float64) float64 { return math.Floor(bytes/page) * page }
