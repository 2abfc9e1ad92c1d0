package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
)

// Local is an environment in this process.
type Local struct {
	// Cloud belongs to the environment alone. The caller closes it.
	Cloud   cloud.Cloud
	Scratch string // directory for temporary files; empty for the system's
	// Self runs a tool of this program, confined: the agent's kubectl and helm. See [aci.Options].
	Self []string
	// Telemetry is where the agent's actions read metrics and traces, instead of what the lab has deployed.
	Telemetry observe.External
	// Revival is what the cloud was started from, if that was an application: it need not be deployed.
	Revival *Revival
	// Made is told of an application that was deployed and is well, in a cloud that can have a past; and again when it
	// was well under another load. It may be nil.
	Made func(*app.App, Made)

	stage *Stage
	keeps bool // the stage is for one run after another

	admit func(context.Context) (*access, error) // newAccess, but in tests

	// Of the run.
	setting  Setting
	tell     Tell
	baseline grade.Look // how the healthy system looks
	healthy  agent.Interval
	faults   []fault.Fault
	decoys   *decoy.Decoys // nil for none
	life     *noise.Life
	way      *access
	// What acts by itself in the healthy system, and when the agent's turn began.
	healthyActors, found actors
	began                time.Time
	guard                *guard.Guard // nil until the agent has its turn
	runOn                atomic.Int64 // commands of the agent in containers that may go on by themselves
	sampler              sampling
	approvals            approvals
	shift                *shift // nil for other tasks
}

var _ Environment = (*Local)(nil)

// Keep has an application for one run after another, deployed if it was not revived: before each it is reset, so that
// it is as if nothing had happened. The cloud must be a [cloud.Resetter].
func (l *Local) Keep(ctx context.Context, a *app.App) (err error) {
	if l.stage != nil {
		return nil
	}
	l.keeps = true
	if l.Revival != nil && l.Revival.App.Name == a.Name {
		l.stage, err = reviveStage(l.Cloud, l.Revival)
	} else {
		l.stage, err = NewStage(ctx, l.Cloud, a)
	}
	return err
}

// Ready sees to it that there is an application for a run that begins at some time later, when Prepare is called. Of
// the run there is nothing before: no users, no faults, nothing that is recorded. The past of a cloud that was started
// with one has ended by then, so Prepare has the cloud reset to one that ends as the run begins: nothing in it tells of
// the wait.
func (l *Local) Ready(ctx context.Context, a *app.App) (err error) {
	if l.stage == nil {
		l.stage, err = l.newStage(ctx, a)
	}
	if err == nil {
		l.stage.aged = nil
	}
	return err
}

// Fits reports whether a problem can be run here: no application is deployed, or the problem's is.
func (l *Local) Fits(p *problem.Problem) bool { return l.stage == nil || l.stage.Fits(p) }

// Close ends the load. The application stays where it is.
func (l *Local) Close() {
	if l.way != nil {
		l.way.close()
		l.way = nil
	}
	l.endShift()
	l.sampler.end()
	l.calm(context.Background())
	l.leaveGate()
	if l.stage != nil {
		l.stage.Close()
	}
}

// Done returns nil: if the environment died, so would this process.
func (l *Local) Done() <-chan struct{} { return nil }

// Err is nil.
func (l *Local) Err() *Death { return nil }

func (l *Local) phase(name string) { l.tell(record.PhaseEvent, record.Phase{Name: name}) }

