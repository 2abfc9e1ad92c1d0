package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

const (
	// minRestored is how long the load of a stage that was reset must have gone well.
	minRestored = 500 * time.Millisecond
	// resetTimeout is how long a reset may take.
	resetTimeout = time.Minute
)

// Stage is where a run takes place: an application that is deployed, under load and well. A run sets
// one up for itself, unless it is given one. On a cloud that can be reset, a stage can be used for
// one run after another.
type Stage struct {
	cloud    cloud.Cloud
	problem  *problem.Problem // whose application and load these are
	client   kubernetes.Interface
	observer *observe.Observer
	load     *Load
	env      *fault.Env
	baseline grade.Look
	snapshot cloud.Snapshot
	used     bool // by a run, since it was set up or reset
}

// NewStage sets a stage up for a problem and those like it, see [Stage.Fits]. The cloud is the
// stage's alone until it is closed, and left to the caller to close. The stage can be used again and
// again.
func NewStage(ctx context.Context, c cloud.Cloud, p *problem.Problem, seed uint64) (*Stage, error) {
	resetter, ok := c.(cloud.Resetter)
	if !ok {
		return nil, errors.New("this cloud cannot be reset; use a new one for every run")
	}
	s, err := newStage(ctx, c, p, seed, func(string) {})
	if err != nil {
		return nil, err
	}
	s.load.Stop() // What it left half done would be in the snapshot.
	s.snapshot, err = resetter.Snapshot(ctx)
	if err != nil {
		s.observer.Close()
		return nil, fmt.Errorf("take a snapshot: %w", err)
	}
	s.used = true
	return s, nil
}

// newStage deploys the application, puts it under load and waits until it is well. If it fails,
// nothing of it is left but what is in the cloud.
func newStage(ctx context.Context, c cloud.Cloud, p *problem.Problem, seed uint64, phase func(string)) (s *Stage, err error) {
	s = &Stage{cloud: c, problem: p}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.client, err = kubernetes.NewForConfig(c.RESTConfig()); err != nil {
		return nil, err
	}
	phase("deploying " + p.App.Name)
	if err := Deploy(ctx, c, p.App); err != nil {
		return nil, fmt.Errorf("deploy %s: %w", p.App.Name, err)
	}
	if s.observer, err = observe.New(c.RESTConfig(), c.Dial); err != nil {
		return nil, err
	}
	phase("waiting until its users are served")
	s.env = &fault.Env{
		Client: s.client, Config: c.RESTConfig(), Dial: c.Dial, App: p.App,
		Load: func() workload.Snapshot { return *s.load.Snapshot() },
	}
	s.env.Chaos, _ = c.(cloud.Chaos)
	if err := s.startLoad(seed); err != nil {
		return nil, err
	}
	if s.baseline, err = s.awaitHealth(ctx, minCovered); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Stage) startLoad(seed uint64) (err error) {
	l := s.problem.Document.Load
	s.load, err = StartLoad(s.cloud, s.problem.App, l.Mix, l.Rate, seed)
	return err
}

// Fits reports whether a problem can be run on the stage: it has the same application and load.
func (s *Stage) Fits(p *problem.Problem) bool {
	a, b := s.problem.Document.Load, p.Document.Load
	return s.problem.App == p.App && a.Mix == b.Mix && a.Rate == b.Rate
}

// Reset brings the stage back to how it was before any run: pristine, and under load of a seed.
func (s *Stage) Reset(ctx context.Context, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	s.load.Stop()
	if err := s.cloud.(cloud.Resetter).Reset(ctx, s.snapshot); err != nil {
		return fmt.Errorf("reset the cluster: %w", err)
	}
	if err := s.startLoad(seed); err != nil {
		return err
	}
	if _, err := s.awaitHealth(ctx, minRestored); err != nil {
		return err
	}
	s.used = false
	return nil
}

// awaitHealth waits until the application serves its users, and returns how that looks.
func (s *Stage) awaitHealth(ctx context.Context, covered time.Duration) (look grade.Look, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthyTimeout)
	defer cancel()
	var why string
	err = poll(ctx, min(covered, lookInterval)/4, func() (bool, error) {
		var err error
		if look, err = s.look(ctx, nil); err != nil {
			return false, err
		}
		why = unhealthy(look, covered)
		return why == "", nil
	})
	if err != nil {
		return look, fmt.Errorf("the application is not healthy before any fault: %s: %w", why, err)
	}
	return look, nil
}

// Close ends the stage's load. The application stays where it is.
func (s *Stage) Close() {
	if s.load != nil {
		s.load.Stop()
	}
	if s.observer != nil {
		s.observer.Close()
	}
}
