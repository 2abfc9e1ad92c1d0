package aci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Models that were taught to call functions write calls as JSON also where text is asked for, or where
// nobody between them and us reads it: {"name": "exec_shell", "arguments": {"command": "ls"}}, in a
// block of code, in <tool_call> tags, or in tags that have a name for each parameter.

var (
	// tagged is what stands between tags for a call, or from the tag on if nothing closes it.
	tagged = regexp.MustCompile(
		`(?s)<(?:tool_call|function_call|tool_use)>(.*?)(?:</(?:tool_call|function_call|tool_use)>|$)` +
			`|\[TOOL_CALLS\]\s*(\[.*?\}\s*\]|\{.*\})` + `|<\|python_tag\|>(\{.*\})` +
			`|(<function=[\w.-]+>.*?(?:</function>|$))`)
	// function is Qwen's form for code, and Llama's.
	function  = regexp.MustCompile(`(?s)^\s*<function=([A-Za-z_]\w*)>(.*?)(?:</function>\s*)?$`)
	parameter = regexp.MustCompile(`(?s)<parameter=([A-Za-z_]\w*)>\n?(.*?)\n?</parameter>`)
)

// findTagged returns the calls in tags, but for tags in blocks of code.
func findTagged(s string) []block {
	fenced := findBlocks(s)
	var blocks []block
	for _, m := range tagged.FindAllStringSubmatchIndex(s, -1) {
		inside := false
		for _, f := range fenced {
			inside = inside || m[0] > f.start && m[0] < f.end
		}
		if inside {
			continue
		}
		for i := 2; i < len(m); i += 2 {
			if m[i] >= 0 {
				blocks = append(blocks, block{strings.Trim(s[m[i]:m[i+1]], "`\n\r\t "), m[0], m[1]})
			}
		}
	}
	return blocks
}

// jsonCall is a call as JSON, by the names that models use.
type jsonCall struct {
	Name      string          `json:"name"`
	Tool      string          `json:"tool"`
	ToolName  string          `json:"tool_name"`
	Action    string          `json:"action"`
	Function  json.RawMessage `json:"function"` // a name, or a call
	Arguments json.RawMessage `json:"arguments"`
	Params    json.RawMessage `json:"parameters"`
	Args      json.RawMessage `json:"args"`
	Input     json.RawMessage `json:"input"`
	ToolInput json.RawMessage `json:"action_input"`
}

// parseJSON reads a call that is JSON, or in tags by parameter. It reports whether it is one.
func parseJSON(s string) (*Call, bool) {
	if m := function.FindStringSubmatch(s); m != nil {
		return parseFunction(m[1], m[2])
	}
	s = strings.TrimPrefix(s, "json\n")
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, false
	}
	more := strings.TrimSpace(s[d.InputOffset():]) != ""
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return nil, false
		}
		raw, more = list[0], more || len(list) > 1
	}
	call, ok := readJSON(raw, 0)
	if ok && more {
		call.Note = fmt.Sprintf("Only the first API call, %s, was made; write one call at a time.", call.Name)
	}
	return call, ok
}

// readJSON reads one call.
func readJSON(raw json.RawMessage, depth int) (*Call, bool) {
	var c jsonCall
	if json.Unmarshal(raw, &c) != nil {
		return nil, false
	}
	if c.Name == "" && len(c.Function) > 0 && json.Unmarshal(c.Function, &c.Name) != nil && depth == 0 {
		return readJSON(c.Function, 1)
	}
	for _, n := range []string{c.Tool, c.ToolName, c.Action} {
		if c.Name == "" {
			c.Name = n
		}
	}
	c.Name = strings.TrimPrefix(c.Name, "functions.")
	if c.Name == "" || name.FindString(c.Name) != c.Name {
		return nil, false
	}
	call := &Call{Name: c.Name, Kwargs: map[string]any{}}
	for _, args := range []json.RawMessage{c.Arguments, c.Params, c.Args, c.Input, c.ToolInput} {
		if len(args) > 0 {
			return call, call.setJSON(args)
		}
	}
	return call, true
}

// setJSON sets the arguments of a call: an object, a list, one value, or JSON in a string.
func (c *Call) setJSON(raw json.RawMessage) bool {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if v, ok := decodeJSON([]byte(text)); ok {
			if _, object := v.(map[string]any); object {
				raw = json.RawMessage(text)
			}
		}
	}
	v, ok := decodeJSON(raw)
	switch v := v.(type) {
	case nil:
	case map[string]any:
		c.Kwargs = v
	case []any:
		c.Args = v
	default:
		c.Args = []any{v}
	}
	return ok
}

// parseFunction reads a call whose parameters are tags, or JSON.
func parseFunction(name, body string) (*Call, bool) {
	call := &Call{Name: name, Kwargs: map[string]any{}}
	if body = strings.TrimSpace(body); strings.HasPrefix(body, "{") {
		return call, call.setJSON(json.RawMessage(body))
	}
	for _, m := range parameter.FindAllStringSubmatch(body, -1) {
		call.Kwargs[m[1]] = m[2]
		if v, ok := decodeJSON([]byte(m[2])); ok {
			if _, text := v.(string); !text {
				call.Kwargs[m[1]] = v
			}
		}
	}
	return call, body == "" || len(call.Kwargs) > 0
}

// decodeJSON reads a value as arguments have it: whole numbers are int64.
func decodeJSON(raw []byte) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, false
	}
	return plain(v), true
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}
