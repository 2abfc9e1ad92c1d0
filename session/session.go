// Package session is one run: an agent and a problem, from a bare cluster to a verdict.
//
//	env := &session.Local{Cloud: c}
//	s := session.Session{Problem: p, Agent: runbook.Entry, Environment: env, Results: "results"}
//	outcome, err := s.Run(ctx)
//
// A run deploys the application and its telemetry, puts it under load, waits until it is well, injects
// the faults and waits until they show. Then the agent acts until it submits or meets a limit, and is
// graded. Everything that matters is in the record, an event log; the verdict is a function of it, see
// [Grade].
//
// The faults, the load and the grading are out of the agent's sight: it reaches the cluster through
// the guard, with an identity of its own. What its actions make run, runs in the [Environment]; the
// record and the verdict are the session's. So however an environment ends, the run has a verdict, and
// it says whose doing that was.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world/decoy"
	"github.com/aiopslab/aiopslab/world/noise"
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
	// prepareTimeout is how long an environment may take to be prepared, whatever it does meanwhile;
	// dismissTimeout how long to take an agent's way away.
	prepareTimeout = 10 * time.Minute
	dismissTimeout = time.Minute
	// watchTimeout is longer than an environment is ever watched after the agent is done.
	watchTimeout = aftermathTimeout + 10*time.Minute
)

// Session describes a run before it starts.
type Session struct {
	Problem *problem.Problem
	Agent   agent.Entry
	// Environment is where the run takes place. The caller closes it.
	Environment Environment
	Shadow      bool          // the Environment is a [Shadow]: there is no verdict
	Offline     bool          // the Environment is an [Offline]: there is nothing to look at but what was recorded
	Results     string        // directory of the record
	Scratch     string        // directory for temporary files of the agent; empty for the system's
	ID          string        // of the run; empty for a new one, see [NewID]
	Seed        uint64        // what is left to chance is drawn from it; 0 for a new one, see [NewSeed]
	HandOver    HandOver      // when the agent's turn begins
	Noise       noise.Level   // what else goes on; empty for nothing
	Decoys      decoy.Set     // what may be taken for a fault
	Lived       time.Duration // how long the application is used first, where no past can be written
	Telemetry   bool          // keep what the system told until the agent's turn, see [TelemetryDir]
	Steps       int           // limit; 0 is DefaultSteps
	Time        time.Duration // limit of the agent's work; 0 is DefaultTime
	// Model is the chat model of an agent that has one, and Budget what it may cost.
	Model  llm.Model
	Budget Budget
	// Policy says what the agent may change; nil for what its rights allow. Approve answers for changes that the policy
	// has asked for, some at a time maybe; if it is nil they are refused.
	Policy  *policy.Policy
	Approve func(ctx context.Context, q guard.Question) guard.Answer
	// Desk is where such questions lie instead, for somebody to answer; nil for none.
	Desk *Desk
	// Judge scores the agent's reasoning, if it is set.
	Judge grade.Chat
	// Progress is told of every event as it is recorded, one at a time. It may be nil.
	Progress func(kind string, data any)
	// Events is told of every event of the record as it is written, in order. It may be nil.
	Events func(record.Event)
	// Log is for whoever runs the lab, and should have the run's id. What the environment logs during the
	// run is there, too. It may be nil.
	Log *slog.Logger
}

// Outcome is how a run ended.
type Outcome struct {
	ID      string  `json:"id"`
	Problem string  `json:"problem"`
	Agent   string  `json:"agent"`
	Seed    uint64  `json:"seed"`
	Record  string  `json:"record"`  // file of the event log
	Session string  `json:"session"` // file in AIOpsLab's format
	Verdict Verdict `json:"verdict"`
}

