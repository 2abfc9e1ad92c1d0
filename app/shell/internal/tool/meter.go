package tool

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/app/kit"
)

// What things cost on the processor of the model. Roughly those of a server of today, so that a busy
// loop in a container shows as a busy core without being one of the host's.
const (
	byteCost     = time.Nanosecond
	meterQuantum = 2 * time.Millisecond
)

// Meter states the processor time that a program uses. It saves small amounts up, since each
// statement may have to wait. The zero value states nothing.
type Meter struct {
	CPU  kit.CPU
	owed time.Duration
}

// Spend adds to the time used. It fails when the context ends.
func (m *Meter) Spend(ctx context.Context, d time.Duration) error {
	if m.owed += d; m.owed < meterQuantum || m.CPU == nil {
		return nil
	}
	owed := m.owed
	m.owed = 0
	return m.CPU.Use(ctx, owed)
}
