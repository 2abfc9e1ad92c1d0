package export

import (
	"encoding/json"

	"github.com/aiopslab/aiopslab/llm"
)

// message is a message in the schema of the conventions for generative AI.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// part is a text, a thought, a call or what came of it.
type part struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

func said(role, text string) message {
	return message{Role: role, Parts: []part{{Type: "text", Content: text}}}
}

// messageOf is a message of a prompt.
func messageOf(m llm.Message) message {
	if m.For != "" {
		return message{Role: "tool", Parts: []part{{Type: "tool_call_response", ID: m.For, Response: m.Text}}}
	}
	return message{Role: string(m.Role), Parts: parts(m.Thoughts, m.Text, m.Calls)}
}

// replied is what the model said.
func replied(r llm.Reply) message {
	return message{Role: "assistant", Parts: parts(r.Thoughts, r.Text, r.Calls), Finish: finish(r.Stop)}
}

func parts(thoughts, text string, calls []llm.ToolCall) []part {
	list := []part{}
	if thoughts != "" {
		list = append(list, part{Type: "reasoning", Content: thoughts})
	}
	if text != "" {
		list = append(list, part{Type: "text", Content: text})
	}
	for _, c := range calls {
		args := json.RawMessage(c.Arguments)
		if !json.Valid(args) {
			args, _ = json.Marshal(c.Arguments) // As the model wrote it.
		}
		list = append(list, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: args})
	}
	return list
}

// finish is why the model stopped, in the words of the conventions.
func finish(s llm.Stop) string {
	switch s {
	case llm.Refused:
		return "content_filter"
	case llm.Length:
		return "length"
	case llm.Calling:
		return "tool_call"
	}
	return "stop"
}

// maxPrompt is how many bytes of a prompt a span has. A prompt has all that came before, so that those of a long run
// would grow with the square of its length.
const maxPrompt = 256 << 10

// prompts are those of the exchanges so far, by number.
type prompts [][]llm.Message

// of is the prompt of an exchange as JSON, the newest messages of it, and how many older ones are left out.
func (p *prompts) of(x *Exchange) (text string, left int) {
	var all []llm.Message
	if i := x.Since - 1; i >= 0 && i < len(*p) {
		old := (*p)[i]
		all = append(all, old[:min(max(x.Kept, 0), len(old))]...)
	}
	all = append(all, x.Messages...)
	*p = append(*p, all)
	size := 0
	for left = len(all); left > 0; left-- {
		m := &all[left-1]
		size += len(m.Text) + len(m.Thoughts)
		for _, c := range m.Calls {
			size += len(c.Arguments)
		}
		if size > maxPrompt && left < len(all) {
			break
		}
	}
	list := []message{}
	for _, m := range all[left:] {
		list = append(list, messageOf(m))
	}
	return asJSON(list), left
}
