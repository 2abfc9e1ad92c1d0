// Command glance is aiopslab with one more agent.
package main

import (
	"context"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/lab"
)

// glance looks at the pods once, and calls it an anomaly if one is not ready.
type glance struct{ namespace string }

func (g glance) Act(_ context.Context, observation string) (string, error) {
	switch {
	case !strings.Contains(observation, "READY"):
		return agent.Call("exec_shell", "kubectl get pods -n "+g.namespace), nil
	case strings.Contains(observation, "0/1"):
		return agent.Call("submit", "Yes"), nil
	}
	return agent.Call("submit", "No"), nil
}

func main() {
	lab.Main(lab.Parts{Agents: []agent.Entry{{
		Name: "glance", Doc: "looks at the pods once",
		New: func(b agent.Briefing) (agent.Agent, error) { return glance{b.Namespace}, nil },
	}}})
}
