package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

const (
	// minRestored is how long the load of a stage that was reset must have gone well.
	minRestored = 250 * time.Millisecond
	// resetTimeout is how long a reset may take.
	resetTimeout = time.Minute
)

// Stage is where runs take place: an application that is deployed in a cloud, and under load while
// there is a run. A run sets one up for itself, unless it is given one.
type Stage struct {
	cloud    cloud.Cloud
	app      *app.App
	client   kubernetes.Interface
	observer *observe.Observer
	// namespaces are those that are looked at, where not all are the lab's; nil for all.
	namespaces []string
	env        *fault.Env
	load       Load // nil until the first run
	// healthy is how the application looks when it is well, under each load it has had, by its key.
	healthy map[string]grade.Look
	served  []grade.Serving // who answered when it was well; nil until then
	// snapshot is of the application before any run; nil if there was none yet, or can be only one, in a cloud without
	// a past.
	snapshot cloud.Snapshot
	revival  *Revival  // what the cloud was started from; nil if the application was deployed
	used     bool      // by a run, since it was deployed or reset
	runs     int       // that have used it
	aged     *uint64   // the seed of the past that it has; nil for none
	unclean  string    // why the last reset is not proved to be clean; empty if nothing differed
	cast     past.Cast // who was there before the last reset, as its past has it
	usual    usual     // since when there has been the usual load after it
	// alerting has the alerts of the application when it is well: not of its start, but its own.
	alerting map[string]bool
	log      *slog.Logger       // of the run; nil for none
	goal     *problem.Goal      // of an operation; nil for other runs
	began    *grade.Spent       // what users had got when the agent's turn began; nil if nobody counts
	made     map[string]makings // of which pods were made then that are to be restarted, by their Deployment
	hunger   hunger
}

// NewStage deploys an application for one run after another: before each it is reset, so that it is
// as if nothing had happened. The cloud must be a [cloud.Resetter]; it is the stage's alone until the
// stage is closed, and left to the caller to close.
func NewStage(ctx context.Context, c cloud.Cloud, a *app.App) (*Stage, error) {
	resetter, ok := c.(cloud.Resetter)
	if !ok {
		return nil, errors.New("this cloud cannot be reset; use a new one for every run")
	}
	s, err := newStage(ctx, c, a)
	if err != nil {
		return nil, err
	}
	if s.snapshot, err = settledSnapshot(ctx, resetter); err != nil {
		s.Close()
		return nil, fmt.Errorf("take a snapshot: %w", err)
	}
	return s, nil
}

// newStage deploys an application for one run.
func newStage(ctx context.Context, c cloud.Cloud, a *app.App) (*Stage, error) {
	if err := Deploy(ctx, c, a); err != nil {
		return nil, fmt.Errorf("deploy %s: %w", a.Name, err)
	}
	return openStage(c, a)
}

// reviveStage takes an application as it was revived.
func reviveStage(c cloud.Cloud, r *Revival) (*Stage, error) {
	s, err := openStage(c, r.App)
	if err == nil {
		s.snapshot, s.cast, s.revival, s.aged = r.Made.Snapshot, r.cast, r, &r.Seed
		maps.Copy(s.healthy, r.Made.Healthy)
	}
	return s, err
}

// openStage takes an application that is there.
func openStage(c cloud.Cloud, a *app.App) (*Stage, error) {
	// What the lab itself reads and writes must not depend on what agents do to the API.
	client, err := kubernetes.NewForConfig(cloud.DirectConfig(c))
	if err != nil {
		return nil, err
	}
	o, err := observe.New(cloud.DirectConfig(c), c.Dial, cloud.TenancyOf(c))
	if err != nil {
		return nil, err
	}
	s := &Stage{
		cloud: c, app: a, client: client, observer: o, healthy: map[string]grade.Look{},
		alerting: map[string]bool{},
	}
	s.env = &fault.Env{
		Client: client, Config: cloud.DirectConfig(c), Dial: c.Dial, App: a,
		Load: func(ctx context.Context) (*workload.Snapshot, error) { return s.load.Snapshot(ctx) },
	}
	s.env.Chaos, _ = c.(cloud.Chaos)
	if t := cloud.TenancyOf(c); t != nil {
		s.env.Guest, s.namespaces = true, t.Namespaces
		if l, ok := c.(cloud.Lender); ok {
			s.env.Lend = l.Lend
		}
	}
	return s, nil
}

// Fits reports whether a problem can be run on the stage: it has the same application.
func (s *Stage) Fits(p *problem.Problem) bool { return s.app.Name == p.App.Name }

// set makes the stage ready for a run: as it was deployed, under load, well, and without alerts from its
// start. It returns how that looks. Waits is told of an alert, if there is any to wait for.
func (s *Stage) set(ctx context.Context, l *problem.Load, seed uint64,
	waits func(alert string),
) (baseline grade.Look, err error) {
	seedCloud(s.cloud, seed)
	if baseline, err = s.serve(ctx, l, seed); err != nil {
		return baseline, err
	}
	if err := s.recall(ctx, l, seed); err != nil {
		return baseline, err
	}
	return s.hush(ctx, l, baseline, waits)
}

// hush waits until no alert is left of what was there before the run, and returns how the application looks then. That
// is how it looked before, if there was none to wait for.
func (s *Stage) hush(ctx context.Context, l *problem.Load, baseline grade.Look,
	waits func(alert string),
) (grade.Look, error) {
	if s.goal != nil { // Who is asked to bring latency down is not paged, and alerts may be about it.
		return baseline, nil
	}
	waited := false
	err := awaitQuiet(ctx, s.observer.Stirring, s.alerting, func(alert string) {
		waited = true
		waits(alert)
	})
	if err != nil || !waited {
		return baseline, err
	}
	// What led to alerts was in the first look, too.
	if baseline, err = s.awaitHealth(ctx, minCovered, minCovered); err == nil {
		s.remember(l, baseline)
	}
	return baseline, err
}

