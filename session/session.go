// Package session is one run: an agent and a problem, from a bare cluster to a verdict.
//
//	s := session.Session{Problem: p, Agent: runbook.Entry, Cloud: c, Results: "results"}
//	outcome, err := s.Run(ctx)
//
// A run deploys the application and its telemetry, puts it under load, waits until it is well, injects
// the faults and waits until they show. Then the agent acts until it submits or meets a limit, and is
// graded. Everything that matters is in the record, an event log; the verdict is a function of it, see
// [Grade].
//
// The faults, the load and the grading are out of the agent's sight: it reaches the cluster through
// the guard, with an identity of its own.
package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// DefaultSteps and DefaultTime limit a run of an agent.
	DefaultSteps = 30
	DefaultTime  = 15 * time.Minute

	// healthyTimeout is how long a new application may take until its users are served, manifestTimeout
	// how long a fault may take to show.
	healthyTimeout  = 2 * time.Minute
	manifestTimeout = 2 * time.Minute
	// cleanTimeout is how long recovering and grading may go on after the run was interrupted.
	cleanTimeout = 30 * time.Second
	lookInterval = time.Second
)

// Session is a run to be.
type Session struct {
	Problem *problem.Problem
	Agent   agent.Entry
	// Cloud is used by this run alone, and left to the caller to close. Stage is one that fits the
	// problem, to run on instead of setting up an application on a Cloud; it is used by one run at a
	// time.
	Cloud   cloud.Cloud
	Stage   *Stage
	Results string // directory of the record
	ID      string // of the run; empty for a new one, see [NewID]
	Scratch string // directory for temporary files; empty for the system's
	Seed    uint64
	Steps   int           // limit; 0 is DefaultSteps
	Time    time.Duration // limit of the agent's work; 0 is DefaultTime
	// Self runs a tool of this program, confined: the agent's kubectl and helm. See [aci.Options].
	Self []string
	// Model is the chat model of an agent that has one, and Budget what it may cost.
	Model  llm.Model
	Budget Budget
	// Judge scores the agent's reasoning, if it is set.
	Judge grade.Chat
	// Progress is told of every event as it is recorded. It may be nil.
	Progress func(kind string, data any)
	// Events is told of every event of the record as it is written, in order. It may be nil.
	Events func(record.Event)
}

// Outcome is how a run ended.
type Outcome struct {
	ID      string  `json:"id"`
	Problem string  `json:"problem"`
	Agent   string  `json:"agent"`
	Record  string  `json:"record"`  // file of the event log
	Session string  `json:"session"` // file in AIOpsLab's format
	Verdict Verdict `json:"verdict"`
}

// run is a session under way.
type run struct {
	*Session
	id       string
	log      *record.Log
	stage    *Stage
	baseline grade.Look // how the healthy system looks
	faults   []fault.Fault
	trace    []grade.Turn
	healthy  agent.Interval // when the system was known to be well
	// What acts by itself in the healthy system, and when the agent's turn began.
	healthyActors, found actors
	began                time.Time
	runOn                atomic.Int64 // commands of the agent in containers that may go on by themselves
	secrets              []secret
	stop                 context.CancelCauseFunc
	guard                *guard.Guard // nil until the agent has its turn
}

// Run takes the agent through the problem. It returns an error only if there is no record to tell of
// the failure; anything else is in the verdict. If ctx ends, the agent is stopped, and what there is
// is graded.
func (s *Session) Run(ctx context.Context) (*Outcome, error) {
	if s.Agent.NeedsModel && s.Model == nil {
		return nil, fmt.Errorf("the agent %s needs a model", s.Agent.Name)
	}
	id := s.ID
	if id == "" {
		id = NewID()
	}
	if err := os.MkdirAll(s.Results, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	file := filepath.Join(s.Results, fmt.Sprintf("%s_%s.jsonl", s.Problem.ID, id))
	log, err := record.Create(file, record.Run{ID: id, Problem: s.Problem.ID, Agent: s.Agent.Name, Seed: s.Seed})
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	log.Watch(s.Events)
	r := &run{Session: s, id: id, log: log}
	r.work(ctx)
	if err := log.Close(); err != nil {
		return nil, fmt.Errorf("the record %s is incomplete: %w", file, err)
	}
	return finish(file)
}

// finish grades a record that has no verdict yet, appends it, and writes AIOpsLab's session file.
func finish(file string) (*Outcome, error) {
	rec, err := record.Read(file)
	if err != nil {
		return nil, err
	}
	v, err := Grade(rec)
	if err != nil {
		return nil, err
	}
	return conclude(file, rec, v)
}

// NewID returns an id for a run. Ids sort by the second they were made in.
func NewID() string {
	b := make([]byte, 6)
	rand.Read(b) //nolint:errcheck // It never fails.
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b)
}

