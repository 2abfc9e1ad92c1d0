package flower

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// startRate is how many runs users start in a second, about, and usualRounds how many rounds they have.
const startRate, usualRounds = 0.5, 3

// learnt is how a run usually goes, round by round.
var learnt = [usualRounds]struct{ loss, accuracy float64 }{{1.06, 0.66}, {0.34, 0.92}, {0.12, 0.975}}

// runsBefore draws the runs of the past, the first one first.
func runsBefore(p *past.Past, r *rand.Rand) (list []*flowerpb.Run) {
	times := p.Fade(r, p.Began, startRate, service.Grown)
	slices.Reverse(times)
	for _, t := range times {
		took := time.Duration(300+r.IntN(500)) * time.Millisecond
		run := &flowerpb.Run{
			RunId: r.Uint64()>>1 | 1<<62, NumRounds: usualRounds, Status: completed,
			PendingAt: t.UnixMilli(), FinishedAt: t.Add(took).UnixMilli(),
		}
		for i, l := range learnt {
			run.Rounds = append(run.Rounds, &flowerpb.Round{
				Number: int32(i + 1), Loss: l.loss * (0.8 + 0.4*r.Float64()), Results: parties,
				Accuracy: math.Round(200*min(1, l.accuracy+0.02*r.NormFloat64())) / 200,
			})
		}
		list = append(list, run)
	}
	return list
}

// recall remembers the runs of the past, and says what was logged of them.
func (l *superlink) recall(_ context.Context, p *past.Past, r *rand.Rand) error {
	list := runsBefore(p, r)
	l.mu.Lock()
	l.runs = slices.Concat(list, l.runs)
	if extra := len(l.runs) - maxRuns; extra > 0 {
		l.runs = slices.Delete(l.runs, 0, extra)
	}
	l.mu.Unlock()
	for _, run := range slices.Backward(list) {
		at := time.UnixMilli(run.FinishedAt)
		if p.Log == nil || !p.Log(at, finishedLine(at, run)) {
			break
		}
	}
	return nil
}

// finishedLine is what was logged of a run.
func finishedLine(at time.Time, r *flowerpb.Run) string {
	return service.Logged(func(log *slog.Logger) { logFinished(log, at, r) })
}

// logFinished logs the end of a run, from one place for all times.
func logFinished(log *slog.Logger, at time.Time, r *flowerpb.Run) {
	level := slog.LevelInfo
	if r.Status == failed {
		level = slog.LevelWarn
	}
	args := []any{"run", r.RunId, "status", r.Status, "rounds", fmt.Sprintf("%d/%d", len(r.Rounds), r.NumRounds)}
	if r.Details != "" {
		args = append(args, "details", r.Details)
	}
	service.LogAt(log, level, at, "Run finished", args...)
}
