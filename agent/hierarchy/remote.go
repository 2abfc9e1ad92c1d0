package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent/hierarchy/a2a"
	"github.com/aiopslab/aiopslab/agent/hierarchy/seat"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/agent/runbook"
)

// errLost is the error of a maintainer elsewhere that does not do its part. It gets no other chance.
var errLost = errors.New("it does not do its part")

var (
	memberPrompt = conversation.MustRead(files, "prompts/member.md", "hierarchy/member")
	clientPrompt = conversation.MustRead(files, "prompts/client.md", "hierarchy/client")
)

// line is how one talks to an agent elsewhere: it is told something, and says what it does.
type line interface {
	Say(ctx context.Context, text string) (string, error)
}

// remoteMind is the mind of a maintainer that is an agent of somebody else, elsewhere: one that is talked to over A2A,
// or that has joined as an MCP client. It has the calls of the lab as all have: it makes one, and is told what came of
// it, until it reports.
type remoteMind struct {
	g       *group
	name    string
	who     string                                  // for the record
	open    func(ctx context.Context) (line, error) // of the first word
	line    line
	actions []*aci.Action
}

func (g *group) newRemoteMind(service, url string) *remoteMind {
	m := &remoteMind{g: g, name: service, who: "the agent at " + url, actions: g.guestActions()}
	m.open = func(ctx context.Context) (line, error) {
		c, err := a2a.Open(ctx, url, g.tokens[service])
		if err != nil {
			return nil, err
		}
		return &introduced{c, m.introduction()}, nil
	}
	if url == byMCP {
		m.who = "the MCP client"
		m.open = func(context.Context) (line, error) { return g.seats[service], nil }
	}
	return m
}

// guestActions are those that a maintainer elsewhere has.
func (g *group) guestActions() []*aci.Action {
	actions := append(g.actions(), reportResult)
	if g.mode == peers {
		actions = append(actions, sendMessage)
	}
	return actions
}

// introduced is a line on which the first word is preceded by an introduction.
type introduced struct {
	line
	introduction string
}

func (i *introduced) Say(ctx context.Context, text string) (string, error) {
	if i.introduction != "" {
		text, i.introduction = i.introduction+"\n\n"+text, ""
	}
	return i.line.Say(ctx, text)
}

// say says something to the agent and returns what it answers, in as much time as the group has patience.
func (m *remoteMind) say(ctx context.Context, text string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.g.patience, fmt.Errorf("no answer within %v", m.g.patience))
	defer cancel()
	if m.line == nil {
		l, err := m.open(ctx)
		if err != nil {
			return "", m.lost(ctx, err)
		}
		m.line = l
	}
	reply, err := m.line.Say(ctx, text)
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
	return fmt.Errorf("%w: %s: %w", errLost, m.who, err)
}

// introduction is what an agent over A2A is told first.
func (m *remoteMind) introduction() string {
	var docs []string
	for _, a := range m.actions {
		docs = append(docs, a.Text())
	}
	return m.g.welcome(memberPrompt, m.name, "actions", strings.Join(docs, "\n\n"))
}

// welcome is what the maintainer of a service elsewhere is told of its part, with more words in pairs.
func (g *group) welcome(p *conversation.Prompt, service string, more ...string) string {
	var callers []string
	for _, s := range g.services() {
		if contains(g.site.Calls[s], service) {
			callers = append(callers, s)
		}
	}
	text, _ := p.Fill(append([]string{
		"service", service, "application", g.summary(), "calls", orNobody(g.site.Calls[service]), "callers",
		orNobody(callers), "members", strings.Join(g.services(), ", "),
	}, more...)...)
	return text
}

// Work implements Mind.
func (m *remoteMind) Work(ctx context.Context, msg Message, before []string, d *desk) (answer, error) {
	defer func() {
		if s, ok := m.line.(*seat.Seat); ok {
			s.Leave() // Whatever the client still asks for, it is not of this message.
		}
	}()
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
