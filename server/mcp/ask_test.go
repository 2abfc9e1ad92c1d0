package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/guard/policy"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/server/mcp"
	"github.com/aiopslab/aiopslab/session"
)

// The newest protocol has calls return questions, older ones have requests of the server.
const (
	newest = "2026-07-28"
	older  = "2025-06-18"
)

// policed is a run whose policy has every "ask" of a command approved, one after another. As in a real one, a question
// lies on the desk until its time is over, though who wanted it may have left.
type policed struct {
	desk  *session.Desk
	laid  sync.WaitGroup
	ended chan error // a step was cancelled
	time  context.Context
	late  context.CancelFunc // no question has any more time

	mu     sync.Mutex
	steps  []string
	number int
}

func newPoliced(t testing.TB) *policed {
	p := &policed{desk: session.NewDesk(), ended: make(chan error, 100)}
	p.time, p.late = context.WithCancel(context.Background())
	t.Cleanup(func() {
		p.late()
		p.laid.Wait()
	})
	return p
}

func (p *policed) Briefing(context.Context) (agent.Briefing, error) { return agent.Briefing{}, nil }

func (p *policed) Step(ctx context.Context, response string) (session.Turn, error) {
	p.mu.Lock()
	p.steps = append(p.steps, response)
	p.mu.Unlock()
	said := []string{"done"}
	for range strings.Count(response, "ask") {
		a, err := p.ask(ctx)
		if err != nil {
			p.ended <- err
			return session.Turn{}, err
		}
		said = append(said, fmt.Sprintf("%v by %q: %s", a.Approved, a.By, a.Why))
	}
	if strings.Contains(response, "sleep") {
		<-ctx.Done()
		p.ended <- context.Cause(ctx)
		return session.Turn{}, context.Cause(ctx)
	}
	return session.Turn{Step: record.Step{Observation: strings.Join(said, "\n")}}, nil
}

func (p *policed) ask(ctx context.Context) (guard.Answer, error) {
	p.mu.Lock()
	p.number++
	q := session.Approval{Number: p.number, Question: guard.Question{
		Change: policy.Change{
			Verb: "connect", Resource: "pods", Subresource: "exec", Name: "geo-1", Namespace: "shop",
			Command: []string{"sh", "-c", "rm -r /data\nRisk: none, because I say so"},
		},
		Risk: policy.Irreversible, Because: "commands may do more than read", Policy: "careful",
	}}
	p.mu.Unlock()
	answers := make(chan guard.Answer, 1)
	p.laid.Go(func() {
		p.desk.Lay(p.time, q, func(a guard.Answer) error {
			answers <- a
			return nil
		})
	})
	select {
	case a := <-answers:
		return a, nil
	case <-p.time.Done():
		return guard.Answer{Why: "nobody answered"}, nil
	case <-ctx.Done():
		return guard.Answer{}, context.Cause(ctx)
	}
}

// taken is how many steps were.
func (p *policed) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.steps)
}

func (p *policed) server() *mcp.Server {
	o := options
	o.Desk = p.desk
	return mcp.New(p, o)
}

// lies waits until so many questions do.
func (p *policed) lies(t testing.TB, n int) {
	t.Helper()
	for {
		list, changed := p.desk.Watch()
		if len(list) == n {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("there are %d questions, not %d", len(list), n)
		}
	}
}

// shell are the parameters of a command.
func shell(command string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: "exec_shell", Arguments: map[string]any{"command": command}}
}

type elicitation = func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)

// says is a user who says the same to everything.
func says(action string, content map[string]any) elicitation {
	return func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: action, Content: content}, nil
	}
}

// each does it with clients of both kinds of protocol.
func each(t *testing.T, do func(t *testing.T, protocol string)) {
	for _, protocol := range []string{newest, "2025-11-25", older} {
		t.Run(protocol, func(t *testing.T) { do(t, protocol) })
	}
}

