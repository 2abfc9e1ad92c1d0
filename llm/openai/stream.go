package openai

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/llm/internal/sse"
)

// readStream reads an answer that comes in parts, up to the mark behind the last.
func readStream(res *http.Response, delta func(string)) (llm.Reply, error) {
	a := &answer{delta: delta}
	err := sse.Read(res, func(data []byte) (bool, error) {
		if bytes.HasPrefix(data, []byte("[DONE]")) {
			return true, nil
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return false, &llm.Failure{Message: "the stream has no JSON in it: " + llm.Brief(data), After: -1}
		}
		return false, a.add(c)
	})
	if err == nil && !a.began {
		err = &llm.Failure{Message: "the stream has no reply in it", After: -1}
	}
	if err != nil {
		return llm.Reply{}, err
	}
	return a.reply(), nil
}
