package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/aiopslab/aiopslab/aci/mcptool"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/session"
)

// This file has a client's user answer what a run's policy asks. Since 2026-07-28 a server sends no requests: a call
// returns the questions, with a state, and the client calls again with the answers and that state. So a step may
// outlive the call that began it. A client of an older protocol is sent a request while its call waits. The SDK could
// turn the one into the other, but does so once in a call, and has the step wait where the client fails to ask.

const (
	// roundTrips is the first protocol in which a call returns questions.
	roundTrips = "2026-07-28"
	// maxRounds is how often one call asks. The SDK's clients give up at the tenth time.
	maxRounds = 9
)

// asker has clients ask their users. Each step is taken once, in however many calls.
type asker struct {
	run  Run
	desk *session.Desk
	life context.Context // no step outlives it
	turn chan struct{}   // held by the step that is being taken, whose the questions are

	mu    sync.Mutex
	calls map[string]*call // those that wait for answers, by their state
	put   map[int]bool     // the numbers of questions that a client was asked
}

// call is a step that a client has asked for, and all its calls for it.
type call struct {
	client *mcp.ServerSession
	step   string
	cancel context.CancelFunc
	rounds int
	asked  []session.Approval // in the last round

	done chan struct{} // closed when the step has been taken
	came session.Turn  // what it came to
	err  error
}

func newAsker(life context.Context, run Run, desk *session.Desk) *asker {
	return &asker{
		run: run, desk: desk, life: life, turn: make(chan struct{}, 1),
		calls: map[string]*call{}, put: map[int]bool{},
	}
}

// begin takes a step, after those that were begun before.
func (a *asker) begin(ctx context.Context, req *mcp.CallToolRequest, step string) *mcp.CallToolResult {
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return unable(context.Cause(ctx))
	}
	c := &call{client: req.Session, step: step, done: make(chan struct{})}
	var acting context.Context
	acting, c.cancel = context.WithCancel(a.life)
	go func() {
		c.came, c.err = a.run.Step(acting, step)
		close(c.done)
		c.cancel()
		for _, q := range a.desk.Questions() { // What a step starts ends with it, so nobody waits for an answer.
			_ = a.desk.Answer(a.life, q.Number, guard.Answer{Why: "the step was over before there was an answer"})
		}
		<-a.turn
	}()
	return a.attend(ctx, c)
}

// resume goes on with a step whose questions the client was asked. Each state is good for one call, of the client that
// got it and for what it was got for.
func (a *asker) resume(ctx context.Context, req *mcp.CallToolRequest, step string) *mcp.CallToolResult {
	answers := req.Params.InputResponses
	c := a.take(req, step)
	if c == nil {
		return stale()
	}
	for _, q := range c.asked {
		if got := answers[key(q)]; got != nil {
			_ = a.desk.Answer(ctx, q.Number, verdict(got)) // If it came too late, the step tells what became of it.
		}
	}
	return a.attend(ctx, c)
}

// take has this call go on with the one that waits for its answers, if there is one. What it does not answer is asked
// again.
func (a *asker) take(req *mcp.CallToolRequest, step string) *call {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.calls[req.Params.RequestState]
	if c == nil || c.client != req.Session || c.step != step {
		return nil
	}
	delete(a.calls, req.Params.RequestState)
	for _, q := range c.asked {
		if req.Params.InputResponses[key(q)] == nil {
			delete(a.put, q.Number)
		}
	}
	return c
}

// stale is the result of a call that goes on with none. To take a step instead might be to take it twice.
func stale() *mcp.CallToolResult {
	return mcptool.Failed("Error: no call with these arguments waits for answers under this requestState; it may " +
		"have had them already. Nothing was done. A call without requestState and inputResponses takes a step.")
}

// attend waits until the step has been taken, or something is to be asked. If the client cancels the call meanwhile,
// the command that the step runs ends.
func (a *asker) attend(ctx context.Context, c *call) *mcp.CallToolResult {
	leave := context.AfterFunc(ctx, c.cancel)
	defer leave()
	for {
		list, changed := a.desk.Watch()
		list = a.open(list)
		select {
		case <-c.done: // The questions may be those of the next step.
			return came(c.came, c.err)
		default:
		}
		switch why := c.unaskable(); {
		case len(list) == 0:
			select {
			case <-c.done:
			case <-changed:
			}
		case why != "":
			_ = a.desk.Answer(ctx, list[0].Number, guard.Answer{Why: why})
		case c.roundTrips():
			if res := a.ask(c, list, leave); res != nil {
				return res
			}
		default:
			a.request(ctx, c, list[0])
		}
	}
}

// unaskable says why the client is not asked, if it is not.
func (c *call) unaskable() string {
	p := c.client.InitializeParams()
	switch {
	case p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil,
		p.Capabilities.Elicitation.Form == nil && p.Capabilities.Elicitation.URL != nil:
		return "the MCP client cannot ask its user: it does not support elicitation with forms"
	case c.rounds >= maxRounds:
		return fmt.Sprintf("one call asks %d times at most", maxRounds)
	}
	return ""
}

// roundTrips reports whether the client is asked by what its call returns.
func (c *call) roundTrips() bool { return c.client.InitializeParams().ProtocolVersion >= roundTrips }

// open are the questions that no client was asked.
func (a *asker) open(list []session.Approval) (open []session.Approval) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range list {
		if !a.put[q.Number] {
			open = append(open, q)
		}
	}
	return open
}

// ask is the result that has the client ask its user, and call again. The step goes on without a call; if that was
// cancelled just now, so is the step, and there is nothing to ask.
func (a *asker) ask(c *call, list []session.Approval, leave func() bool) *mcp.CallToolResult {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.rounds++
	c.asked = list
	res := &mcp.CallToolResult{RequestState: rand.Text(), InputRequests: mcp.InputRequestMap{}}
	for _, q := range list {
		a.put[q.Number] = true
		res.InputRequests[key(q)] = form(q.Question)
	}
	if !leave() {
		return nil
	}
	a.calls[res.RequestState] = c
	return res
}

// request asks a client by a request, until there is an answer or nobody wants it any more.
func (a *asker) request(ctx context.Context, c *call, q session.Approval) {
	c.rounds++
	a.mu.Lock()
	a.put[q.Number] = true
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	answered := make(chan guard.Answer, 1)
	go func() {
		got, err := c.client.Elicit(ctx, form(q.Question))
		if err != nil {
			answered <- guard.Answer{Why: fmt.Sprintf("the MCP client could not ask its user: %v", err)}
			return
		}
		answered <- verdict(got)
	}()
	for {
		list, changed := a.desk.Watch()
		if !slices.ContainsFunc(list, func(o session.Approval) bool { return o.Number == q.Number }) {
			cancel()
			<-answered
			return
		}
		select {
		case got := <-answered:
			if ctx.Err() == nil { // Else the call was cancelled, and the step with it.
				_ = a.desk.Answer(ctx, q.Number, got)
			}
			cancel()
			return
		case <-changed:
		}
	}
}

// left ends the steps of a client that has gone.
func (a *asker) left(client *mcp.ServerSession) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for state, c := range a.calls {
		if c.client == client {
			delete(a.calls, state)
			c.cancel()
		}
	}
}
