package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world"
)

// DefaultLived is how long an application is used before a run, in a cloud that can be given no past.
const DefaultLived = time.Minute

// past sees to it that the application has a past, and returns which. One that can be written was, when it was put
// under load.
func (l *Local) past(ctx context.Context) (record.Past, error) {
	if _, ok := l.Cloud.(cloud.Historian); ok {
		return record.Past{Made: record.PastWritten, Days: int(world.Age(l.setting.Seed) / (24 * time.Hour))}, nil
	}
	if l.setting.Lived <= 0 {
		return record.Past{Made: record.PastNone}, nil
	}
	l.phase(fmt.Sprintf("letting users have it for %v", l.setting.Lived))
	begin := time.Now()
	if err := l.live(ctx, begin.Add(l.setting.Lived)); err != nil {
		return record.Past{}, fmt.Errorf("give the application a past: %w", err)
	}
	return record.Past{Made: record.PastLived, Seconds: time.Since(begin).Round(time.Millisecond).Seconds()}, nil
}

// live has the application be used until a time, and until it is well and quiet. Meanwhile the same goes on in it as
// will when there are faults, another release among it: so what is young, was written lately or has several revisions
// tells no more of a fault than it does in a past that was written.
func (l *Local) live(ctx context.Context, until time.Time) (err error) {
	l.life = l.newLife(rand.New(rand.NewPCG(l.setting.Seed, 0x6c69766564)).Uint64())
	defer l.calm(ctx) // if it fails half-way
	if err := l.life.Release(ctx, nil); err != nil {
		return err
	}
	if err := l.life.Go(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(until)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.calm(ctx)
	if l.baseline, err = l.stage.awaitHealth(ctx, minCovered, minCovered); err != nil {
		return err
	}
	l.baseline, err = l.stage.hush(ctx, l.setting.Problem.Load(), l.baseline, l.awaitsAlert("before"))
	return err
}

// awaitsAlert tells that an alert is waited for which is left from something.
func (l *Local) awaitsAlert(from string) func(alert string) {
	return func(alert string) {
		l.phase(fmt.Sprintf("waiting until no alert is left from %s, such as %s", from, alert))
	}
}
