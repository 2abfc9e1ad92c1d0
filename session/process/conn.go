package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// defaultGrace is how long an environment may take to end what it was told to end.
const defaultGrace = 20 * time.Second

// conn is the supervisor's end of the line.
type conn struct {
	in  *os.File
	out *writer

	mu    sync.Mutex
	last  int // number of a request
	calls map[int]*call
	tell  session.Tell
	acts  int    // actions that are under way
	app   string // that is kept; empty for none
	world func([]byte)
	log   *slog.Logger
}

// call is a request that is not answered yet.
type call struct {
	answer chan message
	begun  func(action string)
}

func newConn(in *os.File, log *slog.Logger) *conn {
	return &conn{in: in, out: &writer{w: in}, calls: map[int]*call{}, log: logs.Or(log)}
}

// logger is where lines of the environment go now.
func (c *conn) logger() *slog.Logger {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log
}

// takeWorlds says who is given the worlds of the environment; nil for nobody.
func (c *conn) takeWorlds(take func(world []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.world = take
}

func (c *conn) acting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acts > 0
}

// read takes what the environment says, in order, until it is at its end.
func (c *conn) read(from io.Reader) error {
	return readLines(from, func(line []byte) error {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		c.mu.Lock()
		tell, call, take := c.tell, c.calls[m.ID], c.world
		c.mu.Unlock()
		switch {
		case m.Log != nil:
			heard(c.logger(), m.Log)
		case m.World != nil:
			if take != nil && len(m.World) <= MaxWorld {
				take(m.World)
			}
		case m.Kind != "":
			if tell != nil {
				tell(m.Kind, typed(m.Kind, m.Data))
			}
		case call == nil: // Nobody waits for it any more.
		case m.Begun != nil:
			if call.begun != nil {
				call.begun(*m.Begun)
			}
		default:
			call.answer <- m
			c.forget(m.ID)
		}
		return nil
	})
}

func (c *conn) remember(call *call) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.calls[c.last] = call
	return c.last
}

func (c *conn) forget(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// send sends a request. Params are our own types.
func (c *conn) send(id int, method string, params any) error {
	b, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.out.write(request{id, method, b})
}

// call asks the environment, and waits for the answer. When ctx ends, the environment is told so; one
// that does not answer then is killed. If it has died, the error is a [*session.Death].
func (e *Environment) call(ctx context.Context, method string, params, result any) error {
	return e.ask(ctx, &call{}, method, params, result)
}

func (e *Environment) ask(ctx context.Context, c *call, method string, params, result any) error {
	select {
	case <-e.done:
		return e.Err()
	default:
	}
	c.answer = make(chan message, 1)
	id := e.remember(c)
	defer e.forget(id)
	overdue := context.AfterFunc(ctx, func() { // It may not even read any more.
		time.AfterFunc(e.grace, func() {
			if e.waits(id) {
				e.Kill(&session.Death{Why: fmt.Sprintf("it did not answer within %v after it was told to stop",
					e.grace)})
			}
		})
	})
	defer overdue()
	if err := e.send(id, method, params); err != nil {
		e.Kill(&session.Death{Why: "it cannot be reached: " + err.Error()}) // It is gone, mostly, and that says more.
		return e.Err()
	}
	cancelled := ctx.Done()
	for {
		select {
		case m := <-c.answer:
			return m.result(result)
		case <-e.done:
			select {
			case m := <-c.answer: // It was its last word.
				return m.result(result)
			default:
			}
			return e.Err()
		case <-cancelled:
			cancelled = nil
			_ = e.send(0, "cancel", cancelParams{id, context.Cause(ctx).Error()})
		}
	}
}

// waits reports whether a request is not answered yet.
func (c *conn) waits(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id] != nil
}

func (m message) result(into any) error {
	if m.Error != nil {
		return m.Error
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		return fmt.Errorf("the environment's answer: %w", err)
	}
	return nil
}

