package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
)

// Budget is what an agent's model may cost in one run. An exchange that does not fit any more is not
// made, and the agent has failed.
type Budget struct {
	Cost   float64 // in dollars; 0 for no limit
	Tokens int     // read and written, as the provider counts; 0 for no limit
}

// meter is a run's model: it records every exchange and keeps to the budget.
type meter struct {
	llm.Model
	budget Budget
	record func(kind string, data any)

	mu      sync.Mutex // Exchanges are made one after another, so that the budget holds.
	counter llm.Counter
	prompts [][]llm.Message
	tokens  int
	cost    float64
}

func newMeter(m llm.Model, b Budget, record func(kind string, data any)) *meter {
	return &meter{Model: m, budget: b, record: record}
}

// maxReply is the length from which on a reply is not limited: it is more than a reply has.
const maxReply = 16_384

// minReply is the least number of tokens a reply must be allowed to be of use.
const minReply = 64

// Chat asks the model, if the budget allows.
func (m *meter) Chat(ctx context.Context, r llm.Request) (llm.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.allow(&r); err != nil {
		return llm.Reply{}, err
	}
	began := time.Now()
	r.Again = func(a llm.Attempt) { m.record(record.RetryEvent, a) }
	reply, err := m.Model.Chat(ctx, r)
	m.note(r, reply, err, time.Since(began))
	if errors.Is(err, llm.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", agent.ErrUnavailable, err)
	}
	return reply, err
}

// allow limits a reply to what is left of the budget, or says that nothing is.
func (m *meter) allow(r *llm.Request) error {
	if m.budget == (Budget{}) {
		return nil
	}
	m.counter.Thoughts = m.Info().Thoughts == llm.Back
	prompt := m.counter.Messages(r.Messages...) + m.counter.Tools(r.Tools...)
	limit := func(left int) {
		if left < maxReply && (r.MaxTokens == 0 || r.MaxTokens > left) {
			r.MaxTokens = left
		}
	}
	if most := m.budget.Tokens; most > 0 {
		left := most - m.tokens - prompt
		if left < minReply {
			return fmt.Errorf("%w: %d of %d tokens are used, and the next question has about %d", llm.ErrBudget,
				m.tokens, most, prompt)
		}
		limit(left)
	}
	if most := m.budget.Cost; most > 0 {
		info := m.Info()
		next, known := info.Cost(llm.Usage{In: prompt})
		least, _ := info.Cost(llm.Usage{Out: minReply})
		left := most - m.cost - next
		switch {
		case !known:
			return fmt.Errorf("%w: nobody knows what the model %s costs", llm.ErrBudget, m.Name())
		case left < least:
			return fmt.Errorf("%w: $%.4f of $%.4f are used, and the next question costs about $%.4f", llm.ErrBudget,
				m.cost, most, next+least)
		case *info.Out > 0:
			limit(int(min(left / *info.Out * 1e6, 1<<30)))
		}
	}
	return nil
}

// note records an exchange and counts what it took.
func (m *meter) note(r llm.Request, reply llm.Reply, err error, took time.Duration) {
	x := llm.Exchange{Number: len(m.prompts) + 1, Model: m.Name(), Reply: reply.Redacted(), Seconds: took.Seconds()}
	x.Since, x.Kept = m.known(r.Messages)
	for _, msg := range r.Messages[x.Kept:] {
		x.Messages = append(x.Messages, msg.Redacted())
	}
	for _, t := range r.Tools {
		x.Tools = append(x.Tools, t.Name)
	}
	if err != nil {
		x.Error = llm.Redact(err.Error())
	}
	if cost, known := m.Info().Cost(reply.Usage); known {
		if reply.Cached {
			cost = 0
		}
		x.Cost = &cost
		m.cost += cost
	}
	m.tokens += reply.Usage.In + reply.Usage.Out
	m.prompts = append(m.prompts, slices.Clone(r.Messages))
	m.record(record.ModelEvent, x)
}

// known returns the exchange whose prompt begins as this one for longest, and for how long.
func (m *meter) known(prompt []llm.Message) (number, messages int) {
	for i, old := range slices.Backward(m.prompts) {
		n := 0
		for n < min(len(old), len(prompt)) && same(old[n], prompt[n]) {
			n++
		}
		if n > messages {
			number, messages = i+1, n
		}
	}
	return number, messages
}

func same(a, b llm.Message) bool {
	return a.Role == b.Role && a.For == b.For && a.Text == b.Text && slices.Equal(a.Calls, b.Calls)
}

// estimated marks tokens, and so a cost, that are our own count because the provider gave none.
const estimated = "estimated"

// modelUse is what a record says of an agent's model.
type modelUse struct {
	name  string
	calls int
	usage llm.Usage
	cost  float64
	// unpriced says that the cost of some exchange is not known.
	unpriced bool
}

func (u *modelUse) add(e record.Event) error {
	var x llm.Exchange
	if err := e.Decode(&x); err != nil {
		return err
	}
	u.name = x.Model
	u.calls++
	u.usage = u.usage.Add(x.Reply.Usage)
	if x.Cost != nil {
		u.cost += *x.Cost
	} else {
		u.unpriced = true
	}
	return nil
}

// addTo adds the model's usage to the results of a run that used one.
func (u *modelUse) addTo(res grade.Result) {
	if u.calls == 0 {
		return
	}
	res["model"], res["model_calls"] = u.name, u.calls
	res["model_in_tokens"], res["model_out_tokens"] = u.usage.In, u.usage.Out
	if u.usage.Estimated {
		res["model_tokens"] = estimated
	}
	res["cost_usd"] = nil
	if !u.unpriced {
		res["cost_usd"] = u.cost
	}
}
