package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/noise"
)

// HandOver says when the agent's turn begins: [AtFault], [AtAlert], or so long after the injection, as
// "90s". Empty is AtAlert for incidents and AtFault for all else.
type HandOver string

const (
	// AtFault begins the turn when the fault shows, which no alert may tell of yet.
	AtFault HandOver = "fault"
	// AtAlert begins it when somebody would be called: an alert fires, or users have not been served for a
	// while. Unless the task is to find out whether anything is wrong, the agent is told what the pager says.
	AtAlert HandOver = "alert"
)

// maxHandOver is as long as anybody waits for an agent's turn.
const maxHandOver = 30 * time.Minute

// ParseHandOver reads one.
func ParseHandOver(text string) (HandOver, error) {
	switch h := HandOver(text); h {
	case "", AtFault, AtAlert:
		return h, nil
	}
	if d, err := time.ParseDuration(text); err != nil || d < 0 || d > maxHandOver {
		return "", fmt.Errorf("%q is none of fault, alert, or a duration up to %v such as 90s", text, maxHandOver)
	}
	return HandOver(text), nil
}

// of is the hand-over of a problem.
func (h HandOver) of(p *problem.Problem) HandOver {
	switch {
	case p.Task == problem.OnCall:
		return AtFault // There is none yet.
	case h == "" && p.Task == problem.Incident:
		return AtAlert
	}
	return h
}

const (
	// showTime is how long faults take to show, on a machine that is not too busy: most a second, some two
	// and a little, because they show by a question that nobody answers for so long.
	showTime = 3 * time.Second
	// callTime is how long it takes until most alerts fire.
	callTime = 25 * time.Second
	// complaintTime is how long users put up with failures before they call, and complaintShare how many
	// of their requests fail then.
	complaintTime  = 30 * time.Second
	complaintShare = 0.05
	// uncalledTime is when the turn begins although nobody has called.
	uncalledTime = 90 * time.Second
)

// turnDelay is when the agent's turn begins after the injection has, at the earliest: a moment that is
// drawn, and later than faults take to show or alerts to fire. It does not depend on whether there is a
// fault: an agent may know how long its environment took. Where the task says that there is one, nobody has
// to wait longer than he wants to. Release is how long the release takes in which the faults come.
func turnDelay(p *problem.Problem, h HandOver, seed uint64, release time.Duration) time.Duration {
	delay, _ := time.ParseDuration(string(h)) // 0 if it is none
	if !p.Asks(problem.Detection) {
		return delay
	}
	least := showTime
	if h == AtAlert {
		least = callTime
	}
	draw := rand.New(rand.NewPCG(seed, 0x7475726e))
	// What grows shows before it is half grown.
	return max(delay, release+least+p.Document.Ramp()/2+time.Duration(draw.Int64N(int64(least/2))))
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

// handOver brings the faults about, and returns when the agent's turn begins, with what the pager says.
func (l *Local) handOver(ctx context.Context) (page []string, err error) {
	p := l.setting.Problem
	h := l.setting.HandOver.of(p)
	release, err := noise.Span(p.App, l.setting.Noise)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	err = holdTurn(ctx, turnDelay(p, h, l.setting.Seed, release), func(ctx context.Context) (err error) {
		// Where the question is whether anything is wrong, that somebody was called would be the answer.
		if err = l.inject(ctx); err == nil && h == AtAlert && !p.Asks(problem.Detection) {
			l.phase("waiting until somebody is called")
			page, err = l.awaitCall(ctx, begin)
		}
		return err
	})
	if err == nil {
		l.tell(record.HandOverEvent, record.HandOver{When: string(h), After: time.Since(begin).Seconds(), Page: page})
	}
	return page, err
}

// awaitCall waits until somebody would be called about what has happened since the injection began, and
// returns what the pager says. It is nothing if the time is up.
func (l *Local) awaitCall(ctx context.Context, injected time.Time) (page []string, err error) {
	limited, cancel := context.WithTimeout(ctx, uncalledTime+l.setting.Problem.Document.Ramp())
	defer cancel()
	var bad time.Time // since when users have not been served
	err = poll(limited, lookInterval, func() (bool, error) {
		alerts, err := l.stage.observer.Alerts(limited, "")
		if err == nil { // Else Prometheus may be what is broken.
			page = l.callsFor(alerts, injected)
		}
		load, err := l.stage.load.Snapshot(limited)
		if err != nil {
			return false, err
		}
		sli := load.Window("10s").Total
		switch now := time.Now(); {
		case sli.Requests == 0 || sli.Success >= 1-complaintShare:
			bad = time.Time{}
		case bad.IsZero():
			bad = now
		case len(page) == 0 && now.Sub(bad) >= complaintTime:
			page = []string{fmt.Sprintf("%s users report that %s fails for them.", clock(now), l.stage.app.Title)}
		}
		return len(page) > 0, nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if limited.Err() != nil {
		return nil, nil
	}
	return page, err
}

// callsFor are the alerts that fire because of what has happened since the injection began, a line each.
func (l *Local) callsFor(alerts []observe.Alert, injected time.Time) (page []string) {
	for _, a := range alerts {
		if a.State == "firing" && !a.Since.Before(injected) && !l.stage.alerting[a.Key()] {
			page = append(page, fmt.Sprintf("%s %s %s: %s", clock(a.Since), a.Severity, a.Name, a.Summary))
		}
	}
	return page
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// paged adds what the pager says to what the agent is told.
func paged(description string, page []string) string {
	if len(page) == 0 {
		return description
	}
	return description + "\n\nThe pager has called you:\n\n    " + strings.Join(page, "\n    ") + "\n"
}
