package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/hierarchy/a2a"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/agent/runbook"
)

// errLost is the error of a maintainer elsewhere that does not do its part. It gets no other chance.
var errLost = errors.New("it does not do its part")

var memberPrompt = conversation.MustRead(files, "prompts/member.md", "hierarchy/member")

// remoteMind is the mind of a maintainer that is an agent of somebody else, elsewhere, which is talked to over A2A. It
// has the calls of the lab as all have: it writes one, and is told what came of it, until it reports.
type remoteMind struct {
	g       *group
	name    string
	url     string
	client  *a2a.Client
	actions []*aci.Action
}

func (g *group) newRemoteMind(service, url string) *remoteMind {
	m := &remoteMind{g: g, name: service, url: url, actions: append(g.actions(), reportResult)}
	if g.mode == peers {
		m.actions = append(m.actions, sendMessage)
	}
	return m
}

// say says something to the agent and returns what it answers, in as much time as the group has patience.
func (m *remoteMind) say(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.g.patience, fmt.Errorf("no answer within %v", m.g.patience))
	defer cancel()
	if m.client == nil {
		c, err := a2a.Open(ctx, m.url, m.g.tokens[m.name])
		if err != nil {
			return "", m.lost(ctx, err)
		}
		m.client = c
		text = m.introduction() + "\n\n" + text
	}
	reply, err := m.client.Say(ctx, text)
	if err != nil {
		return "", m.lost(ctx, err)
	}
	m.g.floor.moves.Add(1)
	return reply, nil
}

// lost says that the agent is of no use any more, unless it is the group that is at its end.
func (m *remoteMind) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%w: the agent at %s: %w", errLost, m.url, err)
}

// introduction is what the agent is told first.
func (m *remoteMind) introduction() string {
	var callers []string
	for _, s := range m.g.services() {
		if contains(m.g.site.Calls[s], m.name) {
			callers = append(callers, s)
		}
	}
	var docs []string
	for _, a := range m.actions {
		docs = append(docs, a.Text())
	}
	text, _ := memberPrompt.Fill("service", m.name, "application", m.g.summary(), "calls",
		orNobody(m.g.site.Calls[m.name]),
		"callers", orNobody(callers), "members", strings.Join(m.g.services(), ", "+
			""), "actions", strings.Join(docs, "\n\n"))
	return text
}

// Work implements Mind.
func (m *remoteMind) Work(ctx context.Context, msg Message, before []string, d *desk) (answer, error) {
	text := heading(msg) + "\n" + quoted(msg.Text)
	if len(before) > 0 {
		text += "\n\nYou were interrupted in this. What you had done before:\n" + quoted(strings.Join(before, "\n"))
	}
	for range maxTurns {
		said, err := m.say(ctx, text)
		if err != nil {
			return answer{}, err
		}
		call, err := aci.Parse(said)
		switch {
		case err != nil: // Words without a call are a report.
			return m.report(said, false), nil
		case call.Name == reportResult.Name:
			return m.report(words(call, 0, "message"), strings.EqualFold(words(call, 1, "kind"), "ISSUE")), nil
		case !has(m.actions, call.Name):
			d.turn("nothing")
			text = fmt.Sprintf("You cannot call %s. When you are done, call report_result.", clip(call.Name, 60))
		case call.Name == sendMessage.Name:
			text = "sent"
			if err := d.tell(ctx, words(call, 0, "to"), words(call, 1, "message"), Message{}); err != nil {
				if !refusal(err) {
					return answer{}, err
				}
				text = "Not sent: " + err.Error()
			}
		default:
			if text, err = d.call(ctx, call.Name, said); err != nil {
				return answer{}, err
			}
		}
	}
	return answer{}, fmt.Errorf("%w: it has taken %d turns over a message and has not come to an "+
		"end", errLost, maxTurns)
}

// report is what the agent says, for models in words, and for rules as something that is wrong with the service.
func (m *remoteMind) report(text string, issue bool) (a answer) {
	a = reported(text, issue)
	if issue {
		a.Findings = []runbook.Finding{{Kind: "silent", Component: m.name, Evidence: "its maintainer says: " +
			"" + clip(text, 300)}}
	}
	return a
}