// A client is told of the policy, and that somebody is asked.
func TestToldOfPolicy(t *testing.T) {
	o := options
	o.Policy = &policy.Policy{Name: "night-shift", Doc: "scale, and ask for the rest"}
	const asks = "Somebody may be asked"
	told := connect(t, mcp.New(newFake(true), o), nil).InitializeResult().Instructions
	if !strings.Contains(told, "\n\nA policy is in force, night-shift: scale, and ask for the rest. ") || strings.Contains(told, asks) {
		t.Error(told)
	}
	o.Desk = session.NewDesk()
	if told = connect(t, mcp.New(newFake(true), o), nil).InitializeResult().Instructions; !strings.Contains(told, asks) {
		t.Error(told)
	}
}

func TestAsked(t *testing.T) {
	const yes, no = `true by "the MCP client's user": `, `false by "the MCP client's user": `
	each(t, func(t *testing.T, protocol string) {
		for _, tt := range []struct {
			name, action string
			content      map[string]any
			want         string
		}{
			{"yes", "accept", map[string]any{"approve": true}, yes},
			{"yes with a reason", "accept", map[string]any{"approve": true, "reason": "it is\n night"}, yes + "it is night"},
			{"no", "accept", map[string]any{"approve": false, "reason": "too risky"}, no + "too risky"},
			{"declined", "decline", nil, no},
			{"declined with a reason", "decline", map[string]any{"reason": "not now", "approve": true}, no + "not now"},
			{"cancelled", "cancel", nil, no + "the form was closed without an answer"},
			{"sent empty", "accept", nil, no},
			{"of no kind", "perhaps", map[string]any{"approve": true}, no},
			{"long", "decline", map[string]any{"reason": strings.Repeat("ä", 600)}, no + strings.Repeat("ä", 500) + "... (100 characters more)"},
		} {
			run := newPoliced(t)
			c := connectAs(t, run.server(), protocol, &sdk.ClientOptions{ElicitationHandler: says(tt.action, tt.content)})
			r, err := c.CallTool(t.Context(), shell("ask"))
			if got := text(t, r, err); got != "done\n"+tt.want {
				t.Errorf("%s: %s", tt.name, got)
			}
			if n := run.taken(); n != 1 {
				t.Errorf("%s: %d steps were taken", tt.name, n)
			}
		}
	})
}

// The user reads what it is about, and what the agent writes cannot pass for it.
func TestMessage(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		asked := make(chan *sdk.ElicitParams, 1)
		c := connectAs(t, newPoliced(t).server(), protocol, &sdk.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked <- r.Params
				return &sdk.ElicitResult{Action: "decline"}, nil
			},
		})
		if c.InitializeResult().ProtocolVersion != protocol {
			t.Fatalf("it is %s", c.InitializeResult().ProtocolVersion)
		}
		r, err := c.CallTool(t.Context(), shell("ask"))
		text(t, r, err)
		const want = `The agent wants to connect pods/exec geo-1 in shop.
Command: sh -c "rm -r /data\nRisk: none, because I say so"
Risk: irreversible, because commands may do more than read
Policy: careful, which has it approved by you.`
		if got := <-asked; got.Message != want || got.Mode != "form" {
			t.Errorf("%s\nmode %s", got.Message, got.Mode)
		}
	})
}

// A step may ask often, but not without end.
func TestAskedOften(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		run := newPoliced(t)
		var mu sync.Mutex
		asked := 0
		c := connectAs(t, run.server(), protocol, &sdk.ClientOptions{
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
			},
		})
		r, err := c.CallTool(t.Context(), shell(strings.Repeat("ask ", 12)))
		got := text(t, r, err)
		if asked != 9 || strings.Count(got, "true by") != 9 || strings.Count(got, `false by "": one call asks 9 times at most`) != 3 {
			t.Errorf("%d times: %s", asked, got)
		}
		if r, err = c.CallTool(t.Context(), shell("ask")); !strings.Contains(text(t, r, err), "true by") {
			t.Errorf("the next call: %s", text(t, r, err))
		}
		if n := run.taken(); n != 2 {
			t.Errorf("%d steps", n)
		}
	})
}

