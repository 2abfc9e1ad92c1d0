package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// This file is about shifts: while the agent has its turn, incidents come as the roster has them, each is looked at
// until it is mended, and the pager calls. One goroutine does all of it, a look a second, so that faults are asked one
// after another.

const (
	// shiftSlack is how long after the end of a shift an agent may take to hear of it.
	shiftSlack = time.Minute
	// backTime is how long something must be wrong with what was mended to count as an incident that is back.
	backTime = 15 * time.Second
	// alarmTimeout is how long it may take to read the alerts.
	alarmTimeout = 2 * time.Second
)

// shift is one under way.
type shift struct {
	*Local
	pager    *pager
	roster   problem.Roster
	from, to time.Time
	list     []*onCall
	alarms   []time.Time     // false ones to come
	paged    map[string]bool // alerts that were paged and still fire
	bad      time.Time       // since when users have not been served
	called   time.Time       // when the pager was last used
	busy     []time.Time     // when the machine was too busy

	cancel context.CancelFunc
	done   chan struct{}
	over   bool
}

// onCall is an incident of a shift.
type onCall struct {
	number  int
	problem *problem.Problem
	at      time.Time
	state   state
	faults  []fault.Fault
	env     *fault.Env
	// began is when it was brought about, and shown when it could be seen. Since is when what is seen of it last
	// changed: it may be on its way to be mended, or back.
	began, shown, since time.Time
	seen                bool // something is wrong with it, at the last look
	retired             bool // another one is about the same services now
}

// state is how far an incident is.
type state int

const (
	toCome state = iota
	injected
	stands
	isMended
	gaveUp // it could not be brought about
)

// newShift draws the roster.
func newShift(l *Local) *shift {
	return &shift{
		Local: l, pager: newPager(l.tell), roster: l.setting.Problem.Roster(l.setting.Seed), paged: map[string]bool{},
		done: make(chan struct{}),
	}
}

// laterReaches are what the faults of a shift reach.
func (l *Local) laterReaches() (list []fault.Reach) {
	if l.setting.Problem.Task != problem.OnCall {
		return nil
	}
	for _, i := range l.setting.Problem.Roster(l.setting.Seed).Incidents {
		faults, err := i.Problem.Bind()
		if err != nil {
			continue // Whoever injects it says so.
		}
		for _, f := range faults {
			list = append(list, fault.ReachOf(f))
		}
	}
	return list
}

// begin begins the shift.
func (s *shift) begin(ctx context.Context, from time.Time) error {
	s.from, s.to = from, from.Add(s.roster.Length)
	event := record.Shift{From: s.from, To: s.to, Day: s.setting.Problem.Day()}
	if event.Day {
		if err := s.stage.load.Begin(ctx); err != nil {
			return err
		}
	}
	for n, i := range s.roster.Incidents {
		faults, err := i.Problem.Bind()
		if err != nil {
			return err
		}
		in := &onCall{number: n + 1, problem: i.Problem, at: from.Add(i.At), faults: faults}
		s.list = append(s.list, in)
		event.Planned = append(event.Planned, record.Planned{
			Number: in.number, Problem: i.Problem.ID, Components: in.parts(), At: in.at,
		})
	}
	for _, at := range s.roster.FalseAlarms {
		s.alarms = append(s.alarms, from.Add(at))
	}
	event.FalseAlarms = slices.Clone(s.alarms)
	s.tell(record.ShiftEvent, event)
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	go s.run(going)
	return nil
}

// endShift ends the shift's looks, if there is one.
func (l *Local) endShift() {
	s := l.shift
	if s == nil || s.cancel == nil {
		return
	}
	s.cancel()
	<-s.done
	s.cancel = nil
	s.pager.end()
	s.tell(record.ShiftEndEvent, record.ShiftEnd{Time: time.Now(), Over: s.over, Busy: s.busy})
}

func (s *shift) run(ctx context.Context) {
	defer close(s.done)
	defer s.pager.end()
	_ = poll(ctx, lookInterval, func() (bool, error) {
		s.step(ctx)
		return s.over || !time.Now().Before(s.to), nil
	})
}

