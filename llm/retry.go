package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Patience is how long a model is asked again. The zero value is DefaultPatience.
type Patience struct {
	Attempts int           // how often it is asked
	First    time.Duration // about the first pause; each is twice the one before
	Longest  time.Duration // the longest pause, also if the provider asks for it
	Timeout  time.Duration // of one attempt
}

// DefaultPatience waits for a minute in all, if the provider does not ask for more.
var DefaultPatience = Patience{Attempts: 6, First: 2 * time.Second, Longest: time.Minute, Timeout: 5 * time.Minute}

func (p Patience) orDefault() Patience {
	d := DefaultPatience
	if p.Attempts > 0 {
		d.Attempts = p.Attempts
	}
	if p.First > 0 {
		d.First = p.First
	}
	if p.Longest > 0 {
		d.Longest = p.Longest
	}
	if p.Timeout > 0 {
		d.Timeout = p.Timeout
	}
	return d
}

// errSlow is the cause of an attempt that took too long.
var errSlow = errors.New("no reply in time")

// Retry returns a model that asks another one again when that is busy, fails or breaks off. What
// does not get better by asking again is returned at once.
func Retry(m Model, p Patience) Model { return &retrying{m, p.orDefault()} }

type retrying struct {
	Model
	p Patience
}

func (m *retrying) Chat(ctx context.Context, r Request) (Reply, error) {
	for n := 1; ; n++ {
		reply, err := m.attempt(ctx, r)
		if err == nil {
			if n > 1 {
				reply.Attempts = n
			}
			return reply, nil
		}
		err = fmt.Errorf("model %s: %w", m.Name(), err)
		f, ok := errors.AsType[*Failure](err)
		if ctx.Err() != nil || !ok || !f.Temporary() {
			return Reply{Attempts: n}, err
		}
		if n == m.p.Attempts {
			return Reply{Attempts: n}, fmt.Errorf("%w (asked %d times)", err, n)
		}
		wait := m.pause(n, f.After)
		if wait < 0 {
			return Reply{Attempts: n}, fmt.Errorf("%w (it asks to wait for %v)", err, f.After)
		}
		if r.Again != nil {
			r.Again(Attempt{Model: m.Name(), Number: n, Error: Redact(f.Error()), Seconds: wait.Seconds()})
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Reply{Attempts: n}, err
		}
	}
}

func (m *retrying) attempt(ctx context.Context, r Request) (Reply, error) {
	limited, cancel := context.WithTimeoutCause(ctx, m.p.Timeout, errSlow)
	defer cancel()
	reply, err := m.Model.Chat(limited, r)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = &Failure{Message: fmt.Sprintf("no reply within %v", m.p.Timeout), After: -1, Cause: errSlow}
	}
	return reply, err
}

// pause is how long to wait after the nth attempt: between half and all of a time that doubles, so
// that many who were turned away do not come back together, or what the provider asks for and a
// little more. It is negative if that is too long.
func (m *retrying) pause(n int, asked time.Duration) time.Duration {
	if asked > m.p.Longest {
		return -1
	}
	if asked >= 0 {
		return asked + rand.N(asked/10+time.Millisecond)
	}
	whole := min(m.p.First<<min(n-1, 20), m.p.Longest)
	return whole/2 + rand.N(whole/2+1)
}
