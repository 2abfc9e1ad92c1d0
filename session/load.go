package session

import (
	"cmp"
	"context"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
)

// Load is load that runs until it is stopped, in this process or in a pod of the cluster. Its methods are safe for
// concurrent use.
type Load interface {
	// Snapshot is what its users got so far. It fails if who sends the load cannot be asked, or has lost count: no
	// answer of the load's is no outage of the application's.
	Snapshot(ctx context.Context) (*workload.Snapshot, error)
	// Lag is how late the load itself was of late. It is that of the last answer if there is no newer one.
	Lag() workload.Lag
	// Begin lets the arrivals of a load that is held begin. It may be called more than once.
	Begin(ctx context.Context) error
	// End ends the load: no new requests. It does not wait for the last answers.
	End()
	// Stop ends the load, waits for the last answers and returns what its users got.
	Stop(ctx context.Context) (workload.SLI, error)
	// From says where it comes from.
	From() record.Load

	// surge sends another load beside this one, which has an end, and returns when it is over or ctx ends.
	surge(ctx context.Context, spec workload.Spec) error
}

// StartLoad puts an application under load: from a pod where the cloud's tenancy has a namespace for that, else from
// this process. One whose rate changes is held at its highest rate until its Begin is called.
func StartLoad(ctx context.Context, c cloud.Cloud, a *app.App, l *problem.Load, seed uint64) (Load, error) {
	spec, err := specOf(a, l, seed)
	if err != nil {
		return nil, err
	}
	if t := cloud.TenancyOf(c); t != nil && t.Load != "" {
		return startPodLoad(ctx, c, t, a, spec)
	}
	target := workload.Target{BaseURL: "http://" + a.Host(), DialContext: c.Dial}
	g, err := workload.New(spec, target)
	if err != nil {
		return nil, err
	}
	load := &ownLoad{g, target, make(chan struct{})}
	go func() {
		defer close(load.done)
		_ = g.Run(context.Background()) // It ends by Stop alone.
	}()
	return load, nil
}

// specOf is a load on an application.
func specOf(a *app.App, l *problem.Load, seed uint64) (workload.Spec, error) {
	m, err := workload.FindMix(a.Mixes, cmp.Or(l.Mix, a.Mix))
	if err != nil {
		return workload.Spec{}, err
	}
	spec := l.Spec(m)
	spec.Seed, spec.Held = seed, true
	return spec, nil
}

// ownLoad is load of this process.
type ownLoad struct {
	generator *workload.Generator
	target    workload.Target
	done      chan struct{}
}

var _ Load = (*ownLoad)(nil)

func (l *ownLoad) Snapshot(context.Context) (*workload.Snapshot, error) {
	return l.generator.Snapshot(), nil
}

func (l *ownLoad) Lag() workload.Lag { return l.generator.Lag() }

func (l *ownLoad) Begin(context.Context) error {
	l.generator.Begin()
	return nil
}

func (l *ownLoad) End() { l.generator.Stop() }

func (l *ownLoad) Stop(ctx context.Context) (workload.SLI, error) {
	l.generator.Stop()
	select {
	case <-l.done:
		return l.generator.Snapshot().Window("whole").Total, nil
	case <-ctx.Done():
		return workload.SLI{}, context.Cause(ctx)
	}
}

func (l *ownLoad) From() record.Load { return record.Load{From: record.FromHere} }

func (l *ownLoad) surge(ctx context.Context, spec workload.Spec) error {
	g, err := workload.New(spec, l.target)
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

// surge has more users come for a while: a part of how many there were when the system was well. They come from where
// the others do, do what those do, and nobody asks what they got.
func (l *Local) surge(ctx context.Context, part float64, lasting time.Duration, seed uint64) {
	more := problem.Load{Mix: l.setting.Problem.Load().Mix}
	more.Rate = workload.Constant(part * l.baseline.Load.Total.Rate)
	spec, err := specOf(l.stage.app, &more, seed)
	if err == nil {
		spec.Duration = lasting
		err = l.stage.load.surge(ctx, spec)
	}
	if err != nil && ctx.Err() == nil { // When the agent is done, its last requests are given up.
		logs.Or(l.setting.Log).Debug("no load spike", "why", err)
	}
}

// whole is what the load's users got since it began.
func (s *Stage) whole(ctx context.Context) (workload.Window, error) {
	snapshot, err := s.load.Snapshot(ctx)
	if err != nil {
		return workload.Window{}, err
	}
	return snapshot.Window("whole"), nil
}

// tellLoad tells where the load comes from, where there is more than one place.
func (l *Local) tellLoad() {
	if cloud.TenancyOf(l.Cloud) == nil {
		return
	}
	l.tell(record.LoadEvent, l.stage.load.From())
}
