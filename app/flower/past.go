package flower

import (
	"context"
	"hash/fnv"
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

// learnt is how a run usually goes, round by round, and what a party loses on its own pictures.
var learnt = [usualRounds]struct{ loss, accuracy, own float64 }{
	{1.06, 0.66, 0.018}, {0.34, 0.92, 0.0065}, {0.12, 0.975, 0.0045},
}

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
	tell(p, linesOf(list))
	return nil
}

// recall says what was logged of the rounds of the past.
func (a *serverapp) recall(_ context.Context, p *past.Past, r *rand.Rand) error {
	tell(p, roundsOf(runsBefore(p, r)))
	return nil
}

// recall says what was logged of a party's training in the past.
func (c *clientapp) recall(_ context.Context, p *past.Past, r *rand.Rand) error {
	t, err := readTask(c.s.Env)
	if err != nil {
		return err
	}
	runs := runsBefore(p, r)
	own := fnv.New64a()
	_, _ = own.Write([]byte(c.s.Env.Hostname)) // It never fails.
	tell(p, trainingsOf(runs, t.Pictures, rand.New(rand.NewPCG(p.Seed, own.Sum64()))))
	return nil
}

// said is a line and when it was logged.
type said struct {
	at   time.Time
	text string
}

// tell adds lines to the log of a program that has one, the last line first.
func tell(p *past.Past, lines []said) {
	for _, x := range lines {
		if p.Log == nil || !p.Log(x.at, x.text) {
			return
		}
	}
}

// linesOf are what the superlink logged of runs, the last line first.
func linesOf(runs []*flowerpb.Run) (list []said) {
	for _, r := range runs {
		list = append(list,
			saidAt(time.UnixMilli(r.PendingAt), func(l *slog.Logger, at time.Time) { logStarted(l, at, r) }),
			saidAt(time.UnixMilli(r.FinishedAt), func(l *slog.Logger, at time.Time) { logFinished(l, at, r) }))
	}
	return lastFirst(list)
}

// roundsOf are what the server app logged of runs, the last line first.
func roundsOf(runs []*flowerpb.Run) (list []said) {
	for _, r := range runs {
		for i, round := range r.Rounds {
			list = append(list, saidAt(roundAt(r, i),
				func(l *slog.Logger, at time.Time) { logRound(l, at, r.RunId, round) }))
		}
		list = append(list, saidAt(time.UnixMilli(r.FinishedAt).Add(-time.Millisecond),
			func(l *slog.Logger, at time.Time) { logCompleted(l, at, r) }))
	}
	return lastFirst(list)
}

// trainingsOf are what a party's client app logged of runs, the last line first.
func trainingsOf(runs []*flowerpb.Run, pictures int, r *rand.Rand) (list []said) {
	for _, run := range runs {
		for i := range run.Rounds {
			loss := learnt[i].own * (0.6 + 0.8*r.Float64())
			at := roundAt(run, i).Add(-averagingCost - time.Duration(1+r.IntN(8))*time.Millisecond)
			list = append(list, saidAt(at,
				func(l *slog.Logger, at time.Time) { logTrained(l, at, run.RunId, pictures, loss) }))
		}
	}
	return lastFirst(list)
}

// roundAt is when the ith round of a run of the past was over: each took as long.
func roundAt(r *flowerpb.Run, i int) time.Time {
	took := time.Duration(r.FinishedAt-r.PendingAt) * time.Millisecond
	return time.UnixMilli(r.PendingAt).Add(took * time.Duration(i+1) / time.Duration(len(r.Rounds)+1))
}

func saidAt(at time.Time, log func(*slog.Logger, time.Time)) said {
	return said{at, service.Logged(func(l *slog.Logger) { log(l, at) })}
}

func lastFirst(list []said) []said {
	slices.SortStableFunc(list, func(a, b said) int { return b.at.Compare(a.at) })
	return list
}