// Where it is known that nobody can answer, nobody waits.
func TestCannotAsk(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		for name, o := range map[string]*sdk.ClientOptions{
			"no elicitation": nil,
			"pages alone": {
				ElicitationHandler: says("accept", map[string]any{"approve": true}),
				Capabilities:       &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}},
			},
		} {
			c := connectAs(t, newPoliced(t).server(), protocol, o)
			r, err := c.CallTool(t.Context(), shell("ask ask"))
			if got := text(t, r, err); strings.Count(got, `false by "": the MCP client cannot ask its user`) != 2 {
				t.Errorf("%s: %s", name, got)
			}
		}
	})
}

// A client that fails to ask says so in older protocols. In the newest it says nothing, and the next call waits until
// the question has had its time.
func TestFailsToAsk(t *testing.T) {
	fails := func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return nil, errors.New("no window")
	}
	t.Run(older, func(t *testing.T) {
		c := connectAs(t, newPoliced(t).server(), older, &sdk.ClientOptions{ElicitationHandler: fails})
		r, err := c.CallTool(t.Context(), shell("ask"))
		if got := text(t, r, err); !strings.Contains(got, "could not ask its user: ") || !strings.Contains(got, "no window") {
			t.Error(got)
		}
	})
	t.Run(newest, func(t *testing.T) {
		run := newPoliced(t)
		c := connectAs(t, run.server(), newest, &sdk.ClientOptions{ElicitationHandler: fails})
		if r, err := c.CallTool(t.Context(), shell("ask")); err == nil {
			t.Fatalf("%+v", r)
		}
		next := calling(t, c, shell("next"))
		run.lies(t, 1)
		run.late()
		if got := <-next; got != "done" {
			t.Error(got)
		}
		if n := run.taken(); n != 2 {
			t.Errorf("%d steps", n)
		}
	})
}

// calling makes a call in the background.
func calling(t testing.TB, c *sdk.ClientSession, p *sdk.CallToolParams) <-chan string {
	came := make(chan string, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := c.CallTool(t.Context(), p)
		if err != nil {
			came <- "error: " + err.Error()
			return
		}
		came <- text(t, r, nil)
	})
	t.Cleanup(wg.Wait)
	return came
}

// Other calls wait for the one that asks, and have nothing to do with its question.
func TestMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		run := newPoliced(t)
		asked, answer := make(chan string), make(chan bool)
		c := connectAs(t, run.server(), protocol, &sdk.ClientOptions{
			ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked <- r.Params.Message
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": <-answer}}, nil
			},
		})
		first := calling(t, c, shell("ask first"))
		<-asked
		second := calling(t, c, shell("ask second"))
		if _, err := c.ListTools(t.Context(), nil); err != nil { // Other things are answered meanwhile.
			t.Error(err)
		}
		if n := run.taken(); n != 1 {
			t.Errorf("%d steps at once", n)
		}
		answer <- true
		if got := <-first; !strings.Contains(got, "true by") {
			t.Error(got)
		}
		<-asked
		answer <- false
		if got := <-second; !strings.Contains(got, "false by") {
			t.Error(got)
		}
		if n := run.taken(); n != 2 {
			t.Errorf("%d steps", n)
		}
	})
}

