package agent

import (
	"context"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/problem"
)

// Answers returns an agent that gives one response to each question of an incident, or to the only question of any
// other task. The question is at the end of an observation.
func Answers(task problem.Task, answer func(question problem.Task) (string, error)) Agent {
	if task == problem.Incident {
		task = problem.Detection // It is asked first.
	}
	return Func(func(_ context.Context, observation string) (string, error) {
		if q := aci.Asked(observation); q != "" {
			task = problem.Task(q)
		}
		return answer(task)
	})
}

// Reference returns the responses that answer a question of a problem as its document does. Those to a mitigation
// carry out the reference solution.
func Reference(p *problem.Problem, question problem.Task) ([]string, error) {
	switch question {
	case problem.Detection:
		return []string{Call("submit", p.Anomaly())}, nil
	case problem.Localization:
		names := []string{}
		for _, c := range p.Answer().Components {
			names = append(names, c.Name)
		}
		return []string{Call("submit", names)}, nil
	case problem.Analysis:
		if c := p.Answer().Cause; c != nil {
			return []string{Call("submit", c)}, nil
		}
		return []string{Call("submit")}, nil
	}
	commands, err := p.Solution()
	if err != nil {
		return nil, err
	}
	var responses []string
	for _, c := range commands {
		responses = append(responses, Call("exec_shell", c))
	}
	return append(responses, Call("submit")), nil
}
