// Package oracle is the agent that knows the answer: it gives the reference solution, through the
// same interface as any agent. Every problem must be solved by it.
package oracle

import (
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// Entry is the agent.
var Entry = agent.Entry{Name: "oracle", Doc: "gives the reference solution", KnowsTruth: true, New: newOracle}

func newOracle(b agent.Briefing) (agent.Agent, error) {
	if b.Truth.Task == problem.Operation {
		return newOperator(b.Truth)
	}
	if b.Truth.Task == problem.OnCall {
		return newWatch(b), nil
	}
	var responses []string
	for _, q := range b.Truth.Questions() {
		more, err := agent.Reference(b.Truth, q)
		if err != nil {
			return nil, err
		}
		responses = append(responses, more...)
	}
	return agent.Script(responses...), nil
}