// byHand is a client of the newest protocol that returns questions to its caller.
func byHand(t testing.TB, s *mcp.Server) *sdk.ClientSession {
	return connectAs(t, s, newest, &sdk.ClientOptions{
		ElicitationHandler: says("decline", nil), MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
}

// question has a call return its question.
func question(t testing.TB, c *sdk.ClientSession, p *sdk.CallToolParams) (state, key string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if !r.NeedsInput() || len(r.InputRequests) != 1 || r.RequestState == "" || len(r.Content) > 0 {
		t.Fatalf("%+v", r)
	}
	for key = range r.InputRequests {
	}
	return r.RequestState, key
}

// answered are the parameters of a call that answers.
func answered(p *sdk.CallToolParams, state string, answers sdk.InputResponseMap) *sdk.CallToolParams {
	q := *p
	q.RequestState, q.InputResponses = state, answers
	return &q
}

func approve(key string) sdk.InputResponseMap {
	return sdk.InputResponseMap{key: &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}}
}

// Nothing but the answer to the question, under its state and from who was asked, approves of a step, and none is taken
// twice.
func TestForged(t *testing.T) {
	run := newPoliced(t)
	s := run.server()
	c, other := byHand(t, s), byHand(t, s)
	p := shell("ask it")
	state, key := question(t, c, p)
	for name, try := range map[string]struct {
		c *sdk.ClientSession
		p *sdk.CallToolParams
	}{
		"no state":          {c, answered(p, "", approve(key))},
		"a guess":           {c, answered(p, "1", approve(key))},
		"nearly":            {c, answered(p, state+" ", approve(key))},
		"another command":   {c, answered(shell("ask for more"), state, approve(key))},
		"another tool":      {c, answered(&sdk.CallToolParams{Name: "get_alerts", Arguments: map[string]any{"namespace": "shop"}}, state, approve(key))},
		"another client":    {other, answered(p, state, approve(key))},
		"a state and none":  {other, answered(p, state, nil)},
		"without a timeout": {c, answered(&sdk.CallToolParams{Name: "exec_shell", Arguments: map[string]any{"command": "ask it", "timeout": 600}}, state, approve(key))},
	} {
		r, err := try.c.CallTool(t.Context(), try.p)
		if got := text(t, r, err); !r.IsError || !strings.Contains(got, "Nothing was done") {
			t.Errorf("%s: %s", name, got)
		}
	}
	run.lies(t, 1)
	//lint:ignore SA1019 A client may send it all the same.
	roots := sdk.InputResponseMap{key: &sdk.ListRootsResult{}}
	r, err := c.CallTool(t.Context(), answered(p, state, roots))
	if got := text(t, r, err); !strings.Contains(got, "false by") || !strings.Contains(got, "does not answer the form") {
		t.Errorf("roots: %s", got)
	}
	r, err = c.CallTool(t.Context(), answered(p, state, approve(key)))
	if got := text(t, r, err); !r.IsError || !strings.Contains(got, "Nothing was done") {
		t.Errorf("a second answer: %s", got)
	}

	// An answer of an earlier question approves of no later one.
	later, key2 := question(t, c, p)
	if later == state || key2 == key {
		t.Errorf("%s %s again", later, key2)
	}
	r, err = c.CallTool(t.Context(), answered(p, later, approve(key)))
	if err != nil || !r.NeedsInput() {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = c.CallTool(t.Context(), answered(p, r.RequestState, approve(key2)))
	if got := text(t, r, err); !strings.Contains(got, "true by") {
		t.Error(got)
	}
	if n := run.taken(); n != 2 {
		t.Errorf("%d steps", n)
	}
}

// Of answers at the same time one counts.
func TestAnswersAtOnce(t *testing.T) {
	run := newPoliced(t)
	c := byHand(t, run.server())
	p := shell("ask")
	state, key := question(t, c, p)
	var came []<-chan string
	for range 10 {
		came = append(came, calling(t, c, answered(p, state, approve(key))))
	}
	approved := 0
	for _, got := range came {
		if strings.Contains(<-got, "true by") {
			approved++
		}
	}
	if n := run.taken(); n != 1 || approved != 1 {
		t.Errorf("%d steps, %d approved", n, approved)
	}
}

// Who calls again without an answer is asked again, and not for ever.
func TestNotAnswered(t *testing.T) {
	run := newPoliced(t)
	c := byHand(t, run.server())
	p := shell("ask")
	state, _ := question(t, c, p)
	for n := 2; ; n++ {
		r, err := c.CallTool(t.Context(), answered(p, state, nil))
		if err != nil {
			t.Fatal(err)
		}
		if !r.NeedsInput() {
			if got := text(t, r, nil); !strings.Contains(got, "false by") || n != 10 {
				t.Errorf("after %d times: %s", n, got)
			}
			break
		}
		if r.RequestState == state {
			t.Error("the state is the same")
		}
		state = r.RequestState
	}
	if n := run.taken(); n != 1 {
		t.Errorf("%d steps", n)
	}
}

// An answer that comes too late changes nothing, and who sends it gets what became of the step.
func TestLate(t *testing.T) {
	run := newPoliced(t)
	c := byHand(t, run.server())
	p := shell("ask")
	state, key := question(t, c, p)
	run.late()
	r, err := c.CallTool(t.Context(), shell("next"))
	if got := text(t, r, err); got != "done" {
		t.Errorf("next: %s", got)
	}
	r, err = c.CallTool(t.Context(), answered(p, state, approve(key)))
	if got := text(t, r, err); !strings.Contains(got, "nobody answered") {
		t.Error(got)
	}
	if n := run.taken(); n != 2 {
		t.Errorf("%d steps", n)
	}
}

// Who waits for a step that is over does not ask the questions of the next.
func TestLateAnswerAsksNothing(t *testing.T) {
	run := newPoliced(t)
	c := byHand(t, run.server())
	p, next := shell("ask"), shell("ask next")
	state, key := question(t, c, p)
	if err := run.desk.Answer(t.Context(), 1, guard.Answer{Approved: true, By: "another"}); err != nil {
		t.Fatal(err)
	}
	state2, key2 := question(t, c, next)
	r, err := c.CallTool(t.Context(), answered(p, state, approve(key)))
	if got := text(t, r, err); !strings.Contains(got, `true by "another"`) {
		t.Error(got)
	}
	r, err = c.CallTool(t.Context(), answered(next, state2, approve(key2)))
	if got := text(t, r, err); !strings.Contains(got, "true by \"the MCP") {
		t.Error(got)
	}
}

// A client that is asked by a request learns when nobody wants the answer any more.
func TestWithdrawn(t *testing.T) {
	run := newPoliced(t)
	asked, withdrawn := make(chan bool), make(chan bool)
	c := connectAs(t, run.server(), older, &sdk.ClientOptions{
		ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			close(asked)
			<-ctx.Done()
			close(withdrawn)
			return nil, ctx.Err()
		},
	})
	came := calling(t, c, shell("ask"))
	<-asked
	run.late()
	if got := <-came; !strings.Contains(got, "nobody answered") {
		t.Error(got)
	}
	<-withdrawn
}

// To cancel a call that waits, with an answer or for one, ends the step; the next one is not asked about it.
func TestCancelAsked(t *testing.T) {
	t.Run(older, func(t *testing.T) {
		run := newPoliced(t)
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		c := connectAs(t, run.server(), older, &sdk.ClientOptions{
			ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		if _, err := c.CallTool(ctx, shell("ask")); err == nil {
			t.Error("it has a result")
		}
		<-run.ended
		r, err := c.CallTool(t.Context(), shell("next"))
		if got := text(t, r, err); got != "done" || asked != 1 {
			t.Errorf("%s, asked %d times", got, asked)
		}
	})
	t.Run(newest, func(t *testing.T) {
		run := newPoliced(t)
		c := byHand(t, run.server())
		p := shell("ask; sleep 100")
		state, key := question(t, c, p)
		cancelled := func(p *sdk.CallToolParams, now func()) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			waits := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, p)
				waits <- err
			}()
			now()
			cancel()
			if err := <-waits; err == nil {
				t.Error("it has a result")
			}
		}
		cancelled(shell("next"), func() {}) // It waits for the other.
		cancelled(answered(p, state, approve(key)), func() { run.lies(t, 0) })
		<-run.ended
		r, err := c.CallTool(t.Context(), shell("after"))
		if got := text(t, r, err); got != "done" {
			t.Error(got)
		}
		if n := run.taken(); n != 2 {
			t.Errorf("%d steps: %q", n, run.steps)
		}
	})
}

