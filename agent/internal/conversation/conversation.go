// Package conversation is what the agents with a chat model have in common: the conversation with
// the model, prompts in files, and a rule that keeps it within the model's window.
package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// nothing stands for a reply without words, which endpoints do not take back.
	nothing = "(no reply)"
	// oneCall answers the calls beyond the first of a turn.
	oneCall = "not done: one call a turn"
	// cutOff tells a model that its reply had no end.
	cutOff = "Your last reply was cut off at the limit of tokens. Be brief.\n"
	// tooLongTries is how often a conversation is cut that the endpoint finds too long.
	tooLongTries = 6
)

// Conversation is what an agent and its model have said. It begins with a prompt, in which
// {description}, {instructions} and {actions} are filled in. It is not safe for concurrent use.
type Conversation struct {
	model   llm.Model
	note    func(kind string, data any)
	tools   []llm.Tool
	head    []llm.Message
	turns   []*turn
	limit   int // of tokens in a request
	counter llm.Counter
	// hurried says that the last reply was cut off.
	hurried bool
}

// turn is a reply of the model and what it led to.
type turn struct {
	step        int
	reply       llm.Message
	observation []llm.Message // empty until it is known
	state       state
}

// New begins a conversation. Tools is for models that call functions; others find the actions in the
// prompt.
func New(b agent.Briefing, p *Prompt, actions []*aci.Action, tools bool) (*Conversation, error) {
	if b.Model == nil {
		return nil, errors.New("the agent has no model")
	}
	var docs []string
	for _, a := range actions {
		docs = append(docs, a.Text())
	}
	system, user := p.Fill("description", b.Description, "instructions", b.Instructions, "actions",
		strings.Join(docs, "\n\n"))
	c := &Conversation{model: b.Model, note: b.Note, limit: limit(b.Model.Info().Window)}
	c.counter.Thoughts = b.Model.Info().Thoughts == llm.Back
	if c.note == nil {
		c.note = func(string, any) {}
	}
	if tools {
		for _, a := range actions {
			c.tools = append(c.tools, llm.Tool{Name: a.Name, Doc: a.Doc, Schema: a.Schema()})
		}
	}
	c.head = []llm.Message{{Role: llm.System, Text: system}, {Role: llm.User, Text: user}}
	c.note(record.PromptEvent, p.Prompt)
	return c, nil
}

// Next tells the model what was observed and returns its reply. An error is llm.ErrTooLong if the
// conversation cannot be cut to fit.
func (c *Conversation) Next(ctx context.Context, observation string) (llm.Reply, error) {
	if c.hurried {
		observation = cutOff + observation
	}
	c.observe(observation)
	reply, err := c.ask(ctx)
	if err != nil {
		return reply, err
	}
	c.hurried = reply.Stop == llm.Length
	said := llm.Message{
		Role: llm.Assistant, Text: reply.Text, Calls: reply.Calls, Thoughts: reply.Thoughts,
		Sealed: reply.Sealed,
	}
	if strings.TrimSpace(said.Text) == "" && len(said.Calls) == 0 {
		said.Text = nothing
	}
	c.turns = append(c.turns, &turn{step: len(c.turns) + 1, reply: said})
	return reply, nil
}

// observe adds what the last reply led to, or at first what begins the conversation.
func (c *Conversation) observe(text string) {
	if len(c.turns) == 0 {
		last := &c.head[len(c.head)-1]
		last.Text = strings.TrimSpace(last.Text + "\n\n" + text)
		return
	}
	t := c.turns[len(c.turns)-1]
	if len(t.reply.Calls) == 0 {
		t.observation = []llm.Message{{Role: llm.User, Text: text}}
		return
	}
	for i, call := range t.reply.Calls {
		m := llm.Message{Role: llm.Result, Text: text, For: call.ID}
		if i > 0 {
			m.Text = oneCall
		}
		t.observation = append(t.observation, m)
	}
}

// ask sends the conversation, and if it turns out to be too long a shorter one.
func (c *Conversation) ask(ctx context.Context) (llm.Reply, error) {
	for try := 1; ; try++ {
		size, err := c.fit()
		if err != nil {
			return llm.Reply{}, err
		}
		reply, err := c.model.Chat(ctx, llm.Request{Messages: c.messages(), Tools: c.tools})
		if !errors.Is(err, llm.ErrTooLong) {
			return reply, err
		}
		if try == tooLongTries {
			return reply, fmt.Errorf("%w, though it was cut to about %d tokens", err, size)
		}
		c.limit = min(c.limit, size) * 3 / 4 // The model counts otherwise, or has less of a window.
	}
}

// messages is the conversation as it is sent.
func (c *Conversation) messages() []llm.Message {
	list := append([]llm.Message(nil), c.head...)
	dropped := 0
	for _, t := range c.turns {
		if t.state == left {
			dropped++
			continue
		}
		list = append(list, t.reply)
		list = append(list, t.observation...)
	}
	if dropped > 0 {
		list[len(c.head)-1].Text += fmt.Sprintf(
			"\n\n[The first %d turns are left out, to keep the conversation within the model's window.]", dropped)
	}
	return list
}