// remember notes how the application looks under a load when it is well. On a day on which the machine is busy that is
// good for the run that sees it, and no other.
func (s *Stage) remember(l *problem.Load, look grade.Look) {
	if look.Exemplary() {
		s.healthy[l.Key()] = look
	} else {
		delete(s.healthy, l.Key())
	}
}

// serve puts the application under load, as it was deployed, and waits until it is well.
func (s *Stage) serve(ctx context.Context, l *problem.Load, seed uint64) (baseline grade.Look, err error) {
	if s.mustReset(seed) {
		if err := s.reset(ctx, seed); err != nil {
			return baseline, err
		}
	}
	s.used, s.usual, s.runs = true, usual{}, s.runs+1
	if healthy, ok := s.healthy[l.Key()]; ok {
		s.served = healthy.Serving
		return healthy, s.restart(ctx, l, seed, true)
	}
	least := minCovered
	if _, ok := s.cloud.(cloud.Historian); ok { // All of it was restored for its past.
		least, err = enough(l), s.restart(ctx, l, seed, false)
	} else {
		err = s.start(ctx, l, seed)
	}
	if err != nil {
		return baseline, err
	}
	if baseline, err = s.awaitHealth(ctx, least, minCovered); err == nil {
		s.remember(l, baseline)
		s.served = baseline.Serving
	}
	return baseline, err
}

// start puts the application under load.
func (s *Stage) start(ctx context.Context, l *problem.Load, seed uint64) error {
	load, err := StartLoad(ctx, s.cloud, s.app, l, seed)
	if err == nil {
		s.load = load
	}
	return err
}

// mustReset reports whether the application must be reset before it can be put under load: another run has used it,
// or it has no past yet that fits the seed.
func (s *Stage) mustReset(seed uint64) bool {
	if s.used {
		return true
	}
	_, historian := s.cloud.(cloud.Historian)
	return historian && (s.aged == nil || *s.aged != seed)
}

// restart puts an application that was just restored under load again. Its first users may come too
// early: as long as one is not served, they are forgotten, and the load begins anew. Some applications never serve all
// of them: after a while the load goes on as it is, unless it is known that this one does.
func (s *Stage) restart(ctx context.Context, l *problem.Load, seed uint64, known bool) error {
	ctx, cancel := context.WithTimeout(ctx, healthyTimeout)
	defer cancel()
	for began := time.Now(); ; {
		if err := s.start(ctx, l, seed); err != nil {
			return err
		}
		failed, err := s.beginning(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("the application does not serve its users after a reset: %w", err)
		case !failed:
			if err := s.mark(ctx); err != nil {
				return err
			}
			_, err := s.awaitHealth(ctx, minRestored, minRestored)
			return err
		case !known && time.Since(began) >= warming:
			_, err := s.awaitHealth(ctx, minCovered, minCovered)
			return err
		}
		s.load.End() // Its last requests end by themselves.
	}
}

// beginning watches the first users of a load, and reports whether one of them was not served.
func (s *Stage) beginning(ctx context.Context) (failed bool, err error) {
	err = poll(ctx, minRestored/10, func() (bool, error) {
		w, err := s.whole(ctx)
		if err != nil {
			return false, err
		}
		failed = w.Total.Failed > 0
		return failed || w.Covered >= minRestored && w.Total.Requests > 0, nil
	})
	return failed, err
}

// reset brings the application back to how it was before any run, with a past where it can have one.
func (s *Stage) reset(ctx context.Context, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	s.used = true // Half-way it is of no use.
	if s.load != nil {
		s.load.End()
	}
	err := s.restore(ctx, seed)
	if s.load != nil {
		_, _ = s.load.Stop(ctx) // Requests that were under way end with the cluster's connections.
	}
	if err != nil {
		return fmt.Errorf("reset the cluster: %w", err)
	}
	s.used, s.aged = false, &seed
	return nil
}

func (s *Stage) restore(ctx context.Context, seed uint64) error {
	lived := s.snapshot
	if h, ok := s.cloud.(cloud.Historian); ok {
		var err error
		w := newPast(s.app, seed, func(c past.Cast) { s.cast = c })
		if s.snapshot == nil { // It is the first run.
			s.snapshot, err = h.Relive(ctx, w.Write)
			return err
		}
		if lived, err = h.Rewrite(lived, w.Write); err != nil {
			return err
		}
	}
	return s.restoreClean(ctx, lived)
}

// awaitHealth waits until the application serves its users, and returns how that looks. They are watched for as long as
// most, or as least if all of them are served promptly.
func (s *Stage) awaitHealth(ctx context.Context, least, most time.Duration) (look grade.Look, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthyTimeout)
	defer cancel()
	var why, told string
	interval := min(least, lookInterval) / 4
	if least < most { // Every moment counts: users are watched for no longer than they must.
		interval /= 4
	}
	err = poll(ctx, interval, func() (bool, error) {
		var err error
		if look, err = s.look(ctx, nil); err != nil {
			return false, err
		}
		if err := s.warm(ctx); err != nil {
			return false, err
		}
		covered := most
		if look.Exemplary() && look.Load.Total.P95 <= prompt {
			covered = least
		}
		if why = unhealthy(look, covered); why != told {
			logs.Or(s.log).Debug("health", "not_well", why)
			told = why
		}
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
		_, _ = s.load.Stop(context.Background()) // What its users got was seen by looks.
	}
	s.observer.Close()
}
