package session

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// stubborn is an environment whose commands go on until they are ended.
type stubborn struct {
	*mortal
	begun chan struct{}
}

func (s stubborn) Act(ctx context.Context, response string, _ func(string)) (Reply, error) {
	if strings.Contains(response, "submit") {
		return Reply{Action: "submit", Submitted: true}, nil
	}
	close(s.begun)
	<-ctx.Done()
	return Reply{Action: "exec_shell", Text: context.Cause(ctx).Error(), Failed: true}, nil
}

// Who cancels a step, or interrupts it, ends its command. The run goes on, and the record has the step.
func TestCancelledStep(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		brokenOff(t, "its caller cancelled it", func(_ *Live, cancel func()) { cancel() })
	})
	t.Run("interrupted", func(t *testing.T) {
		brokenOff(t, "it was interrupted", func(l *Live, _ func()) { l.Interrupt() })
	})
}

func brokenOff(t *testing.T, why string, end func(l *Live, cancel func())) {
	t.Helper()
	log, err := record.Create(filepath.Join(t.TempDir(), "r.jsonl"), record.Run{ID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	l := &Live{requests: make(chan request), done: make(chan struct{})}
	var steps []record.Step
	r := &run{log: log, Session: &Session{Progress: func(_ string, data any) {
		l.last = data.(record.Step)
		steps = append(steps, l.last)
	}}}
	way := stubborn{&mortal{}, make(chan struct{})}
	r.Environment = way
	over := make(chan record.Submission)
	go func() {
		s := r.takeSteps(t.Context(), seat{l})
		_ = seat{l}.Close()
		over <- s
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.Interrupt() // Nothing is under way.
	go func() {
		<-way.begun
		end(l, cancel)
	}()
	if turn, err := l.Step(ctx, "exec_shell"); err == nil && !turn.Failed { // Either may be known first.
		t.Error("a step that was cancelled succeeded")
	}
	turn, err := l.Step(t.Context(), "submit")
	if err != nil || turn.Number != 2 || !turn.Over {
		t.Errorf("%+v, %v", turn, err)
	}
	if s := <-over; !s.Submitted {
		t.Errorf("%+v", s)
	}
	if len(steps) != 2 || steps[0].Observation != why || !steps[0].Failed || steps[1].Failed {
		t.Errorf("%+v", steps)
	}
}

// A run whose agent is outside begins, is briefed, takes steps and ends, whichever way its holder takes.
func TestLive(t *testing.T) {
	look, yes := agent.Call("exec_shell", "true"), agent.Call("submit", "Yes")
	gone := errors.New("the client hung up")
	for _, c := range []struct {
		name string
		end  func(t *testing.T, l *Live)
		want Class
		why  string
	}{
		{"it submits", func(t *testing.T, l *Live) {
			if turn, err := l.Step(t.Context(), yes); err != nil || !turn.Over || turn.Number != 2 {
				t.Errorf("%+v, %v", turn, err)
			}
		}, Solved, "the answer is right"},
		{"it is one of a search", func(t *testing.T, l *Live) {
			if err := l.Note(t.Context(), record.RestoreEvent, record.Restore{From: "x", Steps: 1}); err != nil {
				t.Error(err)
			}
			if turn, err := l.Step(t.Context(), yes); err != nil || !turn.Over {
				t.Errorf("%+v, %v", turn, err)
			}
		}, Searched, "in a search: the answer is right"},
		{"it gives up", func(t *testing.T, l *Live) {
			if err := l.GiveUp(t.Context(), gone); err != nil {
				t.Error(err)
			}
		}, AgentFailed, gone.Error()},
		{"it is cancelled", func(_ *testing.T, l *Live) { l.Cancel() }, Inconclusive, "interrupted"},
		{"nobody comes back", func(*testing.T, *Live) {}, AgentFailed, "the agent's time is up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				p, progress := shopProblem(problem.Detection), 0
				s := Session{
					Problem: p, Agent: agent.Entry{Name: "outside"}, Environment: newPuppet(), Results: results,
					Progress: func(string, any) { progress++ },
				}
				l := s.Open(t.Context())
				b, err := l.Briefing(t.Context())
				if err != nil || b.Task != p.Task || b.Namespace != p.App.Namespace {
					t.Errorf("%+v, %v", b, err)
				}
				if turn, err := l.Step(t.Context(), look); err != nil || turn.Over || turn.Number != 1 || turn.Observation != "done" {
					t.Errorf("%+v, %v", turn, err)
				}
				c.end(t, l)
				o, err := l.Wait(t.Context())
				if err != nil || o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) || o.Agent != "outside" {
					t.Errorf("%+v, %v", o, err)
				}
				<-l.Done()
				if _, err := l.Step(t.Context(), look); !errors.Is(err, ErrOver) {
					t.Errorf("a step after the end: %v", err)
				}
				if err := l.GiveUp(t.Context(), gone); !errors.Is(err, ErrOver) {
					t.Errorf("giving up after the end: %v", err)
				}
				if _, err := l.Briefing(t.Context()); err != nil {
					t.Errorf("the briefing is forgotten: %v", err)
				}
				if progress == 0 {
					t.Error("nobody was told of the progress")
				}
			})
		})
	}
}

// Who waits for a run that never comes so far does not wait for ever.
func TestLiveInVain(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		env := newPuppet()
		env.prepare = hang
		s := Session{Problem: shopProblem(problem.Detection), Environment: env, Results: results}
		l := s.Open(t.Context())
		late := errors.New("that is too late")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		if _, err := l.Briefing(ctx); !errors.Is(err, late) {
			t.Errorf("a briefing: %v", err)
		}
		if _, err := l.Step(ctx, agent.Call("submit", "Yes")); !errors.Is(err, late) {
			t.Errorf("a step: %v", err)
		}
		if _, err := l.Wait(ctx); !errors.Is(err, late) {
			t.Errorf("an outcome: %v", err)
		}
		l.Cancel()
		o, err := l.Wait(t.Context())
		if err != nil || o.Verdict.Class != Inconclusive {
			t.Errorf("%+v, %v", o, err)
		}
		if _, err := l.Briefing(t.Context()); !errors.Is(err, ErrOver) {
			t.Errorf("a briefing after the end: %v", err)
		}
	})
}
