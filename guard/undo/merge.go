package undo

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// none stands for a field that is not there.
type none struct{}

// merger puts fields back. Paths are told as they are met.
type merger struct {
	put       []string // put back
	conflicts []string // put back, though somebody else had changed them since
}

// merge returns now with what differs between before and after as it was before. It changes none of its arguments, but
// the result may share parts with them.
func (m *merger) merge(path string, before, after, now any) any {
	switch {
	case equal(before, after), equal(now, before):
		return now
	case equal(now, after):
		m.put = append(m.put, differences(path, before, after)...)
		return before
	}
	if out, ok := m.mergeMaps(path, before, after, now); ok {
		return out
	}
	if out, ok := m.mergeLists(path, before, after, now); ok {
		return out
	}
	m.conflicts = append(m.conflicts, path)
	return before
}

// mergeMaps merges objects field by field. One that is not there, on one side, is an empty one.
func (m *merger) mergeMaps(path string, before, after, now any) (any, bool) {
	b, isB := asMap(before)
	a, isA := asMap(after)
	n, isN := now.(map[string]any)
	if !isB || !isA || !isN {
		return nil, false
	}
	out := map[string]any{}
	for _, key := range keys(b, a, n) {
		v := m.merge(join(path, key), at(b, key), at(a, key), at(n, key))
		if _, gone := v.(none); !gone {
			out[key] = v
		}
	}
	if _, was := before.(map[string]any); !was && len(out) == 0 {
		return before, true
	}
	return out, true
}

// mergeLists merges lists whose elements have names, by name, and lists of finalizers as sets.
func (m *merger) mergeLists(path string, before, after, now any) (any, bool) {
	b, isB := asList(before)
	a, isA := asList(after)
	n, isN := now.([]any)
	if !isB || !isA || !isN {
		return nil, false
	}
	if strings.HasSuffix(path, ".finalizers") {
		m.put = append(m.put, path)
		out := slices.DeleteFunc(slices.Clone(n), func(v any) bool { return contains(a, v) && !contains(b, v) })
		for _, v := range b {
			if !contains(a, v) && !contains(out, v) {
				out = append(out, v)
			}
		}
		return out, true
	}
	key := listKey(b, a, n)
	if key == "" {
		return nil, false
	}
	var out []any
	add := func(id string) {
		v := m.merge(fmt.Sprintf("%s[%s]", path, id), named(b, key, id), named(a, key, id), named(n, key, id))
		if _, gone := v.(none); !gone {
			out = append(out, v)
		}
	}
	for _, v := range b {
		add(name(v, key))
	}
	for _, v := range n {
		if _, new := named(b, key, name(v, key)).(none); new {
			add(name(v, key))
		}
	}
	return out, true
}

// listKeys are the fields by which elements of lists are told apart, in the order in which they are tried.
var listKeys = []string{"name", "key", "type", "uid", "mountPath", "containerPort", "port", "ip", "topologyKey"}

// listKey is the field that all elements of all lists have, each with another value within its list.
func listKey(lists ...[]any) string {
	return at0(slices.DeleteFunc(slices.Clone(listKeys), func(key string) bool {
		return slices.ContainsFunc(lists, func(list []any) bool {
			seen := map[string]bool{}
			return slices.ContainsFunc(list, func(v any) bool {
				id := name(v, key)
				again := id == "" || seen[id]
				seen[id] = true
				return again
			})
		})
	}))
}

func at0(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// name is the value of a field that names an element, or "".
func name(v any, key string) string {
	o, _ := v.(map[string]any)
	if id, ok := o[key]; ok {
		return fmt.Sprint(id)
	}
	return ""
}

func named(list []any, key, id string) any {
	i := slices.IndexFunc(list, func(v any) bool { return name(v, key) == id })
	if i < 0 {
		return none{}
	}
	return list[i]
}

func contains(list []any, v any) bool {
	return slices.ContainsFunc(list, func(o any) bool { return reflect.DeepEqual(o, v) })
}

// equal compares values. What is not there is the same as null and as an empty map or list: the API server leaves such
// out.
func equal(a, b any) bool { return empty(a) && empty(b) || reflect.DeepEqual(a, b) }

func empty(v any) bool {
	switch v := v.(type) {
	case nil, none:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

func asMap(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case nil, none:
		return nil, true
	case map[string]any:
		return v, true
	}
	return nil, false
}

func asList(v any) ([]any, bool) {
	switch v := v.(type) {
	case nil, none:
		return nil, true
	case []any:
		return v, true
	}
	return nil, false
}

func at(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return none{}
}

// keys are those of all maps, in order.
func keys(maps ...map[string]any) []string {
	var out []string
	for _, m := range maps {
		for k := range m {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// join makes the path of a field. A key that would be ambiguous is quoted.
func join(path, key string) string {
	if strings.ContainsAny(key, `./[] "`) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// differences are the paths at which two values differ.
func differences(path string, a, b any) []string {
	if equal(a, b) {
		return nil
	}
	x, isX := asMap(a)
	y, isY := asMap(b)
	if !isX || !isY {
		return listDifferences(path, a, b)
	}
	var out []string
	for _, key := range keys(x, y) {
		out = append(out, differences(join(path, key), at(x, key), at(y, key))...)
	}
	return out
}

func listDifferences(path string, a, b any) []string {
	x, isX := asList(a)
	y, isY := asList(b)
	if strings.HasSuffix(path, ".finalizers") {
		var out []string
		for _, v := range slices.Concat(x, y) {
			if contains(x, v) != contains(y, v) {
				out = append(out, fmt.Sprintf("%s[%v]", path, v))
			}
		}
		return out
	}
	key := listKey(x, y)
	if !isX || !isY || key == "" {
		return []string{path}
	}
	var out []string
	for _, v := range x {
		id := name(v, key)
		out = append(out, differences(fmt.Sprintf("%s[%s]", path, id), v, named(y, key, id))...)
	}
	for _, v := range y {
		if _, new := named(x, key, name(v, key)).(none); new {
			out = append(out, fmt.Sprintf("%s[%s]", path, name(v, key)))
		}
	}
	if len(out) == 0 {
		return []string{path} // The order differs.
	}
	return out
}
