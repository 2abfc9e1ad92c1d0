package text

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// awkTick is how often a program is made to state the processor time it uses.
const awkTick = 5 * time.Millisecond

// pacedContext is how an awk program is slowed down to what its container may use. The interpreter
// looks at the channel of its context now and then; a tick on it makes it ask for the error, and wait
// there. When the context ends, the channel is closed, as others are.
type pacedContext struct {
	context.Context
	ticks chan struct{}
	meter *tool.Meter
	since time.Time
}

func (p *pacedContext) Done() <-chan struct{} { return p.ticks }

// Err is called by the interpreter alone.
func (p *pacedContext) Err() error {
	used := min(time.Since(p.since), 2*awkTick)
	if err := p.meter.Spend(p.Context, used); err != nil {
		return err
	}
	p.since = time.Now()
	return p.Context.Err()
}

// pace returns a context for the interpreter. stop must be called after it.
func pace(ctx context.Context, c *tool.Call) (paced context.Context, stop func()) {
	p := &pacedContext{Context: ctx, ticks: make(chan struct{}), meter: &tool.Meter{CPU: c.Env.CPU}, since: time.Now()}
	over := make(chan struct{})
	go func() {
		t := time.NewTicker(awkTick)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-over:
				return
			case <-ctx.Done():
				close(p.ticks)
				return
			}
			select {
			case p.ticks <- struct{}{}:
			case <-over:
				return
			case <-ctx.Done():
				close(p.ticks)
				return
			}
		}
	}()
	return p, func() { close(over) }
}