// event records an event and reports it.
func (r *run) event(kind string, data any) {
	r.append(kind, data)
	if r.Progress != nil {
		r.Progress(kind, data)
	}
}

func (r *run) append(kind string, data any) {
	if err := r.log.Append(kind, data); err != nil && r.stop != nil {
		r.stop(fmt.Errorf("the record cannot be written: %w", err))
	}
}

// secret is an event that the record does not have yet.
type secret struct {
	kind string
	data any
}

// withhold reports an event now, and records it when the agent is done: an agent that is a program on
// this machine could read the record.
func (r *run) withhold(kind string, data any) {
	r.secrets = append(r.secrets, secret{kind, data})
	if r.Progress != nil {
		r.Progress(kind, data)
	}
}

// disclose records what was withheld.
func (r *run) disclose() {
	for _, s := range r.secrets {
		r.append(s.kind, s.data)
	}
	r.secrets = nil
}

func (r *run) phase(name string) { r.event(record.PhaseEvent, record.Phase{Name: name}) }

// work does everything that is recorded. What goes wrong is recorded as well.
func (r *run) work(ctx context.Context) {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.withhold(record.ProblemEvent, describe(r.Problem))
	defer func() {
		r.leaveGate()
		if r.stage != nil && r.Stage == nil {
			r.stage.Close()
		}
	}()
	if err := r.prepare(ctx); err != nil {
		class := Infra
		if errors.Is(context.Cause(ctx), context.Canceled) {
			class, err = Inconclusive, errors.New("interrupted before the agent could begin")
		}
		r.disclose()
		r.event(record.SubmissionEvent, record.Submission{Reason: err.Error(), Class: string(class)})
		return
	}
	r.agentTurn(ctx)
	r.disclose()
	r.phase("grading")
	r.watchAftermath(context.WithoutCancel(ctx), ctx.Err() != nil)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	r.recover(after)
	if r.Judge != nil && ctx.Err() == nil {
		r.phase("asking the judge")
		r.judge(after)
	}
}

// prepare brings about the situation that the agent is to find.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.stage = r.Stage; r.stage == nil {
		r.phase("deploying " + r.Problem.App.Name)
		if r.stage, err = newStage(ctx, r.Cloud, r.Problem.App); err != nil {
			return err
		}
	}
	if !r.stage.Fits(r.Problem) {
		return fmt.Errorf("the stage has %s on it, the problem is about %s", r.stage.app.Name, r.Problem.App.Name)
	}
	r.phase("waiting until its users are served")
	if r.baseline, err = r.stage.set(ctx, r.Problem.Document.Load, r.Seed); err != nil {
		return err
	}
	r.event(record.BaselineEvent, r.baseline)
	if r.healthyActors, err = r.stage.actors(ctx); err != nil {
		return err
	}
	if err := r.keepHealthy(ctx); err != nil {
		return err
	}
	return holdTurn(ctx, turnDelay(r.Problem, r.Seed), r.inject)
}

// keepHealthy lets an agent that learns from telemetry have its baseline.
func (r *run) keepHealthy(ctx context.Context) error {
	wait := r.Agent.Baseline
	if wait == 0 {
		return nil
	}
	r.phase(fmt.Sprintf("watching the healthy system for %v", wait))
	r.healthy.From = time.Now()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.healthy.To = time.Now()
	return nil
}

