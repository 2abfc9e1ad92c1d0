// Package noop is the agent that does nothing: it submits at once that all is well. No problem with
// a fault may be solved by it.
package noop

import (
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// Entry is the agent.
var Entry = agent.Entry{Name: "noop", Doc: "does nothing and submits that all is well", New: newNoop}

func newNoop(b agent.Briefing) (agent.Agent, error) {
	return agent.Answers(b.Task, func(question problem.Task) (string, error) {
		switch question {
		case problem.Detection:
			return agent.Call("submit", "No"), nil
		case problem.Localization:
			return agent.Call("submit", []string{}), nil
		}
		return agent.Call("submit"), nil
	}), nil
}