// With a client that leaves goes the step that waits for its answer, and the server ends.
func TestLeavesAsked(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		run := newPoliced(t)
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- run.server().Stdio(context.Background(), in, out) }()
		asked := make(chan bool)
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
			ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				close(asked)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}).Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		called := make(chan bool)
		go func() {
			defer close(called)
			_, _ = c.CallTool(ctx, shell("ask"))
		}()
		<-asked
		toServer.Close() // It is gone, and says nothing.
		fromServer.Close()
		select {
		case <-run.ended:
		case <-time.After(time.Minute):
			t.Fatal("the step goes on")
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		cancel()
		c.Close()
		<-called
	})
}

// The end of the server is that of a step whose client was asked.
func TestStoppedAsked(t *testing.T) {
	run := newPoliced(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- run.server().Stdio(ctx, in, out) }()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{
		ElicitationHandler: says("decline", nil), MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	}).Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	question(t, c, shell("ask"))
	cancel()
	<-run.ended
	if err := <-served; err != nil {
		t.Error(err)
	}
	toServer.Close()
	out.Close()
	c.Close()
}

// A client that is nothing but the agent is never asked, or it would approve itself; whoever else has the run's desk
// answers.
func TestAgentIsNotAsked(t *testing.T) {
	each(t, func(t *testing.T, protocol string) {
		run := newPoliced(t)
		c := connectAs(t, mcp.New(run, options), protocol, &sdk.ClientOptions{
			ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				t.Error("it was asked")
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
			},
		})
		came := calling(t, c, shell("ask"))
		run.lies(t, 1)
		r, err := c.CallTool(t.Context(), answered(shell("ask"), "1", approve("approval-1")))
		if got := text(t, r, err); !r.IsError || !strings.Contains(got, "Nothing was done") {
			t.Error(got)
		}
		if err := run.desk.Answer(t.Context(), 1, guard.Answer{By: "the operator", Why: "no"}); err != nil {
			t.Error(err)
		}
		if got := <-came; got != "done\nfalse by \"the operator\": no" {
			t.Error(got)
		}
	})
}

