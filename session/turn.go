package session

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

// showTime is how long faults take to show, on a machine that is not too busy: most a second, some two
// and a little, because they show by a question that nobody answers for so long.
const showTime = 3 * time.Second

// turnDelay is when the agent's turn begins after the injection has: a moment that is drawn, and later
// than faults take to show. It does not depend on whether there is a fault, because an agent can see in
// the telemetry how long the load has gone on. Where the task says that there is one, nobody has to
// wait.
func turnDelay(p *problem.Problem, seed uint64) time.Duration {
	if !p.Asks(problem.Detection) {
		return 0
	}
	draw := rand.New(rand.NewPCG(seed, 0x7475726e))
	// What grows shows before it is half grown.
	return showTime + p.Document.Ramp()/2 + time.Duration(draw.Int64N(int64(showTime/2)))
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
