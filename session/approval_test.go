package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

func TestApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a approvals
		told := make(chan Approval, 1)
		tell := func(_ string, data any) { told <- data.(Approval) }
		answers := make(chan guard.Answer, 1)
		held := 0
		hold := func() func() { held++; return func() { held-- } }
		ask := func(ctx context.Context) { answers <- a.ask(ctx, guard.Question{Policy: "careful"}, hold, tell) }

		go ask(t.Context())
		q := <-told
		synctest.Wait()
		if held != 1 {
			t.Errorf("what waits for the answer is held %d times", held)
		}
		if q.Number != 1 || q.Policy != "careful" {
			t.Errorf("%+v", q)
		}
		want := guard.Answer{Approved: true, By: "x"}
		if err := a.answer(q.Number, want); err != nil {
			t.Error(err)
		}
		if got := <-answers; got != want || held != 0 {
			t.Errorf("%+v, and it is held %d times", got, held)
		}
		if a.answer(q.Number, want) == nil || a.answer(7, want) == nil {
			t.Error("an answer that nobody waits for is taken")
		}

		// Who wanted it leaves.
		ctx, cancel := context.WithCancel(t.Context())
		go ask(ctx)
		<-told
		cancel()
		if got := <-answers; got.Approved {
			t.Errorf("%+v", got)
		}

		// Nobody answers.
		begun := time.Now()
		go ask(t.Context())
		<-told
		if got := <-answers; got.Approved || time.Since(begun) != approvalTimeout {
			t.Errorf("%+v after %v", got, time.Since(begun))
		}
	})
}

// To ask is an action, and the verdict says which policy was in force.
func TestAskedIsScored(t *testing.T) {
	ruled := func(approved bool) guard.Entry {
		return guard.Entry{Policy: &guard.Ruling{Decision: policy.Decision{Do: policy.Ask}, Asked: true, Approved: approved}}
	}
	h := &history{
		truth: truth{Task: problem.Mitigation}, briefing: record.Briefing{Policy: "careful"},
		journal: []guard.Entry{ruled(true), {}, ruled(false)},
	}
	res := h.metrics(nil)
	if res["policy"] != "careful" || res["asked"] != 2 || res["approved"] != 1 {
		t.Errorf("%v", res)
	}
	if actions := res["actions"].(map[string]int); actions["ask_approval"] != 2 {
		t.Errorf("%v", actions)
	}
	h.briefing.Policy = ""
	if res := h.metrics(grade.Result{}); res["policy"] != nil || res["asked"] != nil {
		t.Errorf("%v", res)
	}
}
