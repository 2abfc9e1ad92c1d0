package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// Problems of the catalog: two with the same application and load, and one with another.
const (
	faulty  = "revoke_auth_mongodb-detection-1"
	healthy = "noop_detection_hotel_reservation-1"
	social  = "noop_detection_social_network-1"
)

// fakeBackend runs sessions that go by without a cluster: they leave a real record and are graded by
// the answer alone.
type fakeBackend struct {
	dir    string
	gate   chan struct{}             // if set, preparation waits until it is closed
	broken func(Spec) error          // if set, why preparation fails
	during func(ctx context.Context) // if set, what an action does
	users  func() session.Experience // if set, how users fare
	class  session.Class             // of what is not solved; empty for the agent's failure
	desks  *sync.Map                 // if set, runs have desks, which are kept here by their ids
	tells  func(step int) string     // if set, what an observation has behind it
	asks   bool                      // whether exec_shell asks for approval, if there are desks

	library *problem.Library

	mu    sync.Mutex
	stage string
	asked int // questions
}

func (b *fakeBackend) Open(ctx context.Context, s Spec, events eventFunc) (Run, error) {
	if b.gate != nil {
		select {
		case <-b.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if b.broken != nil {
		if err := b.broken(s); err != nil {
			log, created := record.Create(filepath.Join(b.dir, s.ID+".jsonl"), record.Run{ID: s.ID}) // As a run leaves one.
			if created == nil {
				created = log.Close()
			}
			return nil, errors.Join(err, created)
		}
	}
	p, err := s.Find(b.library)
	if err != nil {
		return nil, err
	}
	r := &fakeRun{
		backend: b, spec: s, problem: p, events: events,
		briefed: make(chan struct{}), requests: make(chan fakeRequest), done: make(chan struct{}),
	}
	if b.desks != nil {
		r.desk = session.NewDesk()
		b.desks.Store(s.ID, r.desk)
	}
	go r.run(ctx)
	return r, nil
}

// kind of stage: the application is enough.
func (b *fakeBackend) kind(s Spec) string {
	p, err := s.Find(b.library)
	if err != nil {
		return ""
	}
	return p.App.Name
}

func (b *fakeBackend) Stage(_ context.Context, s Spec) error {
	if b.broken != nil {
		if err := b.broken(s); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stage = b.kind(s)
	return nil
}

func (b *fakeBackend) Episode(ctx context.Context, s Spec, events eventFunc) (Run, error) {
	b.mu.Lock()
	fits := b.stage == b.kind(s)
	b.mu.Unlock()
	if !fits {
		return nil, ErrMisfit
	}
	return b.Open(ctx, s, events)
}

type fakeRequest struct {
	response string
	err      error
	reply    chan session.Turn
}

// fakeRun is a run of a fakeBackend.
type fakeRun struct {
	backend  *fakeBackend
	spec     Spec
	problem  *problem.Problem
	events   eventFunc
	briefed  chan struct{}
	requests chan fakeRequest
	done     chan struct{}
	outcome  *session.Outcome
	err      error
	desk     *session.Desk

	log *record.Log

	mu     sync.Mutex
	search bool               // a search's
	halt   context.CancelFunc // of the action under way
}

// Desk is where questions lie.
func (r *fakeRun) Desk() *session.Desk { return r.desk }

// approved asks for approval, and tells what the answer is.
func (r *fakeRun) approved(ctx context.Context) string {
	r.backend.mu.Lock()
	r.backend.asked++
	q := session.Approval{Number: r.backend.asked, Question: guard.Question{Policy: "careful"}}
	r.backend.mu.Unlock()
	said := "refused: nobody answered"
	r.desk.Lay(ctx, q, func(a guard.Answer) error {
		said = fmt.Sprintf("approved by %s: %s", a.By, a.Why)
		if !a.Approved {
			said = "refused: " + a.Why
		}
		return nil
	})
	return said
}

// Interrupt ends the action under way.
func (r *fakeRun) Interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.halt != nil {
		r.halt()
	}
}

// during does what an action does, until it is interrupted.
func (r *fakeRun) during(ctx context.Context) {
	if r.backend.during == nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.halt = cancel
	r.mu.Unlock()
	r.backend.during(ctx)
}

func (r *fakeRun) run(ctx context.Context) {
	defer close(r.done)
	agentName := r.spec.Agent + r.spec.Name
	file := filepath.Join(r.backend.dir, r.spec.ID+".jsonl")
	log, err := record.Create(file, record.Run{ID: r.spec.ID, Agent: agentName})
	if err != nil {
		r.err = err
		return
	}
	log.Watch(r.events)
	r.log = log
	add := func(kind string, data any) { _ = log.Append(kind, data) }
	add(record.ProblemEvent, map[string]any{"id": r.problem.ID, "answer": "the secret"})
	add(record.PhaseEvent, record.Phase{Name: "deploying"})
	add(record.BaselineEvent, map[string]any{})
	add(record.PhaseEvent, record.Phase{Name: "injecting"})
	if r.problem.Faulty() {
		add(record.FaultEvent, record.Fault{Kind: "the secret", Target: "x"})
	}
	add(record.PhaseEvent, record.Phase{Name: "agent"})
	add(record.BriefingEvent, record.Briefing{Description: "You are an expert."})
	close(r.briefed)
	steps, s := r.act(ctx, add)
	add(record.SubmissionEvent, s)
	add(record.LookEvent, map[string]any{"symptoms": []string{"the secret"}})
	v := session.Verdict{Class: session.AgentFailed, Why: s.Reason, Results: map[string]any{"success": false, "TTD": 0.5, "steps": len(steps)}}
	switch {
	case s.Submitted && string(s.Answer) == fmt.Sprintf("%q", r.problem.Anomaly()):
		v.Class, v.Why, v.Results["success"] = session.Solved, "the answer is right", true
	case r.backend.class != "":
		v.Class, v.Why = r.backend.class, "the machine is too busy"
	case s.Submitted:
		v.Why = "the answer is wrong"
	case s.Class != "":
		v.Class = session.Class(s.Class)
	}
	r.mu.Lock()
	if r.search && (v.Class == session.Solved || v.Class == session.AgentFailed) { // As session.Grade does.
		v.Results["search"], v.Class = string(v.Class), session.Searched
	}
	r.mu.Unlock()
	add(record.VerdictEvent, v)
	if r.err = log.Close(); r.err != nil {
		return
	}
	f := session.File{Agent: agentName, SessionID: r.spec.ID, ProblemID: r.problem.ID, StartTime: 1, EndTime: 2, Trace: []grade.Turn{}, Results: v.Results}
	for _, s := range steps {
		f.Trace = append(f.Trace, grade.Turn{Role: "assistant", Content: s.Response}, grade.Turn{Role: "env", Content: s.Observation})
	}
	b, _ := json.Marshal(f)
	name := strings.TrimSuffix(file, "l")
	if r.err = os.WriteFile(name, b, 0o600); r.err == nil {
		r.outcome = &session.Outcome{ID: r.spec.ID, Problem: r.problem.ID, Agent: agentName, Seed: r.spec.Seed, Record: file, Session: name, Verdict: v}
	}
}

// act is the agent's turn.
func (r *fakeRun) act(ctx context.Context, add func(string, any)) (steps []record.Step, s record.Submission) {
	limit := r.spec.MaxSteps
	if limit == 0 {
		limit = session.DefaultSteps
	}
	if r.spec.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(r.spec.MaxTime*float64(time.Second)), errors.New("the agent's time is up"))
		defer cancel()
	}
	answered := 0
	for {
		q := fakeRequest{response: agent.Call("submit", "Yes"), reply: make(chan session.Turn, 1)}
		if r.spec.Agent == "" {
			select {
			case q = <-r.requests:
			case <-ctx.Done():
				if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
					return steps, record.Submission{Class: string(session.AgentFailed), Reason: err.Error()}
				}
				return steps, record.Submission{Class: string(session.Inconclusive), Reason: "interrupted"}
			}
		}
		if q.err != nil {
			q.reply <- session.Turn{Over: true}
			return steps, record.Submission{Class: string(session.AgentFailed), Reason: q.err.Error()}
		}
		r.during(ctx)
		step := record.Step{Number: len(steps) + 1, Response: q.response}
		call, err := aci.Parse(q.response)
		switch {
		case err != nil:
			step.Observation = err.Error()
		case call.Name == "submit" && answered+1 < len(r.problem.Questions()):
			next := string(r.problem.Questions()[answered+1])
			step.Action, step.Observation = call.Name, aci.Ask(next)
			add(record.AnswerEvent, record.Answer{Question: string(r.problem.Questions()[answered]), Step: step.Number, Next: next})
			answered++
		case call.Name == "submit":
			step.Action, step.Observation = call.Name, "SubmissionStatus.VALID_SUBMISSION"
			s.Submitted = len(call.Args)+len(call.Kwargs) > 0 || r.problem.Task == problem.Incident
			if !s.Submitted {
				step.Observation = "submit() needs has_anomaly"
			}
		case call.Name == "exec_shell" && r.backend.asks:
			step.Action, step.Observation = call.Name, r.approved(ctx)
		default:
			step.Action, step.Observation = call.Name, fmt.Sprint("did ", call.Name, " ", call.Args, call.Kwargs)
		}
		if r.backend.tells != nil {
			step.Observation += r.backend.tells(step.Number)
		}
		add(record.StepEvent, step)
		steps = append(steps, step)
		over := s.Submitted || len(steps) == limit
		q.reply <- session.Turn{Step: step, Over: over}
		if s.Submitted {
			args := append([]any{}, call.Args...)
			for _, v := range call.Kwargs {
				args = append(args, v)
			}
			if len(args) > 0 {
				s.Answer, _ = json.Marshal(args[0])
			}
			return steps, s
		}
		if over {
			return steps, record.Submission{Class: string(session.AgentFailed), Reason: fmt.Sprintf("no submission within %d steps", limit)}
		}
	}
}

