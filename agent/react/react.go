// Package react is an agent that reasons and acts in turn, after Yao et al., "ReAct: Synergizing Reasoning and
// Acting in Language Models" (2023): each reply of the model is a thought and an action. It can use all actions.
package react

import (
	"context"
	"embed"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
)

// Entry is the agent.
var Entry = agent.Entry{
	Name: "react", Doc: "a model that writes a thought before each action", NeedsModel: true,
	New: newAgent,
}

//go:embed prompts
var files embed.FS

var prompt = conversation.MustRead(files, "prompts/prompt.md", "react/prompt")

// reminder ends every observation.
const reminder = `

What you have seen once you need not ask for again. Write your next turn:
Thought: <what this tells you, and what you want to know or do next>
Action: <the one API call for that, in a block>`

func newAgent(b agent.Briefing) (agent.Agent, error) {
	c, err := conversation.New(b, prompt, b.Actions, false)
	if err != nil {
		return nil, err
	}
	return agent.Func(func(ctx context.Context, observation string) (string, error) {
		reply, err := c.Next(ctx, observation+reminder)
		return reply.Text, err
	}), nil
}
