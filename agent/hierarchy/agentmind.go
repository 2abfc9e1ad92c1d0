package hierarchy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// agentMind is the mind of a maintainer that is another agent of the lab. Each message is a run of it, in which what
// it submits is its report: where the cause is, or after a repair nothing, or of what it was told to do whether that is
// done.
type agentMind struct {
	g    *group
	name string
}

// Work implements Mind.
func (m *agentMind) Work(ctx context.Context, msg Message, before []string, d *desk) (a answer, err error) {
	b := m.g.briefing()
	b.Task = m.task(msg)
	b.Actions, b.Instructions = aci.Actions(string(b.Task)), aci.Instructions(string(b.Task))
	b.Description = m.describe(msg, b.Task, before)
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
				return m.report(call, b.Task), nil
			}
		}
		text, err := d.call(ctx, does, response)
		if err != nil {
			return a, err
		}
		observation = text + "\n" + aci.NextAction
	}
	return reported(fmt.Sprintf("I have taken %d turns over this and have not come to an end.", maxTurns), true), nil
}

// task is what a message asks for, as a task of the lab.
func (m *agentMind) task(msg Message) problem.Task {
	switch {
	case msg.Want == repair, msg.Want == confirm && m.g.mayRepair():
		return problem.Mitigation
	case msg.Want == carry, msg.Want == reach, m.toldInWords(msg):
		return problem.Operation
	}
	return problem.Localization
}

// toldInWords reports whether the words of a message may ask to change something: those of a model that leads or
// speaks, where more is asked than to find out, and those of a heartbeat among equals who see to objectives.
func (m *agentMind) toldInWords(msg Message) bool {
	if msg.Kind == record.HeartbeatMessage {
		return m.g.mode == peers && m.g.order != nil && m.g.order.Fix
	}
	switch m.g.Task {
	case problem.Detection, problem.Localization, problem.Analysis:
		return false
	}
	return m.g.Model != nil && msg.Kind == record.TaskMessage
}

// The keys of what an agent submits that was told to do something.
const (
	wellKey   = "well"
	reportKey = "report"
)

// What an agent is told of its submission.
const (
	submitCauses = "If something is wrong, name the services in which the cause lies; if nothing is, name none."
	submitDeeds  = "Do what of it is to be done at this service, and wait until it has taken effect. Then submit a " +
		`dict with "` + wellKey + `" ("yes" if it is now as it is asked to be, else "no") and "` + reportKey + `" (what you ` +
		"found and changed, and how it is now, in words)."
)

func (m *agentMind) describe(msg Message, task problem.Task, before []string) string {
	submission := map[problem.Task]string{problem.Operation: submitDeeds}[task]
	if submission == "" {
		submission = submitCauses
	}
	text := fmt.Sprintf("You look after the service %s, and after that one alone. %s\n\nIt calls: %s. Colleagues look "+
		"after the others: %s.\n\n%s\n%s\n\n%s", m.name, m.g.summary(), orNobody(m.g.site.Calls[m.name]),
		strings.Join(m.g.services(), ", "), heading(msg), quoted(msg.Text), submission)
	if len(before) > 0 {
		text += "\n\nYou were interrupted in this. What you had done before:\n" + quoted(strings.Join(before, "\n"))
	}
	return text
}

// report is what the agent submitted, for models in words, and for rules as whether and where something is wrong.
func (m *agentMind) report(call *aci.Call, task problem.Task) (a answer) {
	said := strings.TrimSpace(strings.Join(call.Context, "\n"))
	said = strings.TrimSpace(strings.NewReplacer("Thought:", "", "Action:", "").Replace(said))
	if task == problem.Operation {
		return done(call, said)
	}
	names := slices.DeleteFunc(lists(call, 0, "faulty_components"), func(n string) bool { return n == "" })
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
	trouble := len(names) > 0
	a.Trouble = &trouble
	b, _ := json.Marshal(names)
	if said == "" {
		said = "I am done."
	}
	a.Text = fmt.Sprintf("%s My answer: %s", said, b)
	return a
}

// done is what an agent submitted that was told to do something. Without a word about it, all is well.
func done(call *aci.Call, said string) answer {
	v, ok := call.Kwargs[reportKey]
	if !ok && len(call.Args) > 0 {
		v = call.Args[0]
	}
	dict, _ := v.(map[string]any)
	trouble := slices.Contains([]any{"no", "No", false}, dict[wellKey])
	words, _ := dict[reportKey].(string)
	text := strings.TrimSpace(said + "\n" + words)
	if text == "" {
		text = map[bool]string{true: "I could not do it.", false: "I am done."}[trouble]
	}
	return reported(text, trouble)
}

var _ agent.Agent = (*group)(nil)
