package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// How long the system is watched after the agent is done.
const (
	// minQuiet is how long a system that is not well is watched at least, though nothing is under way
	// and nothing gets better: the load's window, and what controllers need to take notice.
	minQuiet = 10 * time.Second
	// settleTimeout is how long something may be under way without anything getting better.
	settleTimeout = 90 * time.Second
	// aftermathTimeout is the longest that a system is watched, whatever is under way.
	aftermathTimeout = backOffTimeout + 3*settleTimeout
	// interruptedAftermath is how long it is watched if the run was interrupted.
	interruptedAftermath = grade.Hold + 2*time.Second
	// clearTimeout is how long an answer's system is watched that is not as the agent was to find it:
	// what the agent's last requests did to it is over by then.
	clearTimeout = 20 * time.Second
	// lookTimeout is how long one look may take, and blindTimeout how long looks may fail.
	lookTimeout  = 15 * time.Second
	blindTimeout = 45 * time.Second
)

// eyes look at a system.
type eyes interface {
	look(ctx context.Context, faults []fault.Fault) (grade.Look, error)
	scene(ctx context.Context) (scene, error)
}

// aftermath watches a system after the agent is done, for as long as that may change the verdict.
type aftermath struct {
	eyes
	mends    bool          // the agent was to mend it
	goal     *problem.Goal // what an operation asks for; nil for none
	baseline grade.Look
	faults   []fault.Fault
	hold     time.Duration
	quiet    time.Duration // how long nothing may get better
	limit    time.Duration // of all
	times    times
	saw      func(grade.Look)
	blind    func(error) // is told why nothing can be seen any more

	looks  []grade.Look
	best   map[string]int // how far the system has come
	better time.Time      // when it last got better, or had a reason not to
}

// quietFor is how long nothing may get better in a system with faults before it is given up.
func quietFor(faults []fault.Fault) time.Duration {
	quiet := minQuiet
	for _, f := range faults {
		quiet = max(quiet, fault.LingerOf(f)+minCovered+lookInterval)
	}
	return quiet
}

// watch looks until it is clear how the system fares.
func (a *aftermath) watch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	a.better, a.best = a.times.done, map[string]int{}
	seen := time.Now()
	_ = poll(ctx, lookInterval, func() (bool, error) {
		done, err := a.step(ctx)
		switch {
		case err == nil:
			seen = time.Now()
			return done, nil
		case ctx.Err() != nil && len(a.looks) > 0:
			return true, nil
		case ctx.Err() != nil || time.Since(seen) >= blindTimeout:
			a.blind(err)
			return true, nil
		}
		return false, nil
	})
}

// step looks once, and reports whether that is enough.
func (a *aftermath) step(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, errors.New("a look took too long"))
	defer cancel()
	l, err := a.look(ctx, a.faults)
	if err != nil {
		return false, err
	}
	a.times.now = l.Time
	if a.goal != nil {
		a.see(l)
		return a.enough(l), nil
	}
	if !a.mends {
		a.see(l)
		return spoilt(a.baseline, l, len(a.faults)) == "" || l.Time.Sub(a.times.done) >= clearTimeout, nil
	}
	if len(grade.Complaints(a.baseline, l)) == 0 {
		a.better = l.Time
		a.see(l)
		return grade.Mitigated(a.baseline, a.looks, a.hold), nil
	}
	s, err := a.scene(ctx)
	if err != nil {
		return false, err
	}
	l.UnderWay = s.underWay(a.times)
	if len(grade.Broken(a.baseline, l)) == 0 {
		l.UnderWay = append(l.UnderWay, "what users get follows with a delay")
	}
	a.note(s.reached(a.baseline, l), l)
	a.see(l)
	return a.hopeless(l), nil
}

// enough reports whether an operation can be judged: what it asks for has held, or will not come any more.
func (a *aftermath) enough(l grade.Look) bool {
	watched := l.Time.Sub(a.times.done)
	if len(a.goal.Want) == 0 {
		return watched >= a.hold
	}
	if grade.Achieved(a.goal, a.times.began, a.baseline, a.looks, a.hold) {
		return true
	}
	return min(watched, l.Time.Sub(a.times.began)-a.goal.Rises) >= goalPatience
}

func (a *aftermath) see(l grade.Look) {
	a.looks = append(a.looks, l)
	a.saw(l)
}

// note remembers how far the system has come. A container that was not tried again yet is a reason
// for the system not to get better.
func (a *aftermath) note(reached map[string]int, l grade.Look) {
	for name, n := range reached {
		if best, ok := a.best[name]; !ok || n > best {
			a.best[name] = n
			if ok || len(a.looks) > 0 {
				a.better = l.Time
			}
		}
	}
	if slices.ContainsFunc(l.UnderWay, func(s string) bool { return strings.HasSuffix(s, backOff) }) {
		a.better = l.Time
	}
}

// hopeless reports whether a system that is not well will not become so by itself.
func (a *aftermath) hopeless(l grade.Look) bool {
	still := l.Time.Sub(a.better)
	return still >= a.quiet && len(l.UnderWay) == 0 || still >= max(settleTimeout, a.quiet)
}

// watchAftermath watches the system after the agent is done: until a mitigation has held, or it is
// clear that it will not; until it is as the agent was to find it, if nothing was to be mitigated.
func (l *Local) watchAftermath(ctx context.Context, interrupted bool) {
	hold := l.holding(ctx)
	if l.stage.goal != nil {
		hold.Extend(grade.GoalHold, "telemetry is what it is judged by")
	}
	l.tell(record.HoldEvent, hold)
	a := &aftermath{
		eyes: l.stage, mends: l.setting.Problem.Asks(problem.Mitigation), baseline: l.baseline, faults: l.faults,
		hold: hold.Least(), goal: l.stage.goal,
		quiet: quietFor(l.faults), limit: aftermathTimeout + hold.Least(),
		times: times{began: l.began, done: time.Now()},
		saw: func(look grade.Look) {
			l.sampler.current().saw(look)
			l.tell(record.LookEvent, look)
		},
		blind: func(err error) { l.tell(record.BlindEvent, record.Blind{Error: err.Error()}) },
	}
	if interrupted {
		a.limit = interruptedAftermath
	}
	a.watch(ctx)
}
