package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/campaign"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/server"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/session/process"
	"github.com/aiopslab/aiopslab/world/decoy"
)

// processes are the environments of a server, each in a process of its own. Records, agents and their
// models are this process'.
type processes struct {
	state   *State
	library *problem.Library
	results string
	models  modelFlags
	policy  *policyFlags
	ceiling int64
	dir     string // of their files
	cloud   cloudFlags
	posts   *campaign.Posts // where they run; nil for this machine
	worlds  process.Worlds  // what they start from; nil for nothing
	// setups has a place for each that may be set up at a time. Setting up takes a processor for
	// seconds; if many did so at once, none would be in time.
	setups chan struct{}
	// room reports whether there is memory for one more, beside so many that are being set up; nil if that is not up to
	// this machine.
	room func(growing int) bool

	mu sync.Mutex
	up int // environments that are set up, or being so
}

// Start starts the process of an environment and returns who speaks for it. Its cluster comes up when it is known what
// for, and it is its turn.
func (p *processes) Start(_ context.Context, log *slog.Logger) (server.WorkerProcess, error) {
	g, err := newGuest(&p.cloud)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(p.dir, "env-")
	if err != nil {
		return nil, err
	}
	h := hosting{ceiling: p.ceiling, keeps: g.keeps, worlds: p.worlds, exposed: p.posts == nil}
	if p.posts != nil {
		h.place = p.posts.New()
	}
	env, err := startEnvironment(p.state, dir, h, log)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &lodging{
		processes: p, env: env, guest: g, log: log, cancel: cancel, placed: make(chan struct{}), settled: func() {},
	}
	go func() {
		defer close(l.placed)
		l.settled, l.err = p.queueUp(ctx, log)
	}()
	return newSpokesman(l), nil
}

// queueUp waits for a place among those that are set up, and for memory, and returns how to give the place back, which
// may be done more than once. Who got one is among those that are up, until it leaves.
func (p *processes) queueUp(ctx context.Context, log *slog.Logger) (giveBack func(), err error) {
	select {
	case p.setups <- struct{}{}:
	case <-ctx.Done():
		return func() {}, context.Cause(ctx)
	}
	err = untilRoom(ctx, p.enter, func() { log.Warn("there is too little memory: waiting for more") })
	if err != nil {
		<-p.setups
		return func() {}, err
	}
	return sync.OnceFunc(func() { <-p.setups }), nil
}

// enter counts one more among those that are up, if there is room. The only one has room anyway: it can wait for
// nobody.
func (p *processes) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up > 0 && p.room != nil && !p.room(len(p.setups)-1) {
		return false
	}
	p.up++
	return true
}

// leave is for one that was up.
func (p *processes) leave() {
	p.mu.Lock()
	p.up--
	p.mu.Unlock()
}

// lodging is one environment of a server.
type lodging struct {
	*processes
	env    *process.Environment
	guest  *guest       // nil for a cluster of its own
	log    *slog.Logger // with the id of the session, or of the environment for training
	cancel context.CancelFunc
	placed chan struct{} // closed when it is its turn to be set up, or will never be

	// Known then.
	settled func() // lets the next be set up
	err     error
}

// up starts the cluster for runs of a problem's application when it is its turn. The seed is that of the first run.
func (l *lodging) up(ctx context.Context, p *problem.Problem, seed uint64) error {
	if err := l.turn(ctx); err != nil {
		return err
	}
	if l.worlds == nil {
		return l.env.Open(ctx)
	}
	return l.env.OpenFor(ctx, p.App, seed)
}

