package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// hosted is a session in its worker.
type hosted struct {
	spec    Spec
	created time.Time
	cancel  context.CancelFunc
	feed    *feed
	briefed chan struct{} // closed when the agent has its turn
	over    chan struct{} // closed when the agent's turn is over
	done    chan struct{} // closed when there is an archive
	turn    chan struct{} // held by whoever takes a step

	// Known when the agent has its turn.
	run     Run
	problem *Problem

	searched bool // its record says that it is one of a search; of whoever has the gym

	mu         sync.Mutex
	state      State
	steps      int
	last       Turn
	answer     record.Answer // to the last question of an incident that was answered
	submission record.Submission

	archive Archive
}

// Archive is what is kept of a session that has ended.
type Archive struct {
	Session Session  `json:"session"`
	Problem *Problem `json:"problem,omitempty"` // nil if the agent never had its turn
	Last    Turn     `json:"last"`
}

// eventFunc is told of the events of a record.
type eventFunc = func(record.Event)

// opener opens a run.
type opener func(context.Context, Spec, eventFunc) (Run, error)

// host begins a session by the function that opens a run.
func host(ctx context.Context, s Spec, open opener) *hosted {
	ctx, cancel := context.WithCancel(ctx)
	h := &hosted{
		spec: s, created: time.Now(), cancel: cancel, feed: newFeed(), state: Preparing,
		last: Turn{Observation: aci.NextAction}, briefed: make(chan struct{}), over: make(chan struct{}),
		done: make(chan struct{}), turn: make(chan struct{}, 1),
	}
	go func() {
		defer cancel()
		h.finish(h.work(ctx, open))
	}()
	return h
}

// work is the run from its beginning to its end.
func (h *hosted) work(ctx context.Context, open opener) (*session.Outcome, error) {
	run, err := open(ctx, h.spec, h.event)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("cancelled before the environment was up")
		}
		return nil, err
	}
	h.run = run
	// A run that is cancelled ends by itself, and it is always known how.
	if b, err := run.Briefing(context.Background()); err == nil {
		h.problem = told(b)
		close(h.briefed)
	}
	return run.Wait(context.Background())
}

// event takes note of an event of the record.
func (h *hosted) event(e record.Event) {
	h.note(e)
	h.feed.add(e)
}

func (h *hosted) note(e record.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case record.BriefingEvent:
		h.state = AgentTurn
	case record.AnswerEvent:
		h.answer = record.Answer{}
		_ = e.Decode(&h.answer) // It was made by json.Marshal, as the others were.
	case record.StepEvent:
		var s record.Step
		_ = e.Decode(&s)
		h.steps = s.Number
		h.last = h.turnOf(s)
	case record.SubmissionEvent:
		h.state = Grading
		_ = e.Decode(&h.submission)
		close(h.over)
	}
}

// turnOf is what a step came to, but for whether it was the last.
func (h *hosted) turnOf(s record.Step) Turn {
	t := Turn{Step: s.Number, Action: s.Action, Observation: s.Observation, Failed: s.Failed}
	if h.answer.Step == s.Number {
		t.Question = h.answer.Next
	}
	return t
}

// finish makes the archive of a run that has ended.
func (h *hosted) finish(o *session.Outcome, err error) {
	select {
	case <-h.over:
	default:
		close(h.over) // It broke off before its submission.
	}
	_ = h.takeTurn(context.Background()) // Whoever takes the last step knows by now what came of it.
	defer h.endTurn()
	var rec *record.Record
	info := h.info()
	if err == nil {
		rec, info.Outcome, err = outcome(o)
	}
	if info.State = Done; err != nil {
		info.State, info.Error = Failed, err.Error()
	}
	h.archive = Archive{Session: info, Problem: h.problem, Last: h.last}
	close(h.done)
	h.feed.end(rec)
}

// outcome reads what a run has left.
func outcome(o *session.Outcome) (*record.Record, *Outcome, error) {
	rec, err := record.Read(o.Record)
	if err != nil {
		return nil, nil, err
	}
	f, err := readSession(o.Session)
	if err != nil {
		return nil, nil, err
	}
	return rec, &Outcome{
		ID: o.ID, Problem: o.Problem, Agent: o.Agent, Seed: o.Seed, Solved: o.Verdict.Class == session.Solved,
		Class: string(o.Verdict.Class), Why: o.Verdict.Why, Results: o.Verdict.Results,
		StartTime: f.StartTime, EndTime: f.EndTime, Record: o.Record, Session: o.Session,
	}, nil
}

// readSession reads a session file of AIOpsLab's format.
func readSession(file string) (f session.File, err error) {
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	return f, err
}

// told is what an agent is told, as the API says it.
func told(b agent.Briefing) *Problem {
	p := &Problem{
		Task: string(b.Task), Namespace: b.Namespace, Description: b.Description, Instructions: b.Instructions,
		Actions: aci.Docs(b.Actions), Tools: []Tool{}, Kubeconfig: string(b.Kubeconfig),
	}
	for _, a := range b.Actions {
		p.Tools = append(p.Tools, Tool{a.Name, a.Doc, a.Schema()})
	}
	return p
}

// info is what is known of the session by now.
func (h *hosted) info() Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
		return h.archive.Session
	default:
	}
	return Session{
		ID: h.spec.ID, State: h.state, Steps: h.steps, Created: h.created,
		Agent: cmp.Or(h.spec.Agent, h.spec.Name),
	}
}

