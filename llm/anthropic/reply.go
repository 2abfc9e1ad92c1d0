package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/aiopslab/aiopslab/llm"
)

// stops are the reasons for which replies end, in our words.
var stops = map[sdk.StopReason]llm.Stop{
	"end_turn": llm.Done, "stop_sequence": llm.Done, "max_tokens": llm.Length,
	"model_context_window_exceeded": llm.Length, "tool_use": llm.Calling, "refusal": llm.Refused,
}

// answer is a reply that is being put together.
type answer struct {
	delta  func(string)
	r      llm.Reply
	reason sdk.StopReason
	ended  bool
	calls  map[int64]int // index of a block -> index of its call
	sealed []sealed
	seals  map[int64]int // index of a block -> index of its thought
}

// sealed is a thought as the protocol has it.
type sealed struct {
	Thinking  string `json:"thinking,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"` // of one that nobody but the provider can read
}

// add adds a part of the answer.
func (a *answer) add(e sdk.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.usage(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens)
	case "content_block_start":
		b := e.ContentBlock
		a.thought(e.Index, b.Type, sealed{b.Thinking, b.Signature, b.Data})
		a.block(e.Index, b.Type, b.Text, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: b.JSON.Input.Raw()})
	case "content_block_delta":
		a.text(e.Delta.Text)
		if at, ok := a.seals[e.Index]; ok {
			a.sealed[at].Thinking += e.Delta.Thinking
			a.sealed[at].Signature += e.Delta.Signature
		}
		if at, ok := a.calls[e.Index]; ok {
			a.r.Calls[at].Arguments += e.Delta.PartialJSON
		}
	case "message_delta":
		u := e.Usage
		a.usage(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens)
		a.reason = e.Delta.StopReason
	case "message_stop":
		a.ended = true
	}
}

// addWhole adds all of the answer.
func (a *answer) addWhole(m sdk.Message) {
	for i, b := range m.Content {
		a.thought(int64(i), b.Type, sealed{b.Thinking, b.Signature, b.Data})
		a.block(int64(i), b.Type, b.Text, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
	}
	u := m.Usage
	a.usage(u.InputTokens, u.CacheCreationInputTokens, u.CacheReadInputTokens, u.OutputTokens)
	a.reason = m.StopReason
}

// thought adds a block that is a thought, whole or as yet empty.
func (a *answer) thought(index int64, kind string, s sealed) {
	if kind != "thinking" && kind != "redacted_thinking" {
		return
	}
	if a.seals == nil {
		a.seals = map[int64]int{}
	}
	a.seals[index] = len(a.sealed)
	a.sealed = append(a.sealed, s)
}

// block adds a block, whole or as yet empty: a text or a call.
func (a *answer) block(index int64, kind, text string, call llm.ToolCall) {
	switch kind {
	case "text":
		a.text(text)
	case "tool_use":
		if a.calls == nil {
			a.calls = map[int64]int{}
		}
		a.calls[index] = len(a.r.Calls)
		if call.Arguments == "{}" { // In a stream the input follows.
			call.Arguments = ""
		}
		a.r.Calls = append(a.r.Calls, call)
	}
}

func (a *answer) text(part string) {
	a.r.Text += part
	if part != "" && a.delta != nil {
		a.delta(part)
	}
}

// usage notes the tokens as they are known by now.
func (a *answer) usage(input, written, cached, output int64) {
	if in := input + written + cached; in > 0 {
		a.r.Usage.In, a.r.Usage.Cached, a.r.Usage.Written = int(in), int(cached), int(written)
	}
	if output > 0 {
		a.r.Usage.Out = int(output)
	}
}

func (a *answer) reply() llm.Reply {
	a.r.Stop = stops[a.reason]
	if a.r.Stop == "" {
		a.r.Stop = llm.Done
	}
	for i := range a.r.Calls {
		if a.r.Calls[i].Arguments == "" {
			a.r.Calls[i].Arguments = "{}"
		}
	}
	var thoughts []string
	for _, s := range a.sealed {
		if s.Thinking != "" {
			thoughts = append(thoughts, s.Thinking)
		}
	}
	if len(a.sealed) > 0 {
		a.r.Thoughts = strings.Join(thoughts, "\n\n")
		a.r.Sealed, _ = json.Marshal(a.sealed) // Strings.
	}
	return a.r
}