func (r *fakeRun) Briefing(ctx context.Context) (agent.Briefing, error) {
	select {
	case <-r.briefed:
		return agent.Briefing{
			Task: r.problem.Task, Namespace: r.problem.App.Namespace, Description: "You are an expert.", Instructions: "Answer with a call.",
			Actions: aci.Actions(string(r.problem.Task)), Kubeconfig: []byte("apiVersion: v1\n"),
		}, nil
	case <-ctx.Done():
		return agent.Briefing{}, context.Cause(ctx)
	}
}

func (r *fakeRun) Step(ctx context.Context, response string) (session.Turn, error) {
	if r.spec.Agent != "" {
		return session.Turn{}, errOwnAgent
	}
	return r.ask(ctx, fakeRequest{response: response, reply: make(chan session.Turn, 1)})
}

func (r *fakeRun) Users(context.Context) (session.Experience, error) {
	if r.backend.users == nil {
		return session.Experience{}, errors.New("nobody can say")
	}
	return r.backend.users(), nil
}

func (r *fakeRun) Note(_ context.Context, kind string, data any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.search = true
	return r.log.Append(kind, data)
}

func (r *fakeRun) GiveUp(ctx context.Context, reason error) error {
	_, err := r.ask(ctx, fakeRequest{err: reason, reply: make(chan session.Turn, 1)})
	return err
}

