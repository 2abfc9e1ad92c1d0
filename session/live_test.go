package session

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

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

// Who cancels a step ends its command. The run goes on, and the record has the step.
func TestCancelledStep(t *testing.T) {
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
	go func() {
		<-way.begun
		cancel()
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
	if len(steps) != 2 || steps[0].Observation != "its caller cancelled it" || !steps[0].Failed || steps[1].Failed {
		t.Errorf("%+v", steps)
	}
}