// step looks once, brings about what is due, and calls if there is reason to.
func (s *shift) step(ctx context.Context) {
	look, err := s.lookOnce(ctx)
	if err == nil {
		s.sampler.current().saw(look)
		if look.Overloaded() || look.Starved() {
			s.busy = append(s.busy, look.Time)
		}
		for _, i := range s.list {
			s.judge(ctx, i, look)
		}
	}
	for _, i := range s.list {
		if i.state == toCome && !time.Now().Before(i.at) && !s.inTheWay(i) {
			s.bring(ctx, i)
		}
	}
	s.watchPager(ctx)
	s.over = err == nil && s.allDone() && len(grade.Complaints(s.baseline, look)) == 0
}

func (s *shift) lookOnce(ctx context.Context) (grade.Look, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return s.stage.look(ctx, nil)
}

// parts are the services that an incident is about.
func (i *onCall) parts() []string {
	list := i.problem.Involved()
	for _, f := range i.problem.Faults() {
		if f.Target != "" && !slices.Contains(list, f.Target) {
			list = append(list, f.Target)
		}
	}
	return list
}

// inTheWay reports whether an incident is there that another must not be beside.
func (s *shift) inTheWay(next *onCall) bool {
	return slices.ContainsFunc(s.list, func(i *onCall) bool {
		return (i.state == injected || i.state == stands || i.state == isMended && i.seen && !i.retired) &&
			problem.Disturb(i.problem, next.problem)
	})
}

// bring brings an incident about.
func (s *shift) bring(ctx context.Context, i *onCall) {
	env := *s.stage.env
	env.Injected = time.Now()
	i.env, i.began, i.state = &env, env.Injected, injected
	for _, o := range s.list {
		if o.state == isMended && problem.Disturb(o.problem, i.problem) {
			o.retired = true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, manifestTimeout)
	defer cancel()
	if g := s.guard; g != nil { // An abort must not cure what is in a container that was kept before.
		g.Unkeep()
		defer g.Unkeep()
	}
	for _, f := range i.faults {
		s.faults = append(s.faults, f) // What fails half-way is undone as well.
		if err := f.Inject(ctx, i.env); err != nil {
			s.fail(ctx, i, err.Error())
			return
		}
	}
}

// fail takes an incident back that could not be brought about.
func (s *shift) fail(ctx context.Context, i *onCall, why string) {
	if ctx.Err() != nil { // The shift ends.
		return
	}
	i.state = gaveUp
	for _, f := range i.faults {
		_ = f.Recover(ctx, i.env) // It is tried again when the run is over.
	}
	s.tell(record.IncidentEvent, record.Incident{
		Number: i.number, Became: record.IncidentFailed, Time: time.Now(), What: why,
	})
}

// judge looks at an incident.
func (s *shift) judge(ctx context.Context, i *onCall, look grade.Look) {
	if i.state == toCome || i.state == gaveUp || i.retired {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var symptoms []string
	for _, f := range i.faults {
		symptom, err := f.Manifest(ctx, i.env)
		if err != nil {
			return // Nobody knows.
		}
		if symptom != "" {
			symptoms = append(symptoms, symptom)
		}
	}
	if i.state == injected {
		s.awaitShown(ctx, i, symptoms)
		return
	}
	wrong := grade.Standing(s.baseline, look, i.parts(), symptoms)
	now := time.Now()
	if seen := len(wrong) > 0; seen != i.seen {
		i.seen, i.since = seen, now
	}
	switch lasts := now.Sub(i.since); {
	case i.state == stands && !i.seen && lasts >= grade.Hold:
		i.state = isMended
		s.became(i, record.IncidentMended, i.since, "")
	case i.state == isMended && i.seen && lasts >= backTime:
		i.state = stands
		s.became(i, record.IncidentBack, i.since, strings.Join(wrong, "; "))
	}
}

// awaitShown waits until all faults of an incident show.
func (s *shift) awaitShown(ctx context.Context, i *onCall, symptoms []string) {
	now := time.Now()
	switch {
	case len(symptoms) == len(i.faults):
		i.state, i.seen, i.shown, i.since = stands, true, now, now
		s.became(i, record.IncidentShown, now, strings.Join(symptoms, "; "))
	case now.Sub(i.began) > manifestTimeout:
		s.fail(ctx, i, "it does not show")
	}
}

func (s *shift) became(i *onCall, what string, at time.Time, text string) {
	s.tell(record.IncidentEvent, record.Incident{Number: i.number, Became: what, Time: at, What: text})
}

// allDone reports whether nothing is to come any more, all is mended, and nobody is busy with a page.
func (s *shift) allDone() bool {
	return len(s.alarms) == 0 && s.pager.settled(time.Now()) && !slices.ContainsFunc(s.list, func(i *onCall) bool {
		return i.state != isMended && i.state != gaveUp || i.state == isMended && i.seen && !i.retired
	})
}

// watchPager calls when somebody would be called: an alert fires that did not before; users have been failed for a
// while; an incident stands for long, and nobody was called; or somebody is mistaken.
func (s *shift) watchPager(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, alarmTimeout)
	defer cancel()
	now := time.Now()
	lines := s.newAlerts(ctx)
	if s.complained(ctx, now) && len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("%s users report that %s fails for them.", clock(now), s.stage.app.Title))
	}
	if len(s.alarms) > 0 && !now.Before(s.alarms[0]) {
		s.alarms = s.alarms[1:]
		lines = append(lines, s.complaint(now))
	}
	if len(lines) == 0 && slices.ContainsFunc(s.list, func(i *onCall) bool {
		return i.state == stands && now.Sub(i.shown) >= uncalledTime && s.called.Before(i.shown)
	}) {
		lines = append(lines, s.complaint(now))
	}
	if len(lines) == 0 {
		return
	}
	for _, i := range s.list {
		if i.state == injected { // It shows, if nowhere else.
			i.state, i.seen, i.shown, i.since = stands, true, now, now
			s.became(i, record.IncidentShown, now, "the pager calls")
		}
	}
	s.called = now
	s.pager.call(now, lines)
}