// Prepare sets up the situation that the agent will find.
func (l *Local) Prepare(ctx context.Context, s Setting, tell Tell) (a Admission, err error) {
	l.settle(ctx)
	l.shift = nil
	s.Problem = s.Problem.In(cloud.TenancyOf(l.Cloud))
	l.setting, l.tell, l.faults, l.decoys, l.healthy = s, tell, nil, nil, agent.Interval{}
	l.runOn.Store(0)
	if why := s.Problem.Lacks(l.Cloud); why != "" {
		return a, errors.New(why)
	}
	if err := l.setUp(ctx); err != nil {
		return a, err
	}
	if !l.Fits(s.Problem) {
		return a, ErrMisfit
	}
	l.stage.log, l.stage.goal, l.stage.began = s.Log, s.Problem.Goal(), nil
	if t := cloud.TenancyOf(l.Cloud); t != nil && t.Load != "" {
		l.phase("starting the load generator as a pod in " + t.Load)
	}
	l.phase("waiting until its users are served")
	l.baseline, err = l.stage.set(ctx, s.Problem.Load(), s.Seed, l.awaitsAlert("the start"))
	if err != nil {
		return a, err
	}
	past, err := l.past(ctx)
	if err != nil {
		return a, err
	}
	tell(record.PastEvent, past)
	l.tellIsolation()
	tell(record.BaselineEvent, l.baseline)
	l.tellMade()
	l.Made = nil          // What an agent can reach makes no worlds any more.
	if !s.Problem.Day() { // A day begins with the shift.
		if err := l.stage.load.Begin(ctx); err != nil {
			return a, err
		}
	}
	l.tellLoad()
	if l.healthyActors, err = l.stage.actors(ctx); err != nil {
		return a, err
	}
	if err := l.keepHealthy(ctx); err != nil {
		return a, err
	}
	defer func() {
		if err != nil {
			l.sampler.end()
			l.undo(ctx)
		}
	}()
	l.sampler.begin(ctx, l.stage, l.baseline, l.weights(), tell)
	page, err := l.handOver(ctx)
	if err != nil {
		return a, err
	}
	if s.Problem.Task == problem.OnCall {
		l.shift = newShift(l)
	}
	admit := l.newAccess
	if l.admit != nil {
		admit = l.admit
	}
	if l.way, err = admit(ctx); err != nil {
		return a, err
	}
	l.began = time.Now()
	if err := l.stage.beginTurn(ctx); err != nil {
		return a, err
	}
	if g := l.stage.goal; g != nil && len(g.Objectives) > 0 {
		if found, err := l.stage.operated(ctx); err == nil { // Else nobody knows, and the agent is judged all the same.
			tell(record.FoundEvent, found)
		}
	}
	l.life.HandOver()
	if l.found, err = l.stage.actors(ctx); err != nil {
		l.found = l.healthyActors
	}
	if l.shift != nil {
		if err := l.shift.begin(ctx, time.Now()); err != nil {
			return a, err
		}
	}
	return Admission{
		Kubeconfig: l.way.kubeconfig, Confinement: l.way.aci.Confinement(), Healthy: l.healthy, Page: page,
	}, nil
}

// setUp sees to it that there is an application.
func (l *Local) setUp(ctx context.Context) (err error) {
	if l.stage != nil {
		return nil
	}
	a := l.setting.Problem.App
	if l.Revival != nil {
		l.phase("starting from a kept " + l.Revival.App.Name)
	} else {
		l.phase("deploying " + a.Name)
	}
	l.stage, err = l.newStage(ctx, a)
	return err
}

// newStage takes the application that was revived, or deploys one.
func (l *Local) newStage(ctx context.Context, a *app.App) (*Stage, error) {
	if l.Revival != nil {
		return reviveStage(l.Cloud, l.Revival)
	}
	return newStage(ctx, l.Cloud, a)
}

// tellMade tells of the application that was deployed, once it has proved to serve its users, if there is anything
// to tell that was not known.
func (l *Local) tellMade() {
	if l.Made == nil || l.stage.snapshot == nil {
		return
	}
	if r := l.stage.revival; r != nil && len(l.stage.healthy) <= len(r.Made.Healthy) {
		return
	}
	l.Made(l.stage.app, Made{Snapshot: l.stage.snapshot, Healthy: maps.Clone(l.stage.healthy)})
	l.Made = nil
}

// keepHealthy lets an agent that learns from telemetry have its baseline.
func (l *Local) keepHealthy(ctx context.Context) error {
	wait := l.setting.Baseline
	if wait == 0 {
		return nil
	}
	l.phase(fmt.Sprintf("watching the healthy system for %v", wait))
	l.healthy.From = time.Now()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.healthy.To = time.Now()
	return nil
}

// injectingPhase is the one in which faults are brought about.
const injectingPhase = "injecting"

// inject brings the faults about, in the middle of what else goes on, and waits until each can be seen.
func (l *Local) inject(ctx context.Context) error {
	p := l.setting.Problem
	faults, err := p.Bind()
	if err != nil {
		return err
	}
	l.phase(injectingPhase) // The agent never learns of it, and a healthy twin has the phase too.
	ctx, cancel := context.WithTimeout(ctx, manifestTimeout)
	defer cancel()
	if err := l.release(ctx, faults); err != nil {
		return err
	}
	for i, f := range faults {
		spec := p.Faults()[i]
		var symptom string
		err := poll(ctx, lookInterval/4, func() (bool, error) {
			var err error
			symptom, err = f.Manifest(ctx, l.stage.env)
			return symptom != "", err
		})
		if err != nil {
			return fmt.Errorf("%s in %s does not show: %w", spec.Kind, spec.Target, err)
		}
		l.tell(record.FaultEvent, record.Fault{
			Kind: spec.Kind, Target: spec.Target, Symptom: symptom, Names: fault.NamesOf(f),
			Time: time.Now(),
		})
	}
	return nil
}

