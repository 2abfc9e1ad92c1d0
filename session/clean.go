package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/record"
)

// errUnclean is the error of an environment that was reset and is not proved to be as it was.
var errUnclean = errors.New("the environment is not proved to be as it was before its last run")

// maxResets is how often a cluster is reset for one run. A probe that fails on a busy machine changes an object in the
// moment after a reset; what is still there after another one stays.
const maxResets = 2

const (
	// settleFor is for how long nothing must have changed after a snapshot, and settleTries how often one is taken.
	settleFor   = 500 * time.Millisecond
	settleTries = 10
)

// settledSnapshot takes a snapshot when controllers are done with what was deployed, as far as the cloud can tell: what
// they had yet to do they would do after every reset. An application that is never quiet is taken as it is.
func settledSnapshot(ctx context.Context, r cloud.Resetter) (snapshot cloud.Snapshot, err error) {
	d, compares := r.(cloud.Differ)
	for range settleTries {
		if snapshot, err = r.Snapshot(ctx); err != nil || !compares {
			return snapshot, err
		}
		settled, begun := true, time.Now()
		for settled && time.Since(begun) < settleFor {
			select {
			case <-time.After(settleFor / 10):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			differ, err := d.Diff(ctx, snapshot)
			if err != nil {
				return snapshot, nil // A reset that cannot be compared is told of.
			}
			settled = len(differ) == 0
		}
		if settled {
			break
		}
	}
	return snapshot, nil
}

// restoreClean resets the cluster, and compares it with what it was reset to, if a run has used it and the cloud can.
// That it differs is no error here: a snapshot may have been taken a moment before a controller was done, which then
// acts after every reset. Who relies on it looks at unclean.
func (s *Stage) restoreClean(ctx context.Context, lived cloud.Snapshot) error {
	s.unclean = "this cloud cannot tell what differs"
	d, compares := s.cloud.(cloud.Differ)
	for range maxResets {
		if err := s.cloud.(cloud.Resetter).Reset(ctx, lived); err != nil {
			return err
		}
		if !compares || s.runs == 0 {
			return nil
		}
		differ, err := d.Diff(ctx, lived)
		switch {
		case err != nil:
			s.unclean = "it cannot be compared: " + err.Error()
			return nil
		case len(differ) == 0:
			s.unclean = ""
			return nil
		}
		s.unclean = fmt.Sprintf("%d of its objects differ, such as %s", len(differ),
			strings.TrimPrefix(differ[0], "/registry/"))
		logs.Or(s.log).Warn("a reset has left differences", "keys", len(differ), "such_as", differ[0])
	}
	return nil
}

// Renew resets an application that is kept for the next run, if a run has used it, with the past that the run's seed
// draws, so that whoever has the environment can do without it before the run begins. An error says why it is of no use
// any more, such as that the reset was not clean, or could not be proved to be.
func (l *Local) Renew(ctx context.Context, seed uint64, log *slog.Logger) error {
	if l.stage == nil || l.stage.runs == 0 {
		return nil
	}
	if l.stage.used {
		l.settle(ctx)
		l.stage.log = log
		seedCloud(l.stage.cloud, seed)
		if err := l.stage.reset(ctx, seed); err != nil {
			return err
		}
	}
	if why := l.stage.unclean; why != "" {
		return fmt.Errorf("%w: %s", errUnclean, why)
	}
	return nil
}

// settle ends what the last run has left under way.
func (l *Local) settle(ctx context.Context) {
	l.endShift()
	l.leaveGate()
	l.sampler.end()
	l.calm(ctx)
}

// tellIsolation tells what keeps the run apart from those before.
func (l *Local) tellIsolation() {
	if !l.keeps {
		return
	}
	i := record.Isolation{Mode: record.IsolatedFresh, Before: l.stage.runs - 1}
	if i.Before > 0 {
		i.Mode, i.Compared, i.Why = record.IsolatedReset, l.stage.unclean == "", l.stage.unclean
	}
	l.tell(record.IsolationEvent, i)
}
