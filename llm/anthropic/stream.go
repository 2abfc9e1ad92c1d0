package anthropic

import (
	"encoding/json"
	"net/http"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/internal/sse"
)

// event is a part of an answer.
type event struct {
	Type         string      `json:"type"`
	Index        int         `json:"index"`
	Message      wireMessage `json:"message"`
	ContentBlock block       `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage   `json:"usage"`
	Error problem `json:"error"`
}

// readStream reads an answer that comes in parts.
func readStream(res *http.Response, delta func(string)) (llm.Reply, error) {
	a := &answer{delta: delta}
	err := sse.Read(res, func(data []byte) (bool, error) {
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return false, &llm.Failure{Message: "the stream has no JSON in it: " + llm.Brief(data), After: -1}
		}
		switch e.Type {
		case "message_start":
			a.usage(e.Message.Usage)
		case "content_block_start":
			a.begin(e.Index, e.ContentBlock)
		case "content_block_delta":
			a.text(e.Delta.Text)
			a.input(e.Index, e.Delta.PartialJSON)
		case "message_delta":
			a.usage(e.Usage)
			a.reason = e.Delta.StopReason
		case "error":
			return false, &llm.Failure{Code: e.Error.Type, Message: e.Error.Message, After: -1}
		}
		return e.Type == "message_stop", nil
	})
	if err != nil {
		return llm.Reply{}, err
	}
	return a.reply(), nil
}