// release makes the changes that are no fault, with the injection of faults in the middle of them. Some go on
// until the agent is done.
func (l *Local) release(ctx context.Context, faults []fault.Fault) error {
	env := l.stage.env
	l.life = l.newLife(l.setting.Seed)
	l.life.Later = l.laterReaches()
	if err := l.atFirst(ctx); err != nil {
		return err
	}
	if err := l.placeDecoys(ctx, faults); err != nil {
		return err
	}
	var injections []noise.Injection
	for i, f := range faults {
		spec := l.setting.Problem.Faults()[i]
		injections = append(injections, noise.Injection{
			Reach: fault.ReachOf(f), Do: func(ctx context.Context) error {
				if env.Injected.IsZero() {
					env.Injected = time.Now()
				}
				l.faults = append(l.faults, f) // What fails half-way is undone as well.
				if err := f.Inject(ctx, env); err != nil {
					return fmt.Errorf("inject %s into %s: %w", spec.Kind, spec.Target, err)
				}
				return nil
			},
		})
	}
	if err := l.life.Release(ctx, injections); err != nil {
		return err
	}
	if err := l.life.Go(ctx); err != nil {
		return err
	}
	l.tellNoise()
	if l.decoys != nil {
		l.decoys.Speak()
	}
	return nil
}

// newLife is what can go on in the application besides faults, as a seed has it.
func (l *Local) newLife(seed uint64) *noise.Life {
	env, level := l.stage.env, l.setting.Noise
	env.Injected, env.Dress, env.Applied, env.Spare, env.Seed = time.Time{}, nil, nil, nil, seed
	if l.stage.goal != nil {
		level = noise.None // Nobody else is to change what is asked for.
	}
	library, _ := l.stage.cloud.(cloud.Librarian)
	return &noise.Life{Env: env, Level: level, Seed: seed, Surge: l.surge, Library: library}
}

// calm ends what goes on besides faults.
func (l *Local) calm(ctx context.Context) {
	l.endDecoys(ctx)
	if l.life != nil {
		l.life.Stop(ctx)
		l.tellNoise()
		if l.stage.load != nil { // With what users got, who runs the lab can tell that none of it did harm.
			if w, err := l.stage.whole(ctx); err == nil {
				logs.Or(l.setting.Log).Debug("noise ended", "requests", w.Total.Requests, "failed", w.Total.Failed)
			}
		}
		l.life = nil
	}
}

// tellNoise tells what was changed since it was last told.
func (l *Local) tellNoise() {
	if changes := l.life.Changes(); len(changes) > 0 {
		l.tell(record.NoiseEvent, record.Noise{Level: string(l.setting.Noise), Changes: changes})
	}
}

// errNoWay is the error of who acts before or after an agent's turn.
var errNoWay = errors.New("no agent has its turn")

// Act does what a response asks for.
func (l *Local) Act(ctx context.Context, response string, begun func(action string)) (Reply, error) {
	if l.way == nil {
		return Reply{}, errNoWay
	}
	r, err := l.way.act(ctx, response, begun)
	if err == nil && l.shift != nil {
		l.shift.pager.addTo(&r)
	}
	return r, err
}

// Export writes the telemetry of an interval.
func (l *Local) Export(ctx context.Context, i agent.Interval) (string, error) {
	if l.way == nil {
		return "", errNoWay
	}
	dir, err := os.MkdirTemp(l.way.dir, "telemetry-")
	if err != nil {
		return "", err
	}
	w := observe.Window{
		Namespace: l.setting.Problem.App.Namespace, From: i.From, To: i.To, Step: i.Step, Services: i.Services,
	}
	return l.stage.observer.Export(ctx, w, dir, observe.CSV)
}

// Dismiss closes the agent's access to the cloud, and takes back what it has written in a transaction that it has not
// committed. Nothing is changed any more by others, either.
func (l *Local) Dismiss(ctx context.Context) error {
	defer l.calm(ctx)
	l.endShift()
	if l.way != nil {
		l.tell(record.DoingEvent, l.way.monitor.end())
		l.way.close()
		l.way = nil
	}
	if l.guard == nil {
		return nil
	}
	if t, err := l.guard.Leave(context.WithoutCancel(ctx)); err != nil {
		l.phase("the agent's open transaction could not be aborted: " + err.Error())
	} else if t != nil {
		l.phase(fmt.Sprintf("the agent has left transaction %d open: it is aborted", t.Number))
	}
	return nil
}

// Watch looks at the system after the agent was done.
func (l *Local) Watch(ctx context.Context, interrupted bool) error {
	if l.stage == nil {
		return nil
	}
	defer l.leaveGate()
	seedCloud(l.stage.cloud, aftermathSeed(l.setting.Seed))
	if l.shift != nil {
		l.watchShift(ctx, interrupted)
	} else {
		l.watchAftermath(ctx, interrupted)
	}
	l.sampler.end()
	l.undo(ctx)
	return nil
}

// undo recovers from the faults, however the run ended: the cluster may be somebody's.
func (l *Local) undo(ctx context.Context) {
	l.calm(ctx)
	if l.keeps {
		return // It is reset before its next run.
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	l.undoDecoys(ctx)
	for _, f := range l.faults {
		if err := f.Recover(ctx, l.stage.env); err != nil {
			l.phase("recovering: " + err.Error())
		}
	}
}
