package session

import (
	"context"
	"errors"

	"github.com/aiopslab/aiopslab/grade"
)

// Attended is an optional power of an Environment: to say how the users of its application fare. An agent is never
// told; it is for a reward.
type Attended interface {
	// Users says how users were served in the last seconds. It may be asked from when the agent has its turn until the
	// next Prepare, while an action goes on as well.
	Users(ctx context.Context) (Experience, error)
}

// Experience is how users are served.
type Experience struct {
	Served float64 `json:"served"` // from 0 to 1; see [grade.Served]
	Known  bool    `json:"known"`  // there were users
}

var _ Attended = (*Local)(nil)

// Users says how users were served in the last seconds.
func (l *Local) Users(ctx context.Context) (Experience, error) {
	if l.stage == nil || l.stage.load == nil {
		return Experience{}, errNoWay
	}
	load, err := l.stage.load.Snapshot(ctx)
	if err != nil {
		return Experience{}, err
	}
	served, known := grade.Served(l.baseline.Load, load.Window(loadWindow))
	return Experience{served, known}, nil
}

// errUnattended is the error of who asks for users where nobody can say.
var errUnattended = errors.New("the environment cannot say how its users are served")

// Users says how users were served in the last seconds, while the agent has its turn.
func (l *Live) Users(ctx context.Context) (Experience, error) {
	a, ok := l.environment.(Attended)
	if !ok {
		return Experience{}, errUnattended
	}
	return a.Users(ctx)
}
