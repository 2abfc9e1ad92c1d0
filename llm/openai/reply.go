package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	sdk "github.com/openai/openai-go/v3"

	"github.com/aiopslab/aiopslab/llm"
)

// problem is an error as endpoints tell of it.
type problem struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string, a number or null
}

// problemIn reads what is behind "error", if there is something: an object, or with some endpoints a
// string.
func problemIn(text []byte) (problem, bool) {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Error) == 0 || string(answer.Error) == "null" {
		return problem{}, false
	}
	var p problem
	if json.Unmarshal(answer.Error, &p) != nil {
		_ = json.Unmarshal(answer.Error, &p.Message)
	}
	return p, true
}

func (p problem) code() string {
	code := string(bytes.Trim(p.Code, `"`))
	if code == "" || code == "null" {
		return p.Type
	}
	return code
}

// stops are the reasons for which replies end, in our words.
var stops = map[string]llm.Stop{
	"stop": llm.Done, "length": llm.Length, "tool_calls": llm.Calling, "function_call": llm.Calling,
	"content_filter": llm.Refused,
}

// answer is a reply that is being put together.
type answer struct {
	delta   func(string)
	r       llm.Reply
	refusal string
	reason  string
	began   bool
	field   string // that the endpoint has thoughts in; empty for none
}

// add adds a part of the answer.
func (a *answer) add(c sdk.ChatCompletionChunk) {
	if c.JSON.Usage.Valid() {
		a.usage(c.Usage)
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	a.text(parts(choice.Delta.JSON.Content, choice.Delta.Content))
	a.thoughts(choice.Delta.JSON.ExtraFields)
	a.refused(choice.Delta.Refusal)
	for i, t := range choice.Delta.ToolCalls {
		at := len(a.r.Calls)
		switch {
		case t.JSON.Index.Valid():
			at = int(t.Index)
		case t.ID == "" && t.Function.Name == "" && at > 0: // Some endpoints give no index but whole calls.
			at--
		}
		a.call(at, i, t.ID, t.Function.Name, t.Function.Arguments)
	}
	//lint:ignore SA1019 Older endpoints have nothing else.
	if f := choice.Delta.FunctionCall; f.Name+f.Arguments != "" {
		a.call(0, 0, "", f.Name, f.Arguments)
	}
	if choice.FinishReason != "" {
		a.reason = choice.FinishReason
	}
}

// addWhole adds all of the answer.
func (a *answer) addWhole(c sdk.ChatCompletion) {
	a.usage(c.Usage)
	choice := c.Choices[0]
	a.text(parts(choice.Message.JSON.Content, choice.Message.Content))
	a.thoughts(choice.Message.JSON.ExtraFields)
	a.refused(choice.Message.Refusal)
	for i, t := range choice.Message.ToolCalls {
		a.call(i, i, t.ID, t.Function.Name, t.Function.Arguments)
	}
	//lint:ignore SA1019 Older endpoints have nothing else.
	if f := choice.Message.FunctionCall; f.Name != "" {
		a.call(0, 0, "", f.Name, f.Arguments)
	}
	a.reason = choice.FinishReason
}

func (a *answer) usage(u sdk.CompletionUsage) {
	a.r.Usage = llm.Usage{
		In: int(u.PromptTokens), Cached: int(u.PromptTokensDetails.CachedTokens),
		Out: int(u.CompletionTokens),
	}
}

func (a *answer) refused(text string) { a.refusal += text }

// text adds to the text, and to the thoughts among its parts.
func (a *answer) text(content, thoughts string) {
	a.began = true
	a.r.Text += content
	a.r.Thoughts += thoughts
	if content != "" && a.delta != nil {
		a.delta(content)
	}
}

// call adds the tool call at an index, or a further part of it.
func (a *answer) call(at, part int, id, name, arguments string) {
	const most = 128
	if at < 0 || at >= most {
		return
	}
	for len(a.r.Calls) <= at {
		a.r.Calls = append(a.r.Calls, llm.ToolCall{})
	}
	t := &a.r.Calls[at]
	if id != "" {
		t.ID = id
	}
	t.Name += name
	t.Arguments += arguments
	if t.ID == "" {
		t.ID = fmt.Sprintf("call_%d_%d", part, at)
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
