// Package replay is the agent that does what another did: it gives the responses of a record again.
package replay

import (
	"fmt"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/record"
)

// Entry makes the agent from the record in a file.
func Entry(file string) (agent.Entry, error) {
	r, err := record.Read(file)
	if err != nil {
		return agent.Entry{}, err
	}
	steps, err := r.Steps()
	if err != nil {
		return agent.Entry{}, fmt.Errorf("%s: %w", file, err)
	}
	var responses []string
	for _, s := range steps {
		responses = append(responses, s.Response)
	}
	return agent.Entry{
		Name: "replay", Doc: "gives the responses of " + file + " again",
		New: func(agent.Briefing) (agent.Agent, error) { return agent.Script(responses...), nil },
	}, nil
}
