package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aiopslab/aiopslab/llm"
)

// request is the body of a request.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Tools               []tool         `json:"tools,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	Temperature         *float64       `json:"temperature,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       llm.Role `json:"role"`
	Content    *string  `json:"content,omitempty"`
	ToolCalls  []call   `json:"tool_calls,omitempty"`
	ToolCallID string   `json:"tool_call_id,omitempty"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// call is a tool call, or in a stream a part of one.
type call struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// chunk is an answer, or in a stream a part of one.
type chunk struct {
	Choices []struct {
		Message      content `json:"message"`
		Delta        content `json:"delta"`
		FinishReason string  `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens        int `json:"prompt_tokens"`
		CompletionTokens    int `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type content struct {
	Content   string `json:"content"`
	Refusal   string `json:"refusal"`
	ToolCalls []call `json:"tool_calls"`
}

// problem is an error as endpoints tell of it.
type problem struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string, a number or null
}

// parseError reads what is behind "error": an object, or with some endpoints a string.
func parseError(raw json.RawMessage) problem {
	var p problem
	if json.Unmarshal(raw, &p) != nil {
		_ = json.Unmarshal(raw, &p.Message)
	}
	return p
}

func (p problem) code() string {
	code := string(bytes.Trim(p.Code, `"`))
	if code == "" || code == "null" {
		return p.Type
	}
	return code
}

// request writes a request for an endpoint.
func (m *Model) request(r llm.Request, q quirks) request {
	body := request{Model: m.c.Model, Temperature: r.Temperature, Stream: true}
	if q.noTemperature {
		body.Temperature = nil
	}
	if !q.noUsage {
		body.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if m.newLimit(q) {
		body.MaxCompletionTokens = r.MaxTokens
	} else {
		body.MaxTokens = r.MaxTokens
	}
	for _, msg := range r.Messages {
		wire := message{Role: msg.Role, Content: &msg.Text, ToolCallID: msg.For}
		for _, c := range msg.Calls {
			w := call{ID: c.ID, Type: "function"}
			w.Function.Name, w.Function.Arguments = c.Name, c.Arguments
			wire.ToolCalls = append(wire.ToolCalls, w)
		}
		if msg.Text == "" && len(msg.Calls) > 0 {
			wire.Content = nil
		}
		body.Messages = append(body.Messages, wire)
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, tool{"function", function{t.Name, t.Doc, t.Schema}})
	}
	return body
}

// stops are the reasons for which replies end, in our words.
var stops = map[string]llm.Stop{
	"stop": llm.Done, "length": llm.Length, "tool_calls": llm.Calling, "function_call": llm.Calling, "content_filter": llm.Refused,
}

// answer is a reply that is being put together.
type answer struct {
	delta   func(string)
	r       llm.Reply
	refusal string
	reason  string
	began   bool
}

// add adds a part of the answer, or all of it.
func (a *answer) add(c chunk) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		p := parseError(c.Error)
		return &llm.Failure{Code: p.code(), Message: p.Message, After: -1}
	}
	if c.Usage != nil {
		a.r.Usage = llm.Usage{In: c.Usage.PromptTokens, Cached: c.Usage.PromptTokensDetails.CachedTokens, Out: c.Usage.CompletionTokens}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	a.began = true
	choice := c.Choices[0]
	for _, part := range []content{choice.Message, choice.Delta} {
		a.r.Text += part.Content
		a.refusal += part.Refusal
		if part.Content != "" && a.delta != nil {
			a.delta(part.Content)
		}
		for i, c := range part.ToolCalls {
			a.addCall(c, i)
		}
	}
	if choice.FinishReason != "" {
		a.reason = choice.FinishReason
	}
	return nil
}

// addCall adds a tool call, or a further part of one. Some endpoints give no index but whole calls.
func (a *answer) addCall(c call, i int) {
	at := len(a.r.Calls)
	switch {
	case c.Index != nil:
		at = *c.Index
	case c.ID == "" && c.Function.Name == "" && at > 0:
		at--
	}
	const most = 128
	if at < 0 || at >= most {
		return
	}
	for len(a.r.Calls) <= at {
		a.r.Calls = append(a.r.Calls, llm.ToolCall{})
	}
	t := &a.r.Calls[at]
	if c.ID != "" {
		t.ID = c.ID
	}
	t.Name += c.Function.Name
	t.Arguments += c.Function.Arguments
	if t.ID == "" {
		t.ID = fmt.Sprintf("call_%d_%d", i, at)
	}
}

func (a *answer) reply() llm.Reply {
	r := a.r
	r.Stop = stops[a.reason]
	switch {
	case a.refusal != "":
		r.Text, r.Stop = a.refusal, llm.Refused
	case len(r.Calls) > 0 && r.Stop != llm.Length:
		r.Stop = llm.Calling
	case r.Stop == "":
		r.Stop = llm.Done
	}
	return r
}
