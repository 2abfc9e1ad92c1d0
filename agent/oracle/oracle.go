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
	p := b.Truth
	switch p.Task {
	case problem.Detection:
		return agent.Script(agent.Call("submit", p.Anomaly())), nil
	case problem.Localization:
		names := []string{}
		for _, c := range p.Document.Answer.Components {
			names = append(names, c.Name)
		}
		return agent.Script(agent.Call("submit", names)), nil
	case problem.Analysis:
		return agent.Script(agent.Call("submit", p.Document.Answer.Cause)), nil
	}
	commands, err := p.Solution()
	if err != nil {
		return nil, err
	}
	var responses []string
	for _, c := range commands {
		responses = append(responses, agent.Call("exec_shell", c))
	}
	return agent.Script(append(responses, agent.Call("submit"))...), nil
}
