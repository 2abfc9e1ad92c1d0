package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// How users are served is known while the agent has its turn, and follows what the agent does.
func TestUsers(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if _, err := w.Users(t.Context()); err == nil {
			t.Error("users are known before there are any")
		}
		s := Session{Problem: shopProblem(problem.Mitigation), Environment: w.Local, Results: results}
		l := s.Open(t.Context())
		if _, err := l.Briefing(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		x, err := l.Users(t.Context())
		if err != nil || !x.Known || x.Served > 0.1 {
			t.Errorf("without a cart: %+v, %v", x, err)
		}
		if _, err := l.Step(t.Context(), agent.Call("exec_shell", "kubectl scale")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if x, err := l.Users(t.Context()); err != nil || !x.Known || x.Served < 0.99 {
			t.Errorf("with a cart: %+v, %v", x, err)
		}
		if _, err := l.Step(t.Context(), agent.Call("submit")); err != nil {
			t.Fatal(err)
		}
		if o, err := l.Wait(t.Context()); err != nil || o.Verdict.Class != Solved {
			t.Errorf("%+v, %v", o, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := Session{Problem: shopProblem(problem.Detection), Environment: newPuppet(), Results: results}.Open(t.Context())
		defer func() { <-l.Done() }()
		defer l.Cancel()
		if _, err := l.Users(t.Context()); err == nil {
			t.Error("users are known where there are none")
		}
	})
}
