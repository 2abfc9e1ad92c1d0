package cri

import (
	"context"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// What interpreted commands of all containers may use of the real machine: half a core in the long
// run, which leaves the rest to the applications and their users, and some seconds at once.
const (
	burnShare = 0.5
	burnBurst = 3 * time.Second
	burnWait  = time.Second // at most at a time
)

var _ kit.Burner = groupCPU{}

// burned is what they have used lately.
var burned burner

// burner is a bucket that leaks.
type burner struct {
	mu   sync.Mutex
	debt time.Duration
	at   time.Time
}

// add counts d and returns how long whoever used it has to wait.
func (b *burner) add(d time.Duration, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.debt = max(0, b.debt-time.Duration(burnShare*float64(now.Sub(b.at)))) + d
	b.at = now
	return min(burnWait, max(0, time.Duration(float64(b.debt-burnBurst)/burnShare)))
}

// Burn implements kit.Burner.
func (groupCPU) Burn(ctx context.Context, d time.Duration) error {
	if wait := burned.add(d, time.Now()); wait > 0 {
		return sleep(ctx, wait)
	}
	return nil
}
