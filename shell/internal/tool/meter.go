package tool

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// What things cost on the processor of the model. Roughly those of a server of today, so that a busy
// loop in a container shows as a busy core without being one of the host's.
const (
	byteCost     = time.Nanosecond
	meterQuantum = 2 * time.Millisecond
	// maxBurn bounds what counts as real work since the last statement, as a multiple of what is
	// stated: the rest was waiting.
	maxBurn = 4
)

// Meter states the processor time that a program uses. It saves small amounts up, since each
// statement may have to wait. The zero value states nothing.
type Meter struct {
	CPU   kit.CPU
	owed  time.Duration
	since time.Time // when it last stated
}

// Spend adds to the time used. It fails when the context ends.
func (m *Meter) Spend(ctx context.Context, d time.Duration) error {
	if m.owed += d; m.owed < meterQuantum || m.CPU == nil {
		return nil
	}
	owed := m.owed
	m.owed = 0
	if b, ok := m.CPU.(kit.Burner); ok {
		if !m.since.IsZero() {
			if err := b.Burn(ctx, min(time.Since(m.since), maxBurn*owed)); err != nil {
				return err
			}
		}
		defer func() { m.since = time.Now() }()
	}
	return m.CPU.Use(ctx, owed)
}