// complaint is what the pager says if no alert tells, and of a false alarm.
func (s *shift) complaint(now time.Time) string {
	return fmt.Sprintf("%s a user complains about %s; nothing more is known.", clock(now), s.stage.app.Title)
}

// newAlerts are the alerts that fire and were not paged yet, a line each.
func (s *shift) newAlerts(ctx context.Context) (lines []string) {
	alerts, err := s.stage.observer.Alerts(ctx, "")
	if err != nil {
		return nil // Prometheus may be what is broken. Users will tell.
	}
	firing := map[string]bool{}
	for _, a := range alerts {
		key := a.Key()
		if a.State != "firing" || a.Since.Before(s.from) || s.stage.alerting[key] {
			continue
		}
		firing[key] = true
		if !s.paged[key] {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", clock(a.Since), a.Severity, a.Name, a.Summary))
		}
	}
	s.paged = firing
	return lines
}

// complained reports whether users have been failed for so long that they call, which they do once.
func (s *shift) complained(ctx context.Context, now time.Time) bool {
	load, err := s.stage.load.Snapshot(ctx)
	if err != nil {
		return false
	}
	sli := load.Window("10s").Total
	switch {
	case sli.Requests == 0 || sli.Success >= 1-complaintShare:
		s.bad = time.Time{}
	case s.bad.IsZero():
		s.bad = now
	case now.Sub(s.bad) >= complaintTime && s.called.Before(s.bad):
		return true
	}
	return false
}

// watchShift looks how the shift's system was left: until it has been well for a while, or is clear that it is not.
func (l *Local) watchShift(ctx context.Context, interrupted bool) {
	hold := l.holding(ctx)
	l.tell(record.HoldEvent, hold)
	limit := clearTimeout + hold.Least()
	if interrupted {
		limit = interruptedAftermath
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var faults []fault.Fault
	for _, i := range l.shift.list {
		if i.state == injected || i.state == stands {
			faults = append(faults, i.faults...)
		}
	}
	var looks []grade.Look
	begun := time.Now()
	_ = poll(ctx, lookInterval, func() (bool, error) {
		look, err := l.stage.look(ctx, faults)
		if err != nil {
			if len(looks) == 0 && ctx.Err() != nil {
				l.tell(record.BlindEvent, record.Blind{Error: err.Error()})
			}
			return false, nil
		}
		looks = append(looks, look)
		l.sampler.current().saw(look)
		l.tell(record.LookEvent, look)
		well := len(grade.Complaints(l.baseline, look)) == 0
		return grade.Mitigated(l.baseline, looks, hold.Least()) || !well && time.Since(begun) >= clearTimeout, nil
	})
}
