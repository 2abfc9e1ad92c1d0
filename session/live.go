package session

import (
	"context"
	"errors"
	"sync"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
)

// ErrOver is the error of a step in a run that has ended. The outcome says how.
var ErrOver = errors.New("the run is over")

// Live is a run whose agent is outside the program: whoever holds it takes the steps. Its methods
// are safe for concurrent use.
type Live struct {
	briefing agent.Briefing
	briefed  chan struct{} // closed when there is a briefing
	requests chan request
	done     chan struct{} // closed when there is an outcome
	cancel   context.CancelFunc

	environment Environment
	desk        *Desk

	mu   sync.Mutex
	halt context.CancelCauseFunc // ends the command that is under way; nil if there is none

	// Of the goroutine of the run.
	current request
	last    record.Step

	outcome *Outcome
	err     error
}

// request is a response of the agent, and where the lab's reply goes.
type request struct {
	ctx      context.Context // of who waits for the reply
	response string
	err      error // why the agent gives up instead
	reply    chan Turn
}

// Turn is what a step came to.
type Turn struct {
	record.Step
	Over bool `json:"over"` // the agent submitted, or met a limit; the verdict is still to come
}

// Open begins a run in the background. It uses only the name and the baseline of the session's agent. The run ends
// with a submission or a limit, by Cancel, or with ctx, and is graded as it stands.
func (s Session) Open(ctx context.Context) *Live {
	ctx, cancel := context.WithCancel(ctx)
	l := &Live{
		briefed: make(chan struct{}), requests: make(chan request), done: make(chan struct{}), cancel: cancel,
		environment: s.Environment, desk: s.Desk,
	}
	s.Agent.New = func(b agent.Briefing) (agent.Agent, error) {
		l.briefing = b
		close(l.briefed)
		return seat{l}, nil
	}
	progress := s.Progress
	s.Progress = func(kind string, data any) {
		if step, ok := data.(record.Step); ok {
			l.last = step
		}
		if progress != nil {
			progress(kind, data)
		}
	}
	go func() {
		defer cancel()
		defer close(l.done)
		l.outcome, l.err = s.Run(ctx)
	}()
	return l
}

// Desk is where the questions of the run's policy lie, or nil if there is none.
func (l *Live) Desk() *Desk { return l.desk }

// Briefing waits until the agent has its turn, and returns what it is told.
func (l *Live) Briefing(ctx context.Context) (agent.Briefing, error) {
	select {
	case <-l.briefed:
	case <-l.done:
		select {
		case <-l.briefed: // It is still known when the run is over.
		default:
			return agent.Briefing{}, ErrOver
		}
	case <-ctx.Done():
		return agent.Briefing{}, context.Cause(ctx)
	}
	return l.briefing, nil
}

// Step takes a step: it does what the response asks for. Steps of concurrent callers are taken one
// after another. If ctx ends, so does the command that the step runs; what it has done stays done.
func (l *Live) Step(ctx context.Context, response string) (Turn, error) {
	return l.ask(request{ctx: ctx, response: response, reply: make(chan Turn, 1)})
}

// GiveUp ends the agent's turn without a submission, as a failure of the agent. A mitigation is judged
// all the same.
func (l *Live) GiveUp(ctx context.Context, reason error) error {
	_, err := l.ask(request{ctx: ctx, err: reason, reply: make(chan Turn, 1)})
	return err
}

func (l *Live) ask(r request) (Turn, error) {
	ctx := r.ctx
	select {
	case l.requests <- r:
	case <-l.done:
		return Turn{}, ErrOver
	case <-ctx.Done():
		return Turn{}, context.Cause(ctx)
	}
	select {
	case t := <-r.reply:
		return t, nil
	case <-ctx.Done():
		return Turn{}, context.Cause(ctx)
	}
}

// Note adds an event to the record, of a run whose agent has its turn.
func (l *Live) Note(ctx context.Context, kind string, data any) error {
	b, err := l.Briefing(ctx)
	if err == nil {
		b.Note(kind, data)
	}
	return err
}

// Interrupt ends the command of the step that is under way, if there is one, as Ctrl-C does. Who waits for the step
// gets what came of it by then.
func (l *Live) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halt != nil {
		l.halt(errInterrupted)
	}
}

// Cancel ends the run. It is graded as it stands.
func (l *Live) Cancel() { l.cancel() }

// Done is closed when there is an outcome.
func (l *Live) Done() <-chan struct{} { return l.done }

// Wait waits for the outcome.
func (l *Live) Wait(ctx context.Context) (*Outcome, error) {
	select {
	case <-l.done:
		return l.outcome, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// seat is the agent that does what it is told through a Live.
type seat struct{ l *Live }

func (s seat) Act(ctx context.Context, _ string) (string, error) {
	s.reply(false)
	select {
	case r := <-s.l.requests:
		s.l.current = r
		return r.response, r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// errCancelled is why a command ends whose caller does not want it any more, errInterrupted why one ends that was
// interrupted.
var (
	errCancelled   = errors.New("its caller cancelled it")
	errInterrupted = errors.New("it was interrupted")
)

// acting is the context of the action that was asked for last: it ends with the caller's.
func (s seat) acting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.l.current.ctx, func() { cancel(errCancelled) })
	s.l.interruptible(cancel)
	return ctx, func() {
		s.l.interruptible(nil)
		stop()
		cancel(nil)
	}
}

// interruptible says how to end the command that is under way; nil if there is none any more.
func (l *Live) interruptible(halt context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.halt = halt
}

// Close is called when the agent's turn is over.
func (s seat) Close() error {
	s.reply(true)
	return nil
}

// reply tells whoever asked for the last step what came of it.
func (s seat) reply(over bool) {
	if s.l.current.reply != nil {
		s.l.current.reply <- Turn{s.l.last, over}
		s.l.current = request{}
	}
}