// Keep makes the environment keep the problem's application for one run after another.
func (e *Environment) Keep(ctx context.Context, p *problem.Problem) error {
	err := e.call(ctx, "keep", keepParams{nameOf(p)}, nil)
	if err == nil {
		e.conn.mu.Lock()
		defer e.conn.mu.Unlock()
		e.app = p.App.Name
	}
	return err
}

// Ready has the problem's application there for a run that begins later; see [session.Local.Ready].
func (e *Environment) Ready(ctx context.Context, p *problem.Problem) error {
	return e.call(ctx, "ready", readyParams{nameOf(p)}, nil)
}

// Fits reports whether a problem can be run on the application that is kept.
func (e *Environment) Fits(p *problem.Problem) bool {
	e.conn.mu.Lock()
	defer e.conn.mu.Unlock()
	return e.app == "" || e.app == p.App.Name
}

// Renew resets an application that is kept for the next run. After an error the environment is of no use for another;
// see [session.Local.Renew].
func (e *Environment) Renew(ctx context.Context, seed uint64) error {
	return e.call(ctx, "renew", renewParams{seed}, nil)
}

// Prepare sets up the situation that the agent will find.
func (e *Environment) Prepare(ctx context.Context, s session.Setting,
	tell session.Tell,
) (a session.Admission, err error) {
	e.conn.mu.Lock()
	e.tell = tell
	if s.Log != nil {
		e.conn.log = s.Log
	}
	e.conn.mu.Unlock()
	p := prepareParams{
		nameOf(s.Problem), s.Seed, s.Noise, s.Decoys, s.Lived, s.Baseline, s.HandOver,
		s.Policy, s.Approves,
	}
	err = e.call(ctx, "prepare", p, &a)
	e.takeWorlds(nil) // What an agent can reach makes no worlds any more.
	if _, ok := errors.AsType[*Failure](err); ok && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	e.admitted()
	if err == nil && e.Place != nil {
		a.Kubeconfig, err = e.reach(a.Kubeconfig)
	}
	return a, err
}

// Approve answers a change that the policy has asked for.
func (e *Environment) Approve(ctx context.Context, number int, a guard.Answer) error {
	return e.call(ctx, "approve", approveParams{number, a}, nil)
}

var _ session.Approver = (*Environment)(nil)

// Act does what a response asks for.
func (e *Environment) Act(ctx context.Context, response string,
	begun func(action string),
) (r session.Reply, err error) {
	e.conn.mu.Lock()
	e.acts++
	e.conn.mu.Unlock()
	defer func() {
		e.conn.mu.Lock()
		e.acts--
		e.conn.mu.Unlock()
	}()
	err = e.ask(ctx, &call{begun: begun}, "act", actParams{response}, &r)
	return r, err
}

// Export writes the telemetry of an interval.
func (e *Environment) Export(ctx context.Context, i agent.Interval) (dir string, err error) {
	if err = e.call(ctx, "export", exportParams{i}, &dir); err != nil || e.Place == nil {
		return dir, err
	}
	var packed []byte
	if err := e.call(ctx, "fetch", fetchParams{dir}, &packed); err != nil {
		return "", err
	}
	return unpack(packed, e.Dir)
}

var _ session.Attended = (*Environment)(nil)

// Users says how users were served in the last seconds.
func (e *Environment) Users(ctx context.Context) (x session.Experience, err error) {
	err = e.call(ctx, "users", struct{}{}, &x)
	return x, err
}

// Dismiss closes the agent's access to the cloud.
func (e *Environment) Dismiss(ctx context.Context) error {
	e.letIn(nil)
	return e.call(ctx, "dismiss", struct{}{}, nil)
}

// Watch looks at the system after the agent was done.
func (e *Environment) Watch(ctx context.Context, interrupted bool) error {
	return e.call(ctx, "watch", watchParams{interrupted}, nil)
}
