// Package tools is an agent whose model calls the actions as functions, by their JSON schemas, instead
// of writing calls as text.
package tools

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/internal/conversation"
	"github.com/aiopslab/aiopslab/llm"
)

// Entry is the agent.
var Entry = agent.Entry{
	Name: "tools", Doc: "a model that calls the actions as functions", NeedsModel: true,
	New: newAgent,
}

//go:embed prompts
var files embed.FS

var prompt = conversation.MustRead(files, "prompts/prompt.md", "tools/prompt")

func newAgent(b agent.Briefing) (agent.Agent, error) {
	c, err := conversation.New(b, prompt, b.Actions, true)
	if err != nil {
		return nil, err
	}
	return agent.Func(func(ctx context.Context, observation string) (string, error) {
		reply, err := c.Next(ctx, observation)
		if err != nil {
			return "", err
		}
		return response(reply), nil
	}), nil
}

// response is a reply as the lab reads it: the first call, behind what the model said. A reply without
// a call may have one in its text.
func response(reply llm.Reply) string {
	if len(reply.Calls) == 0 {
		return reply.Text
	}
	call := write(reply.Calls[0])
	text := strings.TrimSpace(reply.Text)
	if text == "" || !sameCall(text+"\n\n"+call, call) { // Words that read as a call of their own.
		return call
	}
	return text + "\n\n" + call
}

// write writes a call as text. Arguments that are no JSON object stay as they are: the lab's parser
// says what is wrong with them.
func write(c llm.ToolCall) string {
	args := map[string]any{}
	if text := strings.TrimSpace(c.Arguments); text != "" && text != "null" {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&args); err != nil || d.More() {
			return fmt.Sprintf("```\n%s(%s)\n```", c.Name, c.Arguments)
		}
	}
	return agent.CallNamed(c.Name, args)
}

// sameCall reports whether two responses are read as the same call, or neither as any.
func sameCall(a, b string) bool {
	x, xerr := aci.Parse(a)
	y, yerr := aci.Parse(b)
	if xerr != nil || yerr != nil {
		return xerr != nil && yerr != nil
	}
	return x.Name == y.Name && reflect.DeepEqual(x.Args, y.Args) && reflect.DeepEqual(x.Kwargs, y.Kwargs)
}