// run is a session under way.
type run struct {
	*Session
	log   *record.Log
	diary diary
	trace []grade.Turn
	stop  context.CancelCauseFunc
	dead  bool // the record tells of the environment's death
	file  string
	open  bool // the agent is done, so nothing is withheld any more
	// injecting is when the injection of faults began, of a healthy system too.
	injecting time.Time

	mu      sync.Mutex // of telling
	secrets []secret
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
	if s.Seed == 0 {
		seeded := *s
		seeded.Seed = NewSeed()
		s = &seeded
	}
	if err := os.MkdirAll(s.Results, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	file := filepath.Join(s.Results, id+".jsonl") // An agent may see the name: it does not tell the problem.
	log, err := record.Create(file, record.Run{ID: id, Agent: s.Agent.Name})
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	log.Watch(s.Events)
	r := &run{Session: s, log: log, diary: diary{log: s.Log}, file: file}
	r.diary.logger().Info("run begun", "agent", s.Agent.Name)
	begun := time.Now()
	r.work(ctx)
	if err := log.Close(); err != nil {
		return nil, fmt.Errorf("the record %s is incomplete: %w", file, err)
	}
	o, err := finish(file)
	if err == nil {
		r.diary.logger().Info("run ended", "problem", o.Problem, "seed", s.Seed, "class", o.Verdict.Class, "why",
			o.Verdict.Why, "took", time.Since(begun).Round(time.Millisecond))
	}
	return o, err
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

// NewID returns an id for a run. Ids sort by the second in which they were made.
func NewID() string {
	b := make([]byte, 6)
	rand.Read(b) //nolint:errcheck // It never fails.
	return time.Now().UTC().Format("20060102-150405-") + hex.EncodeToString(b)
}

// NewSeed draws a seed. An agent that knew the seed, and has the source, could tell what of a world was
// made up.
func NewSeed() uint64 {
	b := make([]byte, 8)
	rand.Read(b)                                     //nolint:errcheck // It never fails.
	return max(binary.LittleEndian.Uint64(b)>>11, 1) // JSON's numbers have 53 bits.
}

// event records an event and reports it.
func (r *run) event(kind string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(time.Now(), kind, data)
	r.diary.note(data, r.Agent.Baseline)
	if r.Progress != nil {
		r.Progress(kind, data)
	}
}

func (r *run) append(at time.Time, kind string, data any) {
	if err := r.log.AppendAt(at, kind, data); err != nil && r.stop != nil {
		r.stop(fmt.Errorf("the record cannot be written: %w", err))
	}
}

// secret is an event that the record does not have yet.
type secret struct {
	at   time.Time
	kind string
	data any
}

// withhold reports an event now, and records it when the agent is done, at once if it is: an agent that is a program
// on this machine could read the record.
func (r *run) withhold(kind string, data any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := time.Now(); r.open {
		r.append(at, kind, data)
	} else {
		r.secrets = append(r.secrets, secret{at, kind, data})
	}
	if r.Progress != nil {
		r.Progress(kind, data)
	}
}

// disclose records what was withheld.
func (r *run) disclose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.secrets {
		r.append(s.at, s.kind, s.data)
	}
	r.secrets, r.open = nil, true
}

// tell takes an event of the environment. When the healthy system was looked at and when the injection began is
// withheld with the fault: how long it is from there to the agent's turn is how long a fault took to show, or that
// there was none. So is where the load comes from, because it is told in between, and what past the world was given,
// which is made up. So are noise and decoys, since what is none of them is the fault, and how bad the system is.
func (r *run) tell(kind string, data any) {
	if data == (record.Phase{Name: injectingPhase}) {
		r.mu.Lock()
		r.injecting = time.Now()
		r.mu.Unlock()
	}
	if kind == record.ApprovalEvent {
		r.event(kind, data)
		go r.approve(data)
		return
	}
	switch {
	case kind == record.FaultEvent, kind == record.PastEvent, kind == record.BaselineEvent, kind == record.LoadEvent,
		kind == record.NoiseEvent, kind == record.DecoyEvent, kind == record.HandOverEvent, kind == record.FoundEvent,
		kind == record.SeverityEvent, kind == record.TransactionEvent, kind == record.ShiftEvent,
		kind == record.IncidentEvent, kind == record.ShiftEndEvent, data == (record.Phase{Name: injectingPhase}):
		r.withhold(kind, data)
	default:
		r.event(kind, data)
	}
}

func (r *run) phase(name string) { r.event(record.PhaseEvent, record.Phase{Name: name}) }

// work does everything that is recorded. What goes wrong is recorded as well.
func (r *run) work(ctx context.Context) {
	ctx, r.stop = context.WithCancelCause(ctx)
	defer r.stop(nil)
	defer r.diary.end()
	if r.Desk != nil {
		defer r.Desk.end()
	}
	truth := describe(r.Problem, r.Seed)
	truth.Shadow, truth.Offline = r.Shadow, r.Offline
	r.withhold(record.ProblemEvent, truth)
	way, err := r.prepare(ctx)
	if err != nil {
		class := Infra
		if errors.Is(context.Cause(ctx), context.Canceled) {
			class, err = Inconclusive, errors.New("interrupted before the agent could begin")
		}
		r.disclose()
		r.event(record.SubmissionEvent, record.Submission{Reason: err.Error(), Class: string(class)})
		return
	}
	if r.Telemetry && !r.Shadow {
		r.keepTelemetry(ctx)
	}
	r.agentTurn(ctx, way)
	r.disclose()
	if !r.Shadow && !r.Offline {
		r.phase("grading")
	}
	interrupted := ctx.Err() != nil
	if interrupted {
		r.event(record.InterruptEvent, nil)
	}
	r.watch(context.WithoutCancel(ctx), interrupted)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if r.Judge != nil && ctx.Err() == nil {
		r.phase("asking the judge")
		r.judge(after)
	}
}

func (r *run) prepare(ctx context.Context) (Admission, error) {
	wait := prepareTimeout + r.Agent.Baseline + r.Lived
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("the environment was not prepared within %v", wait))
	defer cancel()
	var rules []byte
	if r.Policy != nil {
		rules = r.Policy.Source
	}
	return r.Environment.Prepare(ctx, Setting{
		Policy: rules, Approves: r.asks(),
		Problem: r.Problem, Seed: r.Seed, Noise: r.Noise, Decoys: r.Decoys, Lived: r.Lived,
		Baseline: r.Agent.Baseline, HandOver: r.HandOver, Log: r.diary.logger(),
	}, r.tell)
}

