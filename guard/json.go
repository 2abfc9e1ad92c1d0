package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// Answers are edited as text: what is not removed stays as the API server wrote it, in its order and
// with its numbers.

var errJSON = errors.New("the API server's answer is no JSON")

// field is a member of a JSON object.
type field struct {
	name  string
	value []byte
}

// fields splits a JSON object.
func fields(obj []byte) ([]field, error) {
	var out []field
	err := split(obj, '{', '}', func(item []byte) error {
		end, err := skip(item, 0)
		if err != nil || item[0] != '"' {
			return errJSON
		}
		name, err := unquote(item[:end])
		if err != nil {
			return err
		}
		colon := space(item, end)
		if colon >= len(item) || item[colon] != ':' {
			return errJSON
		}
		out = append(out, field{name, bytes.TrimSpace(item[colon+1:])})
		return nil
	})
	return out, err
}

// elements splits a JSON array. There are none in null, nor in a field that is missing.
func elements(arr []byte) (out [][]byte, err error) {
	if arr == nil || bytes.Equal(arr, []byte("null")) {
		return nil, nil
	}
	err = split(arr, '[', ']', func(item []byte) error {
		out = append(out, item)
		return nil
	})
	return out, err
}

// split calls f for what stands between commas, without the space around it.
func split(b []byte, open, shut byte, f func([]byte) error) error {
	b = bytes.TrimSpace(b)
	if len(b) < 2 || b[0] != open || b[len(b)-1] != shut {
		return errJSON
	}
	b = b[1 : len(b)-1]
	for i := space(b, 0); i < len(b); {
		end := i
		for end < len(b) && b[end] != ',' {
			next, err := skip(b, end)
			if err != nil {
				return err
			}
			end = next
		}
		item := bytes.TrimSpace(b[i:end])
		if len(item) == 0 {
			return errJSON
		}
		if err := f(item); err != nil {
			return err
		}
		if end == len(b) {
			return nil
		}
		if i = space(b, end+1); i == len(b) {
			return errJSON // A comma and nothing after it.
		}
	}
	return nil
}

// skip returns the index behind the value, or the other character, at i.
func skip(b []byte, i int) (int, error) {
	switch b[i] {
	case '"':
		for i++; i < len(b); i++ {
			switch b[i] {
			case '\\':
				i++
			case '"':
				return i + 1, nil
			}
		}
		return 0, errJSON
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				next, err := skip(b, i)
				if err != nil {
					return 0, err
				}
				i = next
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1, nil
				}
			}
			i++
		}
		return 0, errJSON
	case '}', ']':
		return 0, errJSON
	}
	return i + 1, nil
}

// space returns the index of the first character from i on that is no white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// value returns the value of the named field, or nil.
func value(all []field, name string) []byte {
	for _, f := range all {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

// text returns the named field if it is a string.
func text(all []field, name string) string {
	s, _ := unquote(value(all, name)) // Anything else is no name we look for.
	return s
}

// unquote reads a string. Most are of letters that stand for themselves.
func unquote(raw []byte) (s string, err error) {
	if n := len(raw); n >= 2 && raw[0] == '"' && raw[n-1] == '"' && plainText(raw[1:n-1]) {
		return string(raw[1 : n-1]), nil
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

// plainText reports whether a text is the same in JSON and out of it.
func plainText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// join is the inverse of fields. Fields without a value are left out.
func join(all []field) []byte {
	size := 2
	for _, f := range all {
		size += len(f.name) + len(f.value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for _, f := range all {
		if f.value == nil {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		if plainText([]byte(f.name)) {
			b = append(b, '"')
			b = append(b, f.name...)
			b = append(b, '"', ':')
		} else {
			name, _ := json.Marshal(f.name) // A string can be written.
			b = append(b, name...)
			b = append(b, ':')
		}
		b = append(b, f.value...)
	}
	return append(b, '}')
}

// list is the inverse of elements.
func list(items [][]byte) []byte {
	b := append([]byte{'['}, bytes.Join(items, []byte{','})...)
	return append(b, ']')
}

// edit replaces the fields of an object by what f makes of them; nil removes one.
func edit(obj []byte, f func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	all, err := fields(obj)
	if err != nil {
		return nil, err
	}
	return editFields(obj, all, f)
}

// editFields edits an object whose fields are all. They stay as they are.
func editFields(obj []byte, all []field, f func(name string, value []byte) ([]byte, error)) ([]byte, error) {
	out := slices.Clone(all)
	changed := false
	for i, m := range all {
		v, err := f(m.name, m.value)
		if err != nil {
			return nil, err
		}
		changed = changed || !bytes.Equal(v, m.value)
		out[i].value = v
	}
	if !changed {
		return obj, nil
	}
	return join(out), nil
}

// sift keeps the elements of an array for which keep holds.
func sift(arr []byte, keep func(item []byte) bool) ([]byte, error) {
	items, err := elements(arr)
	if err != nil {
		return nil, err
	}
	kept := items[:0:0]
	for _, item := range items {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	if len(kept) == len(items) {
		return arr, nil
	}
	return list(kept), nil
}

// likeBefore gives an edited answer the indentation that the API server gave it.
func likeBefore(before, after []byte) []byte {
	var b bytes.Buffer
	if len(before) < 2 || before[1] != '\n' || json.Indent(&b, after, "", "  ") != nil {
		return after
	}
	return b.Bytes()
}