// inject brings the faults about and waits until each can be seen.
func (r *run) inject(ctx context.Context) error {
	faults, err := r.Problem.Bind()
	if err != nil {
		return err
	}
	r.phase("injecting") // The agent never learns of it, and a healthy twin has the phase too.
	ctx, cancel := context.WithTimeout(ctx, manifestTimeout)
	defer cancel()
	for i, f := range faults {
		spec := r.Problem.Faults()[i]
		if err := f.Inject(ctx, r.stage.env); err != nil {
			return fmt.Errorf("inject %s into %s: %w", spec.Kind, spec.Target, err)
		}
		r.faults = append(r.faults, f)
	}
	for i, f := range faults {
		spec := r.Problem.Faults()[i]
		var symptom string
		err := poll(ctx, lookInterval/4, func() (bool, error) {
			var err error
			symptom, err = f.Manifest(ctx, r.stage.env)
			return symptom != "", err
		})
		if err != nil {
			return fmt.Errorf("%s in %s does not show: %w", spec.Kind, spec.Target, err)
		}
		r.withhold(record.FaultEvent, record.Fault{Kind: spec.Kind, Target: spec.Target, Symptom: symptom, Time: time.Now()})
	}
	return nil
}

// recover undoes the faults, so that the cloud can be used again. A stage is reset before its next
// run.
func (r *run) recover(ctx context.Context) {
	if r.Stage != nil {
		return
	}
	for _, f := range r.faults {
		if err := f.Recover(ctx, r.stage.env); err != nil {
			r.phase("recovering: " + err.Error())
		}
	}
}

// judge has a model score the agent's reasoning. That it fails is no reason to lose the verdict.
func (r *run) judge(ctx context.Context) {
	j, err := grade.Judge(ctx, r.Judge, r.trace)
	if err != nil {
		j = grade.Judgement{Score: -1, Text: err.Error()}
	}
	r.event(record.JudgementEvent, j)
}

// access is an agent's way to the cloud.
type access struct {
	aci        *aci.Interface
	guard      *guard.Guard
	kubeconfig []byte
	dir        string // of temporary files
	monitor    *monitor
}

// newAccess puts the guard and the agent's interface before the cloud.
func (r *run) newAccess(ctx context.Context) (a *access, err error) {
	a = &access{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.dir, err = os.MkdirTemp(r.Scratch, "aiopslab-agent-"); err != nil {
		return nil, err
	}
	root := filepath.Join(a.dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return nil, err
	}
	a.guard, err = guard.Start(ctx, guard.Options{
		Upstream: r.stage.cloud.RESTConfig(), Direct: cloud.DirectConfig(r.stage.cloud), Journal: r.journal,
	})
	if err != nil {
		return nil, err
	}
	r.putUpGate(a.guard)
	if a.kubeconfig, err = a.guard.Kubeconfig(r.Problem.App.Namespace); err != nil {
		return nil, err
	}
	a.monitor = startMonitor(a.guard.Requests, func() time.Duration { return r.stage.load.Lag().Recent })
	a.aci, err = aci.New(aci.Options{
		Task: string(r.Problem.Task), App: r.Problem.App, Observer: r.stage.observer, Dial: a.monitor.counted(r.stage.cloud.Dial),
		Kubeconfig: a.kubeconfig, API: a.guard.Address(), Dir: root, Self: r.Self,
	})
	return a, err
}

// journal records a write of the agent.
func (r *run) journal(e guard.Entry) {
	if runsOn(e) {
		r.runOn.Add(1)
	}
	r.event(record.WriteEvent, e)
}

// close ends what the agent left running, and removes its files.
func (a *access) close() {
	if a.aci != nil {
		_ = a.aci.Close()
	}
	if a.monitor != nil {
		a.monitor.end()
	}
	if a.guard != nil {
		_ = a.guard.Shut()
	}
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
	}
}

// briefing is what the agent is told.
func (r *run) briefing(a *access) agent.Briefing {
	p := r.Problem
	b := agent.Briefing{
		Task: p.Task, Namespace: p.App.Namespace, Actions: a.aci.Actions(), Kubeconfig: a.kubeconfig, Note: r.event,
		Description: aci.Description(string(p.Task), p.App), Instructions: aci.Instructions(string(p.Task)),
	}
	if r.Model != nil {
		b.Model = newMeter(r.Model, r.Budget, r.event)
	}
	if r.Agent.KnowsTruth {
		b.Truth = p
	}
	if r.Agent.Baseline > 0 {
		b.Healthy = r.healthy
		b.Export = func(ctx context.Context, i agent.Interval) (string, error) {
			dir, err := os.MkdirTemp(a.dir, "telemetry-")
			if err != nil {
				return "", err
			}
			return r.stage.observer.Export(ctx, observe.Window{Namespace: p.App.Namespace, From: i.From, To: i.To}, dir, observe.CSV)
		}
	}
	return b
}
