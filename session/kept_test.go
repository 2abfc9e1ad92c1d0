package session

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

// outcome runs an agent and fails the test if there is no verdict.
func (w *fakeShop) outcome(t *testing.T, task problem.Task, a agent.Entry, results string) Verdict {
	t.Helper()
	s := Session{Problem: shopProblem(task), Agent: a, Environment: w.Local, Results: results}
	o, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return o.Verdict
}

// An environment that is kept has one run after another, each as if there had been none before.
func TestKept(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if err := w.Keep(t.Context(), shop()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // The fault of the first is gone, though nobody mended it.
			if v := w.outcome(t, problem.Mitigation, scripted(agent.Call("submit")), results); v.Class != AgentFailed {
				t.Errorf("%+v", v)
			}
		}
		if v := w.outcome(t, problem.Detection, scripted(agent.Call("submit", "Yes")), results); v.Class != Solved {
			t.Errorf("%+v", v)
		}
		if err := w.Keep(t.Context(), shop()); err != nil {
			t.Errorf("it cannot be kept for longer: %v", err)
		}
		other := shopProblem(problem.Detection)
		other.App.Name = "another-shop"
		if w.Fits(other) || !w.Fits(shopProblem(problem.Analysis)) {
			t.Error("any application fits")
		}
		if _, err := w.Prepare(t.Context(), Setting{Problem: other}, func(string, any) {}); !errors.Is(err, ErrMisfit) {
			t.Errorf("another application: %v", err)
		}
	})
}

// An environment that was started from a kept application keeps that one, and deploys nothing.
func TestKeptRevived(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if err := Deploy(t.Context(), w.Cloud, shop()); err != nil {
			t.Fatal(err)
		}
		before, err := w.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Revival = &Revival{App: shop(), Made: Made{Snapshot: before}}
		w.Before(func(r *http.Request) error {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/deployments") {
				t.Errorf("%s is deployed again", r.URL.Path)
			}
			return nil
		})
		if err := w.Keep(t.Context(), shop()); err != nil {
			t.Fatal(err)
		}
		w.Before(nil)
		for range 2 { // The fault of the first is gone, though nobody mended it.
			if v := w.outcome(t, problem.Mitigation, scripted(agent.Call("submit")), results); v.Class != AgentFailed {
				t.Errorf("%+v", v)
			}
		}
		if v := w.outcome(t, problem.Detection, scripted(agent.Call("submit", "Yes")), results); v.Class != Solved {
			t.Errorf("%+v", v)
		}
	})
}

// After a reset the first users may come too early. They do not count, but who is never served does.
func TestKeptTooEarly(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		defer w.Local.Close()
		if err := w.Keep(t.Context(), shop()); err != nil {
			t.Fatal(err)
		}
		yes := scripted(agent.Call("submit", "Yes"))
		if v := w.outcome(t, problem.Detection, yes, results); v.Class != Solved {
			t.Errorf("%+v", v)
		}
		var early atomic.Int32
		early.Store(2)
		w.Serve("frontend.test-shop:80", http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if early.Add(-1) >= 0 {
				rw.WriteHeader(http.StatusBadGateway)
			}
		}))
		began := time.Now()
		if v := w.outcome(t, problem.Detection, yes, results); v.Class != Solved || time.Since(began) > time.Minute {
			t.Errorf("%+v after %v", v, time.Since(began))
		}
		w.Serve("frontend.test-shop:80", http.NotFoundHandler())
		v := w.outcome(t, problem.Detection, yes, results)
		if v.Class != Infra || !strings.Contains(v.Why, "does not serve its users after a reset") {
			t.Errorf("%+v", v)
		}
	})
}

// unresettable is a cloud that fails to take or go back to a snapshot.
type unresettable struct {
	*cloudtest.Cloud
	snapshot, reset error
}

func (u unresettable) Snapshot(ctx context.Context) (cloud.Snapshot, error) {
	if u.snapshot != nil {
		return nil, u.snapshot
	}
	return u.Cloud.Snapshot(ctx)
}

func (u unresettable) Reset(context.Context, cloud.Snapshot) error { return u.reset }

// plain is a cloud without further powers.
type plain struct{ cloud.Cloud }

