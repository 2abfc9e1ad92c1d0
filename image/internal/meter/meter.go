// Package meter adds up the CPU time of operations that are too short to be charged to their container one by one.
package meter

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// quantum is how much is stated at once. Stating less would cost more than it models.
const quantum = time.Millisecond

// Meter adds costs up. It may be used concurrently.
type Meter struct {
	cpu  kit.CPU
	debt atomic.Int64 // nanoseconds not stated yet
}

// New returns a meter of a container's CPU.
func New(cpu kit.CPU) *Meter { return &Meter{cpu: cpu} }

// Spend adds a cost. From time to time it charges the sum to the container, and waits as long as the container's
// quota demands.
func (m *Meter) Spend(ctx context.Context, d time.Duration) error {
	if m.debt.Add(int64(d)) < int64(quantum) {
		return nil
	}
	if all := m.debt.Swap(0); all > 0 {
		return m.cpu.Use(ctx, time.Duration(all))
	}
	return nil
}
