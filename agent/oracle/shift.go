package oracle

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// watch is on call and knows the roster: when the pager calls it carries out the reference solutions of what has come
// since. It waits for the pager all the same.
type watch struct {
	roster problem.Roster
	begun  time.Time
	solved map[int]time.Duration // when, by which of the roster: what was mended may come again
	todo   []string              // commands
	named  []string              // services at fault, of what was solved since it last submitted
	now    func() time.Time
}

func newWatch(b agent.Briefing) agent.Agent {
	return &watch{roster: *b.Roster, solved: map[int]time.Duration{}, now: time.Now}
}

const (
	// early is how long after its time an incident can be the reason of a page at the earliest.
	early = 2 * time.Second
	// mistaken is how long after the time of a false alarm a page is one.
	mistaken = 10 * time.Second
	// again is how soon after its time something is solved that is solved once more if the pager calls later: it may
	// have been solved before it came.
	again = 45 * time.Second
	// lately is for how long after it was solved something may be why the pager calls.
	lately = 5 * time.Minute
)

// Act implements [agent.Agent].
func (w *watch) Act(_ context.Context, observation string) (string, error) {
	if w.begun.IsZero() {
		w.begun = w.now()
	}
	if strings.Contains(observation, "\nPage ") {
		w.called(w.now().Sub(w.begun))
	}
	if len(w.todo) == 0 {
		names := w.named
		w.named = nil
		if len(names) == 0 {
			return agent.Call("submit"), nil
		}
		return agent.Call("submit", names[:min(len(names), 3)]), nil
	}
	next := w.todo[0]
	w.todo = w.todo[1:]
	return agent.Call("exec_shell", next, patience), nil
}

// called notes what is to be solved.
func (w *watch) called(at time.Duration) {
	found := false
	for n, i := range w.roster.Incidents {
		if _, done := w.solved[n]; !done && at >= i.At+early {
			found = true
			w.solve(n, at)
		}
	}
	if found || slices.ContainsFunc(w.roster.FalseAlarms, func(f time.Duration) bool {
		return at >= f-mistaken && at <= f+mistaken
	}) {
		return
	}
	for n, i := range w.roster.Incidents {
		if when, done := w.solved[n]; done && when-i.At < again && at-when < lately {
			w.solve(n, at)
			w.solved[n] = i.At + again // Once.
		}
	}
}

func (w *watch) solve(n int, at time.Duration) {
	p := w.roster.Incidents[n].Problem
	commands, err := p.Solution()
	if err != nil {
		return
	}
	w.solved[n] = at
	w.todo = append(w.todo, commands...)
	for _, name := range p.Involved() {
		if !slices.Contains(w.named, name) {
			w.named = append(w.named, name)
		}
	}
}