func (r *fakeRun) ask(ctx context.Context, q fakeRequest) (session.Turn, error) {
	select {
	case r.requests <- q:
	case <-r.done:
		return session.Turn{}, session.ErrOver
	case <-ctx.Done():
		return session.Turn{}, context.Cause(ctx)
	}
	return <-q.reply, nil
}

func (r *fakeRun) Wait(ctx context.Context) (*session.Outcome, error) {
	select {
	case <-r.done:
		return r.outcome, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fakeWorkers are workers in this process, each with a backend of its own that is made like the
// pattern.
type fakeWorkers struct {
	t       testing.TB
	pattern func() *fakeBackend

	mu      sync.Mutex
	started []*fakeWorker
}

func (f *fakeWorkers) Start(context.Context, *slog.Logger) (WorkerProcess, error) {
	b := f.pattern()
	if b.dir == "" {
		b.dir = f.t.TempDir()
	}
	w := &fakeWorker{worker: NewWorker(b), done: make(chan struct{}), stop: make(chan struct{})}
	w.server = httptest.NewServer(w.worker)
	w.transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
	}}
	go func() {
		<-w.stop
		w.worker.Close()
		w.server.Close()
		w.transport.CloseIdleConnections()
		close(w.done)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = append(f.started, w)
	return w, nil
}

// list are those that were started, living or not.
func (f *fakeWorkers) list() []*fakeWorker {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*fakeWorker{}, f.started...)
}

type fakeWorker struct {
	worker    *Worker
	server    *httptest.Server
	transport *http.Transport
	stop      chan struct{}
	once      sync.Once
	done      chan struct{}
	mu        sync.Mutex
	err       error
}

func (w *fakeWorker) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.transport.RoundTrip(r)
}

func (w *fakeWorker) Stop() { w.once.Do(func() { close(w.stop) }) }

// Kill is a crash.
func (w *fakeWorker) Kill() {
	w.mu.Lock()
	w.err = errors.New("signal: killed")
	w.mu.Unlock()
	w.server.Listener.Close()
	w.server.CloseClientConnections()
	w.Stop()
}

func (w *fakeWorker) Done() <-chan struct{} { return w.done }

func (w *fakeWorker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
