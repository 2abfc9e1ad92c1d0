// Package shell is the agent that the AIOpsLab papers call GPT-with-shell: a chat model that is shown
// two calls, a shell and the submission, and answers with one of them each turn.
package shell

import (
	"context"
	"embed"
	"slices"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
)

// Entry is the agent.
var Entry = agent.Entry{Name: "shell", Doc: "a model with nothing but a shell", NeedsModel: true, New: newAgent}

//go:embed prompts
var files embed.FS

var prompt = conversation.MustRead(files, "prompts/prompt.md", "shell/prompt")

func newAgent(b agent.Briefing) (agent.Agent, error) {
	shown := slices.DeleteFunc(slices.Clone(b.Actions), func(a *aci.Action) bool {
		return a.Name != "exec_shell" && a.Kind != aci.Submit
	})
	c, err := conversation.New(b, prompt, shown, false)
	if err != nil {
		return nil, err
	}
	return agent.Func(func(ctx context.Context, observation string) (string, error) {
		reply, err := c.Next(ctx, observation)
		return reply.Text, err
	}), nil
}