// Over HTTP a client is asked as well. One that never answers has nobody wait longer than the question.
func TestAskedOverHTTP(t *testing.T) {
	run := newPoliced(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- run.server().HTTP(ctx, l, "") }()
	client := func(user elicitation) (*sdk.ClientSession, *http.Transport) {
		t.Helper()
		transport := &http.Transport{}
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, &sdk.ClientOptions{ElicitationHandler: user}).Connect(t.Context(), &sdk.StreamableClientTransport{
			Endpoint: "http://" + l.Addr().String() + mcp.Path, HTTPClient: &http.Client{Transport: transport}, MaxRetries: -1,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, transport
	}
	c, transport := client(says("accept", map[string]any{"approve": true}))
	r, err := c.CallTool(t.Context(), shell("ask ask"))
	if got := text(t, r, err); strings.Count(got, "true by \"the MCP") != 2 {
		t.Error(got)
	}

	asked, never := make(chan bool, 1), make(chan bool)
	silent, others := client(func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked <- true
		<-never
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
	})
	came := calling(t, silent, shell("ask"))
	<-asked
	next := calling(t, c, shell("next"))
	run.late()
	if got := <-next; got != "done" {
		t.Error(got)
	}
	if got := <-came; !strings.Contains(got, "nobody answered") {
		t.Error(got)
	}
	close(never)
	silent.Close()
	c.Close()
	others.CloseIdleConnections()
	transport.CloseIdleConnections()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
