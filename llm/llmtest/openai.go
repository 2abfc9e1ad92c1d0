package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/aiopslab/aiopslab/llm"
)

// text is the content of a message: a string, or a list of parts.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var parts []struct{ Text string }
	if json.Unmarshal(b, (*string)(t)) == nil {
		return nil
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*t += text(p.Text)
	}
	return nil
}

type openAICall struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func serveOpenAI(w http.ResponseWriter, req *http.Request, play func(Request) Answer) {
	var body struct {
		Model    string
		Stream   bool
		Messages []struct {
			Role       llm.Role
			Content    text
			Thoughts   string       `json:"reasoning_content"`
			Reasoning  string       `json:"reasoning"`
			ToolCalls  []openAICall `json:"tool_calls"`
			ToolCallID string       `json:"tool_call_id"`
		}
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		Temperature         *float64
		TopP                *float64 `json:"top_p"`
		MaxTokens           int      `json:"max_tokens"`
		MaxCompletionTokens int      `json:"max_completion_tokens"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		openAIError(w, Answer{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	r := Request{Model: body.Model, Stream: body.Stream, Header: req.Header}
	r.TopP = body.TopP
	r.Temperature, r.MaxTokens = body.Temperature, cmp.Or(body.MaxTokens, body.MaxCompletionTokens)
	for _, m := range body.Messages {
		msg := llm.Message{Role: m.Role, Text: string(m.Content), For: m.ToolCallID, Thoughts: m.Thoughts + m.Reasoning}
		for _, c := range m.ToolCalls {
			msg.Calls = append(msg.Calls,
				llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		r.Messages = append(r.Messages, msg)
	}
	for _, t := range body.Tools {
		r.Tools = append(r.Tools, llm.Tool{
			Name: t.Function.Name, Doc: t.Function.Description,
			Schema: t.Function.Parameters,
		})
	}
	a := play(r).complete(r)
	switch {
	case !a.wait(req):
	case a.Status != 0:
		openAIError(w, a)
	case body.Stream && !a.Whole:
		openAIStream(w, r, a)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(cmp.Or(a.Raw, openAIWhole(r, a))))
	}
}

func openAIError(w http.ResponseWriter, a Answer) {
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(encode(map[string]any{"error": map[string]any{
		"message": a.Message, "type": "invalid_request_error", "code": a.Code, "param": nil,
	}})))
}

// openAIReasons are the reasons for which replies end, in the protocol's words.
var openAIReasons = map[llm.Stop]string{
	llm.Done: "stop", llm.Length: "length", llm.Calling: "tool_calls",
	llm.Refused: "content_filter",
}

func openAICalls(a Answer) []openAICall {
	var calls []openAICall
	for i, c := range a.Calls {
		w := openAICall{Index: i, ID: cmp.Or(c.ID, fmt.Sprintf("call_%d", i)), Type: "function"}
		w.Function.Name, w.Function.Arguments = c.Name, c.Arguments
		calls = append(calls, w)
	}
	return calls
}

func openAIUsage(u llm.Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached},
	}
}

// openAIContent is a text, or a list of one part or two.
func openAIContent(a Answer, text, thoughts string) any {
	if !a.Parts {
		return text
	}
	list := []any{map[string]any{"type": "text", "text": text}}
	if thoughts != "" {
		thinking := map[string]any{
			"type":     "thinking",
			"thinking": []any{map[string]any{"type": "text", "text": thoughts}},
		}
		list = append([]any{thinking}, list...)
	}
	return list
}

func openAIWhole(r Request, a Answer) string {
	message := map[string]any{"role": "assistant", "content": openAIContent(a, a.Text, a.Thoughts), "refusal": nil}
	if a.Thoughts != "" && !a.Parts {
		message[cmp.Or(a.ThoughtField, "reasoning_content")] = a.Thoughts
	}
	switch {
	case len(a.Calls) > 0 && a.Legacy:
		message["function_call"] = openAICalls(a)[0].Function
	case len(a.Calls) > 0:
		message["tool_calls"] = openAICalls(a)
	}
	whole := map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": r.Model,
		"choices": []any{map[string]any{
			"index": 0, "message": message, "finish_reason": openAIReasons[a.Stop],
			"logprobs": nil,
		}},
	}
	if !a.NoUsage {
		whole["usage"] = openAIUsage(a.Usage)
	}
	return encode(whole)
}

func openAIStream(w http.ResponseWriter, r Request, a Answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e := &emitter{w: w, most: a.CutAfter}
	if a.Raw != "" {
		e.send("", a.Raw)
		return
	}
	chunk := func(delta map[string]any, reason any) {
		e.send("", encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
		}))
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	if a.Thoughts != "" {
		for _, piece := range pieces(a.Thoughts) {
			if a.Parts {
				chunk(map[string]any{"content": openAIContent(a, "", piece)}, nil)
			} else {
				chunk(map[string]any{cmp.Or(a.ThoughtField, "reasoning_content"): piece, "content": nil}, nil)
			}
		}
	}
	for _, piece := range pieces(a.Text) {
		chunk(map[string]any{"content": openAIContent(a, piece, "")}, nil)
	}
	for _, c := range openAICalls(a) {
		if a.Legacy {
			chunk(map[string]any{"function_call": c.Function}, nil)
			break
		}
		arguments := c.Function.Arguments
		c.Function.Arguments = ""
		chunk(map[string]any{"tool_calls": []any{c}}, nil)
		for _, piece := range pieces(arguments) {
			chunk(map[string]any{"tool_calls": []any{
				map[string]any{"index": c.Index, "function": map[string]any{"arguments": piece}},
			}}, nil)
		}
	}
	chunk(map[string]any{}, openAIReasons[a.Stop])
	if !a.NoUsage {
		e.send("", encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": r.Model, "choices": []any{},
			"usage": openAIUsage(a.Usage),
		}))
	}
	e.send("", "[DONE]")
}

// encode writes JSON on one line.
func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // Maps of strings and numbers can be encoded.
	}
	return strings.TrimSpace(b.String())
}
