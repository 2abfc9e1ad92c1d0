package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/noise"
)

// An environment that is ready waits without users, and without any past that has ended. The run that comes then is the
// one that there would have been without the wait: what happens in it, and when after the past was written.
func TestReady(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept world %t", kept), func(t *testing.T) {
			at := oneAfter(t, kept, 0)
			if !slices.ContainsFunc(at, func(e seen) bool { return e.Kind == record.FaultEvent }) {
				t.Fatalf("there was no fault: %v", at)
			}
			// What comes at one moment comes in any order, so a look may be an interval later.
			about := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Second })
			if diff := cmp.Diff(at, oneAfter(t, kept, 20*time.Minute), about); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// seen is when there was the first event of a kind.
type seen struct {
	Kind string
	At   time.Duration
}

// oneAfter is the events of a run whose environment was ready for a while before, 0 for not at all, by kind, with their
// times after its past.
func oneAfter(t *testing.T, kept bool, wait time.Duration) (at []seen) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		h := &historian{Cloud: w.Cloud}
		w.Local.Cloud = h
		p := shopProblem(problem.Detection)
		s := Session{
			Problem: p, Environment: w.Local, Results: results, Seed: 7, Noise: noise.Calm,
			Agent: scripted(agent.Call("exec_shell", "true"), agent.Call("submit", "Yes")),
		}
		if kept {
			w.Revival = keptWorld(t, w, &s)
			h.written, h.recalled = nil, 0
		}
		if wait > 0 {
			users := w.visits.Load()
			if err := w.Ready(t.Context(), p.App); err != nil {
				t.Fatal(err)
			}
			time.Sleep(wait)
			if n := w.visits.Load() - users; n > 0 || len(h.written) > 0 || h.recalled > 0 {
				t.Errorf("while it was ready there were %d users, and it was given %d pasts", n, len(h.written)+h.recalled)
			}
		}
		began := time.Now()
		o, err := s.Run(t.Context())
		if err != nil || o.Verdict.Class != Solved {
			t.Fatalf("%+v: %v", o, err)
		}
		r, err := record.Read(o.Record)
		if err != nil {
			t.Fatal(err)
		}
		if r.Time.Before(began) {
			t.Errorf("the record begins at %v, the run at %v", r.Time, began)
		}
		past := began // that a kept world was started with, unless it was ready
		if wait > 0 || !kept {
			if len(h.written) != 1 || h.written[0].Before(began) {
				t.Fatalf("it was given a past at %v, the run began at %v", h.written, began)
			}
			past = h.written[0]
		}
		for _, e := range r.Events {
			is := func(s seen) bool { return s.Kind == e.Kind }
			if e.Kind != record.PhaseEvent && !slices.ContainsFunc(at, is) {
				at = append(at, seen{e.Kind, e.Time.Sub(past)})
			}
		}
	})
	slices.SortFunc(at, func(a, b seen) int { return strings.Compare(a.Kind, b.Kind) })
	return at
}

// keptWorld is the world that a run has made.
func keptWorld(t *testing.T, w *fakeShop, s *Session) *Revival {
	t.Helper()
	var made Made
	w.Made = func(_ *app.App, m Made) { made = m }
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Local.Close()
	w.stage = nil
	if err := w.Reset(t.Context(), made.Snapshot); err != nil {
		t.Fatal(err)
	}
	return &Revival{App: shop(), Seed: s.Seed, Made: Made{Snapshot: made.Snapshot, Healthy: maps.Clone(made.Healthy)}}
}
