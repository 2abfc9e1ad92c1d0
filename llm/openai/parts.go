package openai

import (
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3/packages/respjson"
)

// thoughtFields are where endpoints put what a model thinks beside the content: the first is DeepSeek's,
// Kimi's and Qwen's, the second OpenRouter's, Ollama's and newer vLLM's.
var thoughtFields = []string{"reasoning_content", "reasoning"}

// thoughts adds what a model thinks, from the first field that has something.
func (a *answer) thoughts(extra map[string]respjson.Field) {
	for _, name := range thoughtFields {
		var text string
		if f, ok := extra[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
			a.field = name
			a.r.Thoughts += text
			return
		}
	}
}

// part is a part of a content that is a list: a text, or a thought, which may be in parts itself.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking json.RawMessage `json:"thinking"`
}

// parts reads a content that is a text, as the client has it, or a list of parts, as it has not.
func parts(content respjson.Field, plain string) (text, thoughts string) {
	raw := strings.TrimSpace(content.Raw())
	if !strings.HasPrefix(raw, "[") && !strings.HasPrefix(raw, "{") {
		return plain, ""
	}
	return readParts([]byte(raw), 0)
}

// maxDepth is how deep parts may be in parts.
const maxDepth = 4

func readParts(raw []byte, depth int) (text, thoughts string) {
	var list []part
	if json.Unmarshal(raw, &list) != nil {
		var one part
		if json.Unmarshal(raw, &one) != nil {
			_ = json.Unmarshal(raw, &text)
			return text, ""
		}
		list = []part{one}
	}
	for _, p := range list {
		switch p.Type {
		case "text", "output_text", "":
			text += p.Text
		case "thinking", "reasoning":
			if len(p.Thinking) == 0 {
				thoughts += p.Text
			} else if depth < maxDepth {
				inner, deeper := readParts(p.Thinking, depth+1)
				thoughts += inner + deeper
			}
		}
	}
	return text, thoughts
}
