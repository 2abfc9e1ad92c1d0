package aci

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Signature is the action as a Python function: get_logs(namespace: str, service: str) -> str.
func (a *Action) Signature() string {
	var params []string
	for _, p := range a.Params {
		text := p.Name + ": " + p.Type
		if !p.Required {
			text += " = " + python(p.Default)
		}
		params = append(params, text)
	}
	result := "str"
	if a.Kind == Submit {
		result = "SubmissionStatus"
	}
	return fmt.Sprintf("%s(%s) -> %s", a.Name, strings.Join(params, ", "), result)
}

// python is a value as Python writes it.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// Text is the action's documentation for a prompt: signature, what it does, arguments and result.
func (a *Action) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n", a.Signature(), a.Doc)
	if len(a.Params) > 0 {
		b.WriteString("\nArgs:\n")
		for _, p := range a.Params {
			fmt.Fprintf(&b, "    %s (%s): %s", p.Name, p.Type, p.Doc)
			if len(p.Enum) > 0 {
				fmt.Fprintf(&b, " One of %s.", strings.Join(p.Enum, ", "))
			}
			if !p.Required && p.Default != nil && p.Default != "" {
				fmt.Fprintf(&b, " Default %s.", python(p.Default))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\nReturns:\n    %s", a.Returns)
	return b.String()
}

// Docs returns the documentation of actions by their names.
func Docs(actions []*Action) map[string]string {
	docs := make(map[string]string, len(actions))
	for _, a := range actions {
		docs[a.Name] = a.Text()
	}
	return docs
}

// Schema returns the JSON schema of the action's arguments, for function calling and MCP.
func (a *Action) Schema() json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, p := range a.Params {
		s := map[string]any{"description": p.Doc}
		switch p.Type {
		case "str":
			s["type"] = "string"
		case "int":
			s["type"] = "integer"
		case "bool":
			s["type"] = "boolean"
		case "list[str]":
			s["type"], s["items"] = "array", map[string]any{"type": "string"}
		case "dict[str, str]":
			s["type"] = "object"
			fields := map[string]any{}
			for name, values := range analysisFields {
				fields[name] = map[string]any{"type": "string", "enum": values}
			}
			s["properties"], s["additionalProperties"] = fields, false
		case incidentAnswer:
			s["type"] = []string{"string", "array", "object", "null"}
			s["items"] = map[string]any{"type": "string"}
		}
		if len(p.Enum) > 0 {
			s["enum"] = p.Enum
		}
		if p.Required {
			required = append(required, p.Name)
		} else if p.Default != nil {
			s["default"] = p.Default
		}
		properties[p.Name] = s
	}
	b, err := json.Marshal(map[string]any{
		"type": "object", "properties": properties, "required": required,
		"additionalProperties": false,
	})
	if err != nil {
		panic(err) // Strings, numbers and lists of them can be marshalled.
	}
	return b
}
