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
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
)

const (
	// DefaultSteps and DefaultTime limit a run of an agent.
	DefaultSteps = 30
	DefaultTime  = 15 * time.Minute

	// healthyTimeout is how long a new application may take until its users are served, manifestTimeout
	// how long a fault may take to show.
	healthyTimeout  = 2 * time.Minute
	manifestTimeout = 2 * time.Minute
	// settleTimeout is how long a mitigation may take to have effect after the agent is done: a
	// container may be in a back-off of this length.
	settleTimeout = 90 * time.Second
	// cleanTimeout is how long recovering and grading may go on after the run was interrupted.
	cleanTimeout = 30 * time.Second
	lookInterval = time.Second
)

// Session is a run to be.
type Session struct {
	Problem *problem.Problem
	Agent   agent.Entry
	Cloud   cloud.Cloud // used by this run alone, and left to the caller to close
	Results string      // directory of the record
	Scratch string      // directory for temporary files; empty for the system's
	Seed    uint64
	Steps   int           // limit; 0 is DefaultSteps
	Time    time.Duration // limit of the agent's work; 0 is DefaultTime
	// Self runs a tool of this program, confined: the agent's kubectl and helm. See [aci.Options].
	Self []string
	// Judge scores the agent's reasoning, if it is set.
	Judge grade.Chat
	// Progress is told of every event as it is recorded. It may be nil.
	Progress func(kind string, data any)
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
	client   kubernetes.Interface
	observer *observe.Observer
	load     *Load
	env      *fault.Env
	faults   []fault.Fault
	trace    []grade.Turn
	baseline grade.Look
	stop     context.CancelCauseFunc
}

// Run takes the agent through the problem. It returns an error only if there is no record to tell of
// the failure; anything else is in the verdict. If ctx ends, the agent is stopped, and what there is
// is graded.
func (s *Session) Run(ctx context.Context) (*Outcome, error) {
	id := newID()
	if err := os.MkdirAll(s.Results, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	file := filepath.Join(s.Results, fmt.Sprintf("%s_%s.jsonl", s.Problem.ID, id))
	log, err := record.Create(file, record.Run{ID: id, Problem: s.Problem.ID, Agent: s.Agent.Name, Seed: s.Seed})
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
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

func newID() string {
	b := make([]byte, 6)
	rand.Read(b) //nolint:errcheck // It never fails.
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b)
}

// event records an event and reports it.
func (r *run) event(kind string, data any) {
	if err := r.log.Append(kind, data); err != nil && r.stop != nil {
		r.stop(fmt.Errorf("the record cannot be written: %w", err))
	}
	if r.Progress != nil {
		r.Progress(kind, data)
	}
}

func (r *run) phase(name string) { r.event(record.PhaseEvent, record.Phase{Name: name}) }

// work does everything that is recorded. What goes wrong is recorded as well.
func (r *run) work(ctx context.Context) {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	r.event(record.ProblemEvent, describe(r.Problem))
	defer func() {
		if r.load != nil {
			r.load.Stop()
		}
		if r.observer != nil {
			r.observer.Close()
		}
	}()
	if err := r.prepare(ctx); err != nil {
		class := Infra
		if errors.Is(context.Cause(ctx), context.Canceled) {
			class, err = Inconclusive, errors.New("interrupted before the agent could begin")
		}
		r.event(record.SubmissionEvent, record.Submission{Reason: err.Error(), Class: string(class)})
		return
	}
	r.agentTurn(ctx)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout+cleanTimeout)
	defer cancel()
	r.phase("grading")
	r.watchAftermath(after, ctx.Err() != nil)
	r.recover(after)
	if r.Judge != nil && ctx.Err() == nil {
		r.phase("asking the judge")
		r.judge(after)
	}
}

// prepare brings about the situation that the agent is to find.
func (r *run) prepare(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(r.Cloud.RESTConfig())
	if err != nil {
		return err
	}
	r.client = client
	r.phase("deploying " + r.Problem.App.Name)
	if err := Deploy(ctx, r.Cloud, r.Problem.App); err != nil {
		return fmt.Errorf("deploy %s: %w", r.Problem.App.Name, err)
	}
	if r.observer, err = observe.New(r.Cloud.RESTConfig(), r.Cloud.Dial); err != nil {
		return err
	}
	r.phase("waiting until its users are served")
	l := r.Problem.Document.Load
	if r.load, err = StartLoad(r.Cloud, r.Problem.App, l.Mix, l.Rate, r.Seed); err != nil {
		return err
	}
	r.env = &fault.Env{
		Client: client, Config: r.Cloud.RESTConfig(), Dial: r.Cloud.Dial, App: r.Problem.App,
		Load: func() workload.Snapshot { return *r.load.Snapshot() },
	}
	r.env.Chaos, _ = r.Cloud.(cloud.Chaos)
	if err := r.awaitHealth(ctx); err != nil {
		return err
	}
	return r.inject(ctx)
}

// awaitHealth waits until the application serves its users, and keeps how that looks.
func (r *run) awaitHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthyTimeout)
	defer cancel()
	var why string
	err := poll(ctx, lookInterval/2, func() (bool, error) {
		look, err := r.look(ctx)
		if err != nil {
			return false, err
		}
		r.baseline = look
		why = unhealthy(look)
		return why == "", nil
	})
	if err != nil {
		return fmt.Errorf("the application is not healthy before any fault: %s: %w", why, err)
	}
	r.event(record.BaselineEvent, r.baseline)
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
		if err := f.Inject(ctx, r.env); err != nil {
			return fmt.Errorf("inject %s into %s: %w", spec.Kind, spec.Target, err)
		}
		r.faults = append(r.faults, f)
	}
	for i, f := range faults {
		spec := r.Problem.Faults()[i]
		var symptom string
		err := poll(ctx, lookInterval/4, func() (bool, error) {
			var err error
			symptom, err = f.Manifest(ctx, r.env)
			return symptom != "", err
		})
		if err != nil {
			return fmt.Errorf("%s in %s does not show: %w", spec.Kind, spec.Target, err)
		}
		r.event(record.FaultEvent, record.Fault{Kind: spec.Kind, Target: spec.Target, Symptom: symptom})
	}
	return nil
}

// recover undoes the faults, so that the cloud can be used again.
func (r *run) recover(ctx context.Context) {
	for _, f := range r.faults {
		if err := f.Recover(ctx, r.env); err != nil {
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

// newInterface puts the guard and the agent's interface before the cloud.
func (r *run) newInterface(ctx context.Context) (i *aci.Interface, release func(), err error) {
	dir, err := os.MkdirTemp(r.Scratch, "aiopslab-agent-")
	if err != nil {
		return nil, nil, err
	}
	g, err := guard.Start(ctx, guard.Options{
		Upstream: r.Cloud.RESTConfig(),
		Journal:  func(e guard.Entry) { r.event(record.WriteEvent, e) },
	})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	release = func() {
		if i != nil {
			_ = i.Close()
		}
		_ = g.Close()
		_ = os.RemoveAll(dir)
	}
	kubeconfig, err := g.Kubeconfig(r.Problem.App.Namespace)
	if err == nil {
		i, err = aci.New(aci.Options{
			Task: string(r.Problem.Task), App: r.Problem.App, Observer: r.observer, Dial: r.Cloud.Dial,
			Kubeconfig: kubeconfig, API: g.Address(), Dir: dir, Self: r.Self,
		})
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return i, release, nil
}