// briefing waits until the agent has its turn, and returns what it is told.
func (h *hosted) briefing(ctx context.Context) (*Problem, error) {
	select {
	case <-h.briefed:
	case <-h.done:
		if h.archive.Problem == nil {
			return nil, neverBegan(h.archive.Session)
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return h.problem, nil
}

// neverBegan tells of a session in which the agent never had its turn.
func neverBegan(s Session) error {
	if s.Outcome == nil {
		return fail(http.StatusBadGateway, "the session failed: %s", s.Error)
	}
	return fail(http.StatusConflict, "the agent never had its turn: %s", s.Outcome.Why)
}

// act takes a step. Who asks for it may go away; the step is taken all the same, and what came of it
// is there to be asked for.
func (h *hosted) act(ctx context.Context, response string) (Turn, error) {
	if _, err := h.briefing(ctx); err != nil {
		return Turn{}, err
	}
	if err := h.takeTurn(ctx); err != nil {
		return Turn{}, err
	}
	defer h.endTurn()
	select {
	case <-h.over:
		return Turn{}, h.overError()
	default:
	}
	t, err := h.run.Step(context.WithoutCancel(ctx), response)
	if errors.Is(err, session.ErrOver) {
		return Turn{}, h.overError()
	}
	if err != nil {
		return Turn{}, err
	}
	h.mu.Lock()
	turn := h.turnOf(t.Step)
	h.mu.Unlock()
	if turn.Over = t.Over; t.Over {
		<-h.over
		h.mu.Lock()
		turn.Submitted = h.submission.Submitted
		h.mu.Unlock()
	}
	h.mu.Lock()
	h.last = turn
	h.mu.Unlock()
	return turn, nil
}

// takeTurn waits for the step before to be done.
func (h *hosted) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *hosted) endTurn() { <-h.turn }

// overError tells of a step that came too late.
func (h *hosted) overError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	why := "the agent has submitted"
	if !h.submission.Submitted {
		why = cmp.Or(h.submission.Reason, "it broke off")
	}
	return fail(http.StatusConflict, "the agent's turn is over: %s; the outcome tells how it did", why)
}

// observation is the last one again. It waits for a step that is being taken.
func (h *hosted) observation(ctx context.Context) (Turn, error) {
	if err := h.takeTurn(ctx); err != nil {
		return Turn{}, err
	}
	defer h.endTurn()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, nil
}

// submit hands the answer in, and waits for the outcome. If a question follows, there is none yet.
func (h *hosted) submit(ctx context.Context, answer any) (*Outcome, *Turn, error) {
	call := agent.Call("submit")
	if answer != nil {
		call = agent.Call("submit", answer)
	}
	t, err := h.act(ctx, call)
	switch {
	case err != nil:
		return nil, nil, err
	case t.Question != "" && !t.Over:
		return nil, &t, nil
	case !t.Submitted && !t.Over:
		return nil, nil, fail(http.StatusUnprocessableEntity, "%s", t.Observation)
	}
	o, err := h.outcome(ctx)
	return o, nil, err
}

// giveUp ends the agent's turn as its failure, and waits for the outcome.
func (h *hosted) giveUp(ctx context.Context, reason string) (*Outcome, error) {
	if _, err := h.briefing(ctx); err != nil {
		return nil, err
	}
	if err := h.takeTurn(ctx); err != nil {
		return nil, err
	}
	err := h.run.GiveUp(context.WithoutCancel(ctx), errors.New(oneLine(cmp.Or(reason, "the agent gave up"))))
	h.endTurn()
	if errors.Is(err, session.ErrOver) {
		return nil, h.overError()
	}
	if err != nil {
		return nil, err
	}
	return h.outcome(ctx)
}

// oneLine is a text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// outcome waits for the outcome.
func (h *hosted) outcome(ctx context.Context) (*Outcome, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.archive.outcome()
}

// wait waits for the end.
func (h *hosted) wait(ctx context.Context) error {
	select {
	case <-h.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// outcome is that of an archive, or why there is none.
func (a *Archive) outcome() (*Outcome, error) {
	if a.Session.Outcome == nil {
		return nil, fail(http.StatusBadGateway, "the session failed: %s", a.Session.Error)
	}
	return a.Session.Outcome, nil
}

// response is what an agent says by an act.
func (a Act) response() (string, error) {
	switch {
	case a.Response != "" && (a.Name != "" || a.Arguments != nil):
		return "", fail(http.StatusUnprocessableEntity, "give a response, or a name and arguments, not both")
	case a.Name != "":
		return agent.CallNamed(a.Name, a.Arguments), nil
	case a.Arguments != nil:
		return "", fail(http.StatusUnprocessableEntity, "there are arguments and no name of an action")
	}
	return a.Response, nil
}

// text is the briefing as one text: the situation, what the agent can do, and how to answer.
func (p *Problem) text() string {
	return p.system() + "\n\n" + p.Instructions
}

// system is the situation and what the agent can do.
func (p *Problem) system() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(p.Description))
	for _, t := range p.Tools {
		fmt.Fprintf(&b, "\n\n%s", strings.TrimSpace(p.Actions[t.Name]))
	}
	return b.String()
}
