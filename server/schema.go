package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// field is a field of a struct as JSON knows it.
type field struct {
	name     string
	optional bool
	reflect.StructField
}

// fields are those of a struct, with those of structs that are embedded.
func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" {
			list = append(list, fields(f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name != "" && name != "-" {
			list = append(list, field{name, strings.HasPrefix(options, "omit"), f})
		}
	}
	return list
}

// fieldNames are the names of the fields of a pointer to a struct, and of the structs in it.
func fieldNames(v any) []string { return namesIn(reflect.TypeOf(v)) }

func namesIn(t reflect.Type) (names []string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return namesIn(t.Elem())
	case reflect.Struct:
		for _, f := range fields(t) {
			names = append(append(names, f.name), namesIn(f.Type)...)
		}
	}
	return names
}

// schemas are the JSON schemas of the structs that an API speaks in, by their names.
type schemas map[string]any

// of returns the schema of a type. That of a struct is a reference to one that is kept.
func (s schemas) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		if _, ok := s[t.Name()]; !ok {
			s[t.Name()] = nil // It may refer to itself.
			s[t.Name()] = s.object(t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + t.Name()}
	}
	return map[string]any{} // Anything.
}

// oneOf are examples of the bodies that an answer may have.
type oneOf []any

func (s schemas) oneOf(examples oneOf) map[string]any {
	var list []any
	for _, e := range examples {
		list = append(list, s.of(reflect.TypeOf(e)))
	}
	return map[string]any{"oneOf": list}
}

func (s schemas) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields(t) {
		p := s.of(f.Type)
		if short := f.Tag.Get("short"); short != "" {
			p = map[string]any{"oneOf": []any{map[string]any{"type": "string", "enum": []string{short}}, p}}
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			p["description"] = doc
		}
		if enum := f.Tag.Get("enum"); enum != "" {
			p["enum"] = strings.Split(enum, ",")
		}
		properties[f.name] = p
		if !f.optional {
			required = append(required, f.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
