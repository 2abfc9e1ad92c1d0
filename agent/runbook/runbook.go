package runbook

import (
	"context"
	"errors"
	"iter"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// Entry is the agent.
var Entry = agent.Entry{
	Name: "runbook", Doc: "follows an operator's runbook, without a language model",
	Live: true, New: newRunbook,
}

func newRunbook(b agent.Briefing) (agent.Agent, error) {
	if b.Task == problem.OnCall {
		return start(func(c *console) { onCall(c, b.Namespace) }), nil
	}
	return start(func(c *console) { work(c, b.Task, b.Namespace) }), nil
}

// runner is an agent whose work is sequential code. It runs as a coroutine: it rests while the agent
// waits for an observation.
type runner struct {
	console *console
	next    func() (string, bool)
	stop    func()
	last    string
	failed  error // why there is no next response
}

func start(work func(*console)) *runner {
	r := &runner{console: &console{setup: helpers, most: maxLooks}}
	r.next, r.stop = iter.Pull(iter.Seq[string](func(yield func(string) bool) {
		r.console.yield = yield
		work(r.console)
	}))
	return r
}

// Act implements agent.Agent. An agent that has submitted says the same again.
func (r *runner) Act(ctx context.Context, observation string) (string, error) {
	r.console.observation, r.console.ctx = observation, ctx
	if response, ok := r.next(); ok {
		r.last = response
	}
	if r.failed != nil {
		return "", r.failed
	}
	if r.last == "" {
		return "", errors.New("the runbook is at its end")
	}
	return r.last, nil
}

// Close ends the work.
func (r *runner) Close() error {
	r.stop()
	return nil
}

// work does a task: looks, concludes, repairs if asked to, and submits. In an incident, all looks are needed for some
// question, so the answers come one after another when they are done.
func work(c *console, task problem.Task, namespace string) {
	i := &investigation{console: c, system: newSystem(namespace), task: task}
	i.prepare("First I set up a few helpers, which keep of long outputs what matters.")
	i.investigate()
	if task == problem.Incident {
		i.task = problem.Detection
	}
	for {
		if i.task == problem.Mitigation {
			i.repair()
		}
		i.submit()
		next := aci.Asked(c.observation)
		if task != problem.Incident || next == "" || c.closed {
			return
		}
		i.task = problem.Task(next)
	}
}
