package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aiopslab/aiopslab/llm"
)

func serveAnthropic(w http.ResponseWriter, req *http.Request, play func(Request) Answer) {
	var body struct {
		Model    string
		Stream   bool
		System   text
		Messages []struct {
			Role    llm.Role
			Content []struct {
				Type, Text, ID, Name string
				Thinking, Signature  string
				Input                json.RawMessage
				ToolUseID            string `json:"tool_use_id"`
				Content              text
			}
		}
		Tools []struct {
			Name, Description string
			Schema            json.RawMessage `json:"input_schema"`
		}
		Temperature *float64
		MaxTokens   int `json:"max_tokens"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil || body.MaxTokens == 0 {
		anthropicError(w, Answer{
			Status:  http.StatusBadRequest,
			Message: fmt.Sprintf("max_tokens: %d, %v", body.MaxTokens, err),
		})
		return
	}
	r := Request{Model: body.Model, Stream: body.Stream, Header: req.Header}
	r.Temperature, r.MaxTokens = body.Temperature, body.MaxTokens
	if body.System != "" {
		r.Messages = append(r.Messages, llm.Message{Role: llm.System, Text: string(body.System)})
	}
	for i, m := range body.Messages {
		if i > 0 && m.Role == body.Messages[i-1].Role {
			anthropicError(w, Answer{Status: http.StatusBadRequest, Message: "roles must alternate"})
			return
		}
		msg := llm.Message{Role: m.Role}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				msg.Text += b.Text
			case "thinking":
				if b.Signature != signature(b.Thinking) {
					anthropicError(w, Answer{
						Status:  http.StatusBadRequest,
						Message: "Invalid `signature` in `thinking` block",
					})
					return
				}
				msg.Thoughts += b.Thinking
			case "tool_use":
				msg.Calls = append(msg.Calls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			case "tool_result":
				r.Messages = append(r.Messages,
					llm.Message{Role: llm.Result, Text: string(b.Content), For: b.ToolUseID})
			}
		}
		if msg.Text != "" || len(msg.Calls) > 0 {
			r.Messages = append(r.Messages, msg)
		}
	}
	for _, t := range body.Tools {
		r.Tools = append(r.Tools, llm.Tool{Name: t.Name, Doc: t.Description, Schema: t.Schema})
	}
	a := play(r).complete(r)
	switch {
	case !a.wait(req):
	case a.Status != 0:
		anthropicError(w, a)
	case body.Stream && !a.Whole:
		anthropicStream(w, r, a)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(cmp.Or(a.Raw,
			encode(anthropicMessage(r, a, anthropicBlocks(a), anthropicReasons[a.Stop])))))
	}
}

func anthropicError(w http.ResponseWriter, a Answer) {
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	_, _ = w.Write([]byte(encode(map[string]any{
		"type":  "error",
		"error": map[string]any{"type": cmp.Or(a.Code, "invalid_request_error"), "message": a.Message},
	})))
}

// anthropicReasons are the reasons for which replies end, in the protocol's words.
var anthropicReasons = map[llm.Stop]string{
	llm.Done: "end_turn", llm.Length: "max_tokens", llm.Calling: "tool_use",
	llm.Refused: "refusal",
}

func anthropicMessage(r Request, a Answer, blocks []any, reason any) map[string]any {
	if a.NoUsage {
		a.Usage = llm.Usage{}
	}
	return map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": r.Model, "content": blocks,
		"stop_reason": reason,
		"usage": map[string]any{
			"input_tokens": a.Usage.In - a.Usage.Cached - a.Usage.Written, "cache_read_input_tokens": a.Usage.Cached,
			"cache_creation_input_tokens": a.Usage.Written, "output_tokens": a.Usage.Out,
		},
	}
}

func anthropicBlocks(a Answer) []any {
	blocks := []any{}
	if a.Thoughts != "" {
		blocks = append(blocks, map[string]any{
			"type": "thinking", "thinking": a.Thoughts,
			"signature": signature(a.Thoughts),
		})
	}
	if a.Text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": a.Text})
	}
	for i, c := range a.Calls {
		blocks = append(blocks, map[string]any{
			"type": "tool_use", "id": cmp.Or(c.ID, fmt.Sprintf("toolu_%d", i)), "name": c.Name,
			"input": json.RawMessage(c.Arguments),
		})
	}
	return blocks
}

// signature is what a thought must come back with.
func signature(thought string) string { return fmt.Sprintf("signed-%d", len(thought)) }

func anthropicStream(w http.ResponseWriter, r Request, a Answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	e := &emitter{w: w, most: a.CutAfter}
	if a.Raw != "" {
		var raw struct{ Type string }
		_ = json.Unmarshal([]byte(a.Raw), &raw)
		e.send(cmp.Or(raw.Type, "message_start"), a.Raw)
		return
	}
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		e.send(kind, encode(fields))
	}
	start := a
	start.Usage.Out = 1
	if a.NoUsage {
		a.Usage.Out = 0
	}
	send("message_start", map[string]any{"message": anthropicMessage(r, start, []any{}, nil)})
	send("ping", map[string]any{})
	for i, b := range anthropicBlocks(a) {
		block := b.(map[string]any)
		kind, field, parts := "text_delta", "text", pieces(a.Text)
		if input, ok := block["input"].(json.RawMessage); ok {
			kind, field, parts = "input_json_delta", "partial_json", pieces(string(input))
			block["input"] = map[string]any{}
		} else if block["type"] == "thinking" {
			kind, field, parts = "thinking_delta", "thinking", pieces(a.Thoughts)
			block["thinking"], block["signature"] = "", ""
		} else {
			block["text"] = ""
		}
		send("content_block_start", map[string]any{"index": i, "content_block": block})
		for _, part := range parts {
			send("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: part}})
		}
		if block["type"] == "thinking" {
			send("content_block_delta", map[string]any{
				"index": i,
				"delta": map[string]any{"type": "signature_delta", "signature": signature(a.Thoughts)},
			})
		}
		send("content_block_stop", map[string]any{"index": i})
	}
	send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": anthropicReasons[a.Stop]},
		"usage": map[string]any{"output_tokens": a.Usage.Out},
	})
	send("message_stop", map[string]any{})
}