// turn waits until it is its turn to be set up.
func (l *lodging) turn(ctx context.Context) error {
	select {
	case <-l.placed:
		return l.err
	case <-l.env.Done():
		return l.env.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the process, and removes its files.
func (l *lodging) Close() {
	l.cancel()
	l.env.Close()
	<-l.placed
	l.settled()
	if l.err == nil {
		l.leave()
	}
	if err := l.guest.leave(func(step string) { l.log.Debug(step) }); err != nil {
		l.log.Warn("something is left in the cluster", "error", err)
	}
	_ = os.RemoveAll(l.env.Dir)
}

func (l *lodging) Open(ctx context.Context, spec server.Spec, events func(record.Event)) (server.Run, error) {
	run, err := l.session(spec)
	if err != nil {
		return nil, err
	}
	if err := l.open(ctx, &run); err != nil {
		return nil, err
	}
	run.Events = func(e record.Event) {
		if e.Kind == record.BriefingEvent || e.Kind == record.SubmissionEvent {
			l.settled()
		}
		events(e)
	}
	if spec.Agent == "" {
		return run.Open(ctx), nil
	}
	return server.Solo(ctx, run), nil
}

// open has a cluster for a run.
func (l *lodging) open(ctx context.Context, run *session.Session) error {
	if l.guest == nil {
		return l.up(ctx, run.Problem, run.Seed)
	}
	if err := l.turn(ctx); err != nil {
		return err
	}
	if err := l.guest.open(ctx, run.ID, run.Problem, l.env); err != nil {
		return err
	}
	run.Problem = l.guest.problem(run.Problem)
	return nil
}

// noStage is why there are no environments for training on a cluster that is somebody's.
const noStage = "environments for training start over in place, which the cluster here cannot; open sessions instead"

func (l *lodging) Stage(ctx context.Context, spec server.Spec) error {
	if l.guest != nil {
		return errors.New(noStage)
	}
	p, err := spec.Find(l.library)
	if err != nil {
		return err
	}
	if err := l.up(ctx, p, spec.Seed); err != nil {
		return err
	}
	defer l.settled()
	return l.env.Keep(ctx, p)
}

func (l *lodging) Episode(ctx context.Context, spec server.Spec, events func(record.Event)) (server.Run, error) {
	run, err := l.session(spec)
	if err != nil {
		return nil, err
	}
	if err := l.turn(ctx); err != nil {
		return nil, err
	}
	if !l.env.Fits(run.Problem) {
		return nil, server.ErrMisfit
	}
	run.Events, run.Log = events, l.log.With("run", spec.ID)
	return run.Open(ctx), nil
}

// session is the run of a spec.
func (l *lodging) session(spec server.Spec) (run session.Session, err error) {
	run = session.Session{
		ID: spec.ID, Agent: agent.Entry{Name: spec.Name}, Environment: l.env, Results: l.results, Scratch: l.env.Dir,
		HandOver: session.HandOver(spec.HandOver), Seed: cmp.Or(spec.Seed, session.NewSeed()), Steps: spec.MaxSteps,
		Time: time.Duration(spec.MaxTime * float64(time.Second)), Budget: l.models.budget(), Log: l.log,
		Policy: l.policy.policy, Approve: l.policy.approve(l.state, false), Lived: l.cloud.past.lived,
	}
	if l.policy.asksElsewhere() {
		run.Desk = session.NewDesk()
	}
	if run.Problem, err = spec.Find(l.library); err != nil {
		return run, err
	}
	if run.Noise, err = noiseLevel(l.state, spec.Noise); err != nil {
		return run, err
	}
	if run.Decoys, err = decoy.Of(spec.Decoys); err != nil {
		return run, err
	}
	if run.Judge, err = l.models.openJudge(l.state); err != nil {
		return run, err
	}
	if spec.Near {
		run.Agent.Gap = neighbour
	}
	if spec.Agent != "" {
		run.Agent, run.Model, err = openAgent(l.state, l.models, spec.NewSession)
	}
	return run, err
}

// openAgent returns the named agent of a session, and its model.
func openAgent(s *State, models modelFlags, n server.NewSession) (agent.Entry, llm.Model, error) {
	a, err := findAgent(s, n.Agent, &cage.Cage{})
	if err != nil {
		return a, nil, err
	}
	models.model = cmp.Or(n.Model, models.model)
	m, err := models.open(s, a)
	if err != nil || m == nil {
		return a, nil, err
	}
	return a, sampled{m, n.Sampling}, nil
}

// checkAgent says why a session with a named agent cannot be run. Its model, and the judge, are asked for a word:
// a wrong key or name is told before anybody waits for a cluster.
func checkAgent(ctx context.Context, s *State, models modelFlags, n server.NewSession) error {
	a, _, err := openAgent(s, models, n)
	if err != nil {
		return err
	}
	models.model = cmp.Or(n.Model, models.model)
	if !a.NeedsModel {
		models.model = ""
	}
	err = models.check(ctx, s)
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	why := strings.TrimPrefix(err.Error(), "--") // Callers have no flags.
	if f.hint != "" {
		why += ". " + f.hint
	}
	if f.code != ExitUsage {
		return fmt.Errorf("%w: %s", server.ErrModel, why)
	}
	return errors.New(why)
}

// sampled is a model that is asked to reply in a certain way.
type sampled struct {
	llm.Model
	how server.Sampling
}

func (m sampled) Chat(ctx context.Context, r llm.Request) (llm.Reply, error) {
	if m.how.Temperature != nil {
		r.Temperature = m.how.Temperature
	}
	if m.how.TopP != nil {
		r.TopP = m.how.TopP
	}
	if m.how.MaxTokens > 0 {
		r.MaxTokens = m.how.MaxTokens
	}
	return m.Model.Chat(ctx, r)
}
