package session

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

// showTime is how long most faults take to show at most, on a machine that is not too busy: some show
// by a question that nobody answers for two seconds. slow are the kinds that take longer.
const showTime = 3 * time.Second

var slow = map[string]time.Duration{}

// turnDelay is when the agent's turn begins after the injection has: a moment that is drawn, and later
// than the problem's faults usually take to show. It is the same for a problem and for its healthy
// twin, because an agent can see in the telemetry how long the load has gone on. Where the task says
// that there is a fault, nobody has to wait.
func turnDelay(p *problem.Problem, seed uint64) time.Duration {
	if p.Task != problem.Detection {
		return 0
	}
	d := showTime
	for _, f := range p.Document.Faults {
		d = max(d, slow[f.Kind])
	}
	draw := rand.New(rand.NewPCG(seed, 0x7475726e))
	return d + time.Duration(draw.Int64N(int64(d/2)))
}

// holdTurn brings the faults about, and returns when that is done and the agent's turn may begin.
func holdTurn(ctx context.Context, delay time.Duration, inject func(context.Context) error) error {
	begin := time.Now()
	if err := inject(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(delay - time.Since(begin)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
