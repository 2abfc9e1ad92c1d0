package anthropic

import (
	"encoding/json"

	"github.com/aiopslab/aiopslab/llm"
)

// request is the body of a request.
type request struct {
	Model       string    `json:"model"`
	MaxTokens   int       `json:"max_tokens"`
	System      []block   `json:"system,omitempty"`
	Messages    []message `json:"messages"`
	Tools       []tool    `json:"tools,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	Stream      bool      `json:"stream"`
}

type message struct {
	Role    llm.Role `json:"role"`
	Content []block  `json:"content"`
}

// block is a part of a message.
type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      string          `json:"content,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

// cacheControl has the provider keep what it has read up to here for the next request.
type cacheControl struct {
	Type string `json:"type"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// wireMessage is an answer.
type wireMessage struct {
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      usage   `json:"usage"`
}

type usage struct {
	Input         int `json:"input_tokens"`
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`
	Output        int `json:"output_tokens"`
}

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// request writes a request. The protocol has the system prompt apart, takes no empty text, and wants
// the roles to alternate, with the results of tools as the user's.
func (m *Model) request(r llm.Request) request {
	body := request{Model: m.c.Model, MaxTokens: r.MaxTokens, Temperature: r.Temperature, Stream: true}
	for _, msg := range r.Messages {
		blocks := blocksOf(msg)
		if msg.Role == llm.System {
			body.System = append(body.System, blocks...)
			continue
		}
		role := msg.Role
		if role == llm.Result {
			role = llm.User
		}
		if n := len(body.Messages); n > 0 && body.Messages[n-1].Role == role {
			body.Messages[n-1].Content = append(body.Messages[n-1].Content, blocks...)
		} else if len(blocks) > 0 {
			body.Messages = append(body.Messages, message{role, blocks})
		}
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, tool{t.Name, t.Doc, t.Schema})
	}
	if n := len(body.System); n > 0 {
		body.System[n-1].CacheControl = &cacheControl{"ephemeral"}
	}
	if n := len(body.Messages); n > 0 {
		last := body.Messages[n-1].Content
		last[len(last)-1].CacheControl = &cacheControl{"ephemeral"}
	}
	return body
}

func blocksOf(msg llm.Message) []block {
	if msg.Role == llm.Result {
		return []block{{Type: "tool_result", ToolUseID: msg.For, Content: msg.Text}}
	}
	var list []block
	if msg.Text != "" {
		list = append(list, block{Type: "text", Text: msg.Text})
	}
	for _, c := range msg.Calls {
		input := json.RawMessage(c.Arguments)
		var object map[string]json.RawMessage
		if json.Unmarshal(input, &object) != nil || object == nil { // The protocol takes objects only.
			input = json.RawMessage("{}")
		}
		list = append(list, block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
	}
	return list
}

// stops are the reasons for which replies end, in our words.
var stops = map[string]llm.Stop{
	"end_turn": llm.Done, "stop_sequence": llm.Done, "max_tokens": llm.Length, "model_context_window_exceeded": llm.Length,
	"tool_use": llm.Calling, "refusal": llm.Refused,
}

// answer is a reply that is being put together.
type answer struct {
	delta  func(string)
	r      llm.Reply
	reason string
	calls  map[int]int // index of a block -> index of its call
}

// begin adds a block, whole or as yet empty.
func (a *answer) begin(index int, b block) {
	switch b.Type {
	case "text":
		a.text(b.Text)
	case "tool_use":
		if a.calls == nil {
			a.calls = map[int]int{}
		}
		a.calls[index] = len(a.r.Calls)
		c := llm.ToolCall{ID: b.ID, Name: b.Name}
		if input := string(b.Input); input != "{}" { // In a stream the input follows.
			c.Arguments = input
		}
		a.r.Calls = append(a.r.Calls, c)
	}
}

func (a *answer) text(part string) {
	a.r.Text += part
	if part != "" && a.delta != nil {
		a.delta(part)
	}
}

// input adds a part of the arguments of the call in a block.
func (a *answer) input(index int, part string) {
	if at, ok := a.calls[index]; ok {
		a.r.Calls[at].Arguments += part
	}
}

func (a *answer) usage(u usage) {
	if in := u.Input + u.CacheCreation + u.CacheRead; in > 0 {
		a.r.Usage.In, a.r.Usage.Cached, a.r.Usage.Written = in, u.CacheRead, u.CacheCreation
	}
	if u.Output > 0 {
		a.r.Usage.Out = u.Output
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
	return a.r
}