// An environment that cannot be kept says so before there is a run, and one that cannot be reset is
// nobody's failure but its own.
func TestCannotKeep(t *testing.T) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		keep := func(c cloud.Cloud) (*Local, error) {
			l := &Local{Cloud: c}
			t.Cleanup(l.Close)
			return l, l.Keep(t.Context(), shop())
		}
		if _, err := keep(plain{newShop(t).Cloud}); err == nil || !strings.Contains(err.Error(), "cannot be reset") {
			t.Errorf("a cloud that cannot be reset: %v", err)
		}
		full := errors.New("the disk is full")
		if _, err := keep(unresettable{Cloud: newShop(t).Cloud, snapshot: full}); !errors.Is(err, full) {
			t.Errorf("no snapshot: %v", err)
		}
		w := newShop(t)
		l, err := keep(unresettable{Cloud: w.Cloud, reset: full})
		if err != nil {
			t.Fatal(err)
		}
		l.admit, w.Local = w.admitted, l
		yes := scripted(agent.Call("submit", "Yes"))
		if v := w.outcome(t, problem.Detection, yes, results); v.Class != Solved {
			t.Errorf("%+v", v)
		}
		if v := w.outcome(t, problem.Detection, yes, results); v.Class != Infra || v.Why != "reset the cluster: the disk is full" {
			t.Errorf("%+v", v)
		}
	})
}

// An agent's way to the cloud is a guard, a shell and files of its own. All of it goes with the agent, or
// when it cannot be made.
func TestAccess(t *testing.T) {
	c := newShop(t)
	scratch := t.TempDir()
	l := &Local{Cloud: c.Cloud, Scratch: scratch, Self: []string{"/no/tools"}, tell: func(string, any) {}}
	l.setting.Problem = shopProblem(problem.Detection)
	var err error
	if l.stage, err = newStage(t.Context(), c.Cloud, shop()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.stage.load, err = StartLoad(t.Context(), c.Cloud, shop(), &problem.Load{Arrivals: workload.Arrivals{Rate: workload.Constant(1)}}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Act(t.Context(), "", func(string) {}); !errors.Is(err, errNoWay) {
		t.Errorf("an agent acts before its turn: %v", err)
	}
	if _, err := l.Export(t.Context(), agent.Interval{}); !errors.Is(err, errNoWay) {
		t.Errorf("an agent reads before its turn: %v", err)
	}
	l.Scratch = "/nowhere/at/all"
	if a, err := l.newAccess(t.Context()); a != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v, %v", a, err)
	}
	l.Scratch = scratch
	c.Before(func(r *http.Request) error {
		if r.Method == http.MethodPost {
			return errDown
		}
		return nil
	})
	if a, err := l.newAccess(t.Context()); a != nil || err == nil || !strings.Contains(err.Error(), "start the guard: ") {
		t.Errorf("without an API: %v, %v", a, err)
	}
	c.Before(nil)
	if a, err := l.newAccess(t.Context()); a != nil || err == nil || !strings.Contains(err.Error(), "the shell cannot be started") {
		t.Errorf("without a shell: %v, %v", a, err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("what could not be made left %v, %v", left, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.Self = []string{self, "tool"}
	if l.way, err = l.newAccess(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.Gate() == nil {
		t.Error("there is no gate")
	}
	var begun []string
	act := func(response string) Reply {
		t.Helper()
		r, err := l.Act(t.Context(), response, func(action string) { begun = append(begun, action) })
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := act("let me think"); !r.Failed || r.Action != "" {
		t.Errorf("no call: %+v", r)
	}
	if r := act(agent.Call("exec_shell", "echo $((6*7))")); r.Failed || strings.TrimSpace(r.Text) != "42" {
		t.Errorf("a command: %+v", r)
	}
	if r := act(agent.Call("submit", "Yes")); !r.Submitted || string(r.Answer) != `"Yes"` {
		t.Errorf("a submission: %+v", r)
	}
	if want := []string{"", "exec_shell", "submit"}; !slices.Equal(begun, want) {
		t.Errorf("it was told of %q", begun)
	}
	if err := l.Dismiss(t.Context()); err != nil || l.way != nil {
		t.Errorf("%v, %v", l.way, err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("the agent left %v, %v", left, err)
	}
	if c.Gate() == nil {
		t.Error("the gate went with the agent: what it left behind would be free")
	}
	l.Close()
	if c.Gate() != nil {
		t.Error("the gate stays")
	}
}
