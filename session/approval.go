package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// approvalTimeout is how long somebody may think about a change.
	approvalTimeout = 10 * time.Minute
	// maxQuestions is how many changes may wait for an answer at once. Who is asked shall be able to read them.
	maxQuestions = 16
)

// Approver is an optional power of an Environment: to take the answer to a change that its policy has asked for. The
// question was told as a [record.ApprovalEvent].
type Approver interface {
	Approve(ctx context.Context, number int, a guard.Answer) error
}

// Approval is a change that somebody is asked about.
type Approval struct {
	Number int `json:"number"` // from 1
	guard.Question
}

// approvals are the changes that wait for an answer. They are numbered through all runs of an environment: an answer
// that comes too late is none to a question of the next run.
type approvals struct {
	mu      sync.Mutex
	count   int
	waiting map[int]chan guard.Answer
}

// ask tells of a question, and waits for the answer. What waits with it is held, and loses no time.
func (a *approvals) ask(ctx context.Context, q guard.Question, hold func() (release func()), tell Tell) guard.Answer {
	defer hold()()
	a.mu.Lock()
	if len(a.waiting) >= maxQuestions {
		a.mu.Unlock()
		return guard.Answer{Why: fmt.Sprintf("%d changes wait for an answer already", maxQuestions)}
	}
	a.count++
	n, answer := a.count, make(chan guard.Answer, 1)
	if a.waiting == nil {
		a.waiting = map[int]chan guard.Answer{}
	}
	a.waiting[n] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, n)
	}()
	tell(record.ApprovalEvent, Approval{n, q})
	select {
	case got := <-answer:
		return got
	case <-time.After(approvalTimeout):
		return guard.Answer{Why: fmt.Sprintf("nobody answered within %v", approvalTimeout)}
	case <-ctx.Done():
		return guard.Answer{Why: "who wanted it has left"}
	}
}

var errNoQuestion = errors.New("nobody waits for that approval")

func (a *approvals) answer(n int, got guard.Answer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.waiting[n]
	if answer == nil {
		return errNoQuestion
	}
	answer <- got
	delete(a.waiting, n)
	return nil
}

var _ Approver = (*Local)(nil)

// Approve answers a question.
func (l *Local) Approve(_ context.Context, number int, a guard.Answer) error {
	return l.approvals.answer(number, a)
}

// asks reports whether there is somebody to ask.
func (r *run) asks() bool { return r.Approve != nil || r.Desk != nil }

// approve has who approves answer a question of the environment.
func (r *run) approve(data any) {
	b, err := json.Marshal(data)
	var q Approval
	if err != nil || json.Unmarshal(b, &q) != nil || !r.asks() {
		return
	}
	e, ok := r.Environment.(Approver)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), approvalTimeout)
	defer cancel()
	if r.Desk != nil {
		r.Desk.Lay(ctx, q, func(a guard.Answer) error { return e.Approve(ctx, q.Number, a) })
		return
	}
	_ = e.Approve(ctx, q.Number, r.Approve(ctx, q.Question)) // Who wanted it may have left.
}

// PolicyNotice is what an agent is told of the policy that is in force; nothing if there is none.
func PolicyNotice(p *policy.Policy) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("\n\nA policy is in force, %s: %s. "+
		"A change that it does not allow is refused, with the reason.\n", p.Name, p.Doc)
}

func (r *run) policyName() string {
	if r.Policy == nil {
		return ""
	}
	return r.Policy.Name
}

// asked is how often somebody was asked to approve, and did.
func asked(journal []guard.Entry) (asked, approved int) {
	for _, e := range journal {
		if e.Policy != nil && e.Policy.Asked {
			asked++
			if e.Policy.Approved {
				approved++
			}
		}
	}
	return asked, approved
}