// watch has the environment looked at, if there still is one.
func (r *run) watch(ctx context.Context, interrupted bool) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	err := r.Environment.Watch(ctx, interrupted)
	if death, ok := errors.AsType[*Death](err); ok {
		d := *death
		d.Idle = true // The agent is done.
		r.died(&d)
	} else if err != nil {
		r.phase("grading: " + err.Error())
	}
}

// died records the end of the environment, once, and returns whose fault it is and why.
func (r *run) died(d *Death) (Class, string) {
	class, why := d.blame()
	if !r.dead {
		r.dead = true
		r.event(record.DeathEvent, record.Death{Why: why, Class: string(class)})
		r.diary.logger().Warn("the environment died", "why", why, "class", class)
	}
	return class, why
}

// judge has a model score the agent's reasoning. That it fails is no reason to lose the verdict.
func (r *run) judge(ctx context.Context) {
	j, err := grade.Judge(ctx, r.Judge, r.trace)
	if err != nil {
		j = grade.Judgement{Score: -1, Text: err.Error()}
	}
	r.event(record.JudgementEvent, j)
}

// briefing is what the agent is told.
func (r *run) briefing(way Admission) agent.Briefing {
	p := r.Problem
	b := agent.Briefing{
		Task: p.Task, Namespace: p.App.Namespace, Actions: aci.Actions(string(p.Task)), Kubeconfig: way.Kubeconfig,
		Note: r.event, Scratch: r.Scratch, Instructions: aci.Instructions(string(p.Task)),
		Description: paged(aci.Description(string(p.Task), p.App, p.Asked()), way.Page),
		Steps:       cmp.Or(r.Steps, DefaultSteps),
	}
	b.Description += PolicyNotice(r.Policy)
	if r.Shadow {
		b.Description += shadowNotice
	}
	if r.Offline {
		b.Actions, b.Now = aci.OfflineActions(string(p.Task)), way.Now
		b.Description += offlineNotice
	}
	if r.Model != nil {
		b.Model = newMeter(r.Model, r.Budget, r.event)
	}
	if r.Agent.KnowsTruth {
		b.Truth = p
		if p.Task == problem.OnCall {
			roster := p.Roster(r.Seed)
			b.Roster = &roster
		}
	}
	if r.Agent.Baseline > 0 {
		b.Healthy, b.Export = way.Healthy, r.Environment.Export
	}
	return b
}
