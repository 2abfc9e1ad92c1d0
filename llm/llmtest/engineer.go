package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/llm"
)

// Engineer plays a model that works on a problem as an agent: it takes one look after another, and
// then answers by what it has seen. It writes calls as the agent wants them: in text, or as functions
// if there are tools. Asked for the status of an action, it gives one.
type Engineer struct {
	Looks []string // calls, such as exec_shell("kubectl get pods")
	// Answer returns the call that submits, by all that was observed.
	Answer func(seen string) string
}

// Play is the play of the engineer.
func (e Engineer) Play(_ int, r Request) Answer {
	if len(r.Messages) > 0 && strings.Contains(r.Messages[0].Text, "Hindsight:") {
		return Answer{Text: fmt.Sprintf("Status: achieved\nHindsight: %d looks are done, take the next.",
			strings.Count(r.Messages[1].Text, "Thought"))}
	}
	taken, seen := 0, ""
	for i, m := range r.Messages {
		switch {
		case m.Role == llm.Assistant:
			taken++
		case i > 1: // Behind the prompt.
			seen += m.Text + "\n"
		}
	}
	call := ""
	if taken < len(e.Looks) {
		call = e.Looks[taken]
	} else {
		call = e.Answer(seen)
	}
	if len(r.Tools) > 0 {
		return Answer{Text: "Let me see.", Calls: []llm.ToolCall{toolCall(call, r.Tools)}}
	}
	return Answer{Text: fmt.Sprintf("Thought: look %d.\nAction:\n```\n%s\n```", taken+1, call)}
}

// toolCall is a call as a function.
func toolCall(text string, tools []llm.Tool) llm.ToolCall {
	call, err := aci.Parse("```\n" + text + "\n```")
	if err != nil {
		panic(err) // The test's own.
	}
	args := call.Kwargs
	for _, t := range tools {
		var schema struct{ Required []string }
		if t.Name != call.Name || json.Unmarshal(t.Schema, &schema) != nil {
			continue
		}
		for i, v := range call.Args {
			if i < len(schema.Required) {
				args[schema.Required[i]] = v
			}
		}
	}
	return llm.ToolCall{Name: call.Name, Arguments: encode(args)}
}
