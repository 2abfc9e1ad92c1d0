package hierarchy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
)

// agentMind is the mind of a maintainer that is another agent of the lab. Each message is a run of it, in which what
// it submits is its report: where the cause is, or after a repair nothing.
type agentMind struct {
	g    *group
	name string
}

// Work implements Mind.
func (m *agentMind) Work(ctx context.Context, msg Message, before []string, d *desk) (a answer, err error) {
	b := m.g.briefing()
	b.Task = problem.Localization
	if msg.Want == repair || msg.Want == confirm && m.g.Task == problem.Mitigation {
		b.Task = problem.Mitigation
	}
	b.Actions, b.Instructions = aci.Actions(string(b.Task)), aci.Instructions(string(b.Task))
	b.Description = m.describe(msg, before)
	worker, err := m.g.maintainer.New(b)
	if err != nil {
		return a, err
	}
	if c, ok := worker.(interface{ Close() error }); ok {
		defer func() { _ = c.Close() }()
	}
	observation := aci.NextAction
	for range maxTurns {
		response, err := worker.Act(ctx, observation)
		if err != nil {
			return a, err
		}
		m.g.floor.moves.Add(1)
		does := "nothing"
		call, err := aci.Parse(response)
		if err == nil {
			if does = call.Name; has(m.g.submission(), does) {
				return m.report(call, response), nil
			}
		}
		text, err := d.call(ctx, does, response)
		if err != nil {
			return a, err
		}
		observation = text + "\n" + aci.NextAction
	}
	a.Text, a.issue = fmt.Sprintf("I have taken %d turns over this and have not come to an end.", maxTurns), true
	return a, nil
}

func (m *agentMind) describe(msg Message, before []string) string {
	text := fmt.Sprintf("You look after the service %s, in the namespace %s, and after that one alone. It calls: %s. "+
		"Colleagues look after the others: %s.\n\n%s\n%s\n\nIf something is wrong, name the services in which the "+
		"cause lies; "+
		"if nothing is, name none.", m.name, m.g.Namespace, orNobody(m.g.site.Calls[m.name]),
		strings.Join(m.g.services(), ", "), heading(msg), quoted(msg.Text))
	if len(before) > 0 {
		text += "\n\nYou were interrupted in this. What you had done before:\n" + quoted(strings.Join(before, "\n"))
	}
	return text
}

// report is what the agent submitted.
func (m *agentMind) report(call *aci.Call, response string) (a answer) {
	said := strings.TrimSpace(strings.Join(call.Context, "\n"))
	said = strings.TrimSpace(strings.NewReplacer("Thought:", "", "Action:", "").Replace(said))
	names := lists(call, 0, "faulty_components")
	for _, n := range names {
		if contains(m.g.services(), n) {
			evidence := "its maintainer says so"
			if n != m.name {
				evidence = "the maintainer of " + m.name + " says so"
			}
			a.Findings = append(a.Findings, runbook.Finding{Kind: "silent", Component: n, Evidence: evidence})
			a.issue = a.issue || n == m.name
		}
	}
	b, _ := json.Marshal(names)
	if said == "" {
		said = "I am done."
	}
	a.Text = fmt.Sprintf("%s My answer: %s", said, b)
	return a
}

var _ agent.Agent = (*group)(nil)
