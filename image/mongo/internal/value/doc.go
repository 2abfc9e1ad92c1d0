// Package value is BSON as the server works with it: documents and values stay in their encoded
// form, in the order of their fields, and are walked in place.
//
// Whatever comes from outside must pass [Validate] first; the other functions rely on it and report
// no errors of encoding.
package value

import (
	"bytes"
	"iter"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Value is an encoded value with its type. The zero Value stands for a field that is not there.
type Value = bsoncore.Value

// Doc is an encoded document, or an encoded array, whose fields are named by their index.
type Doc = bsoncore.Document

// Exists reports whether the value is there at all.
func Exists(v Value) bool { return v.Type != 0 }

// Missing reports whether the value is not there.
func Missing(v Value) bool { return v.Type == 0 }

// next splits the first field off the rest of a document.
func next(rest []byte) (key []byte, v Value, tail []byte, ok bool) {
	if len(rest) < 2 || rest[0] == 0 {
		return nil, Value{}, nil, false
	}
	end := bytes.IndexByte(rest[1:], 0)
	if end < 0 {
		return nil, Value{}, nil, false
	}
	key = rest[1 : 1+end]
	v, tail, ok = bsoncore.ReadValue(rest[end+2:], bsoncore.Type(rest[0]))
	return key, v, tail, ok
}

// body is what follows the length of a document.
func body(d Doc) []byte {
	if len(d) < 5 {
		return nil
	}
	return d[4:]
}

// Fields iterates over the fields of a document.
func Fields(d Doc) iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for key, v, rest, ok := next(body(d)); ok; key, v, rest, ok = next(rest) {
			if !yield(string(key), v) {
				return
			}
		}
	}
}

// Items iterates over the elements of an array, or the values of a document.
func Items(d []byte) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		i := 0
		for _, v, rest, ok := next(body(d)); ok; _, v, rest, ok = next(rest) {
			if !yield(i, v) {
				return
			}
			i++
		}
	}
}

// Get returns a field of a document by its name, which is not a path.
func Get(d Doc, name string) Value {
	for key, v, rest, ok := next(body(d)); ok; key, v, rest, ok = next(rest) {
		if string(key) == name {
			return v
		}
	}
	return Value{}
}

// Item returns an element of an array.
func Item(array []byte, index int) Value {
	for i, v := range Items(array) {
		if i == index {
			return v
		}
	}
	return Value{}
}

// Count returns the number of fields or elements.
func Count(d []byte) (n int) {
	for range Items(d) {
		n++
	}
	return n
}

// First returns the first field of a document.
func First(d Doc) (name string, v Value) {
	for name, v = range Fields(d) {
		break
	}
	return name, v
}

// IsDoc reports whether a value is a document.
func IsDoc(v Value) bool { return v.Type == bsoncore.TypeEmbeddedDocument }

// IsArray reports whether a value is an array.
func IsArray(v Value) bool { return v.Type == bsoncore.TypeArray }

// IsNull reports whether a value is null, or undefined, which old documents have.
func IsNull(v Value) bool { return v.Type == bsoncore.TypeNull || v.Type == bsoncore.TypeUndefined }

// Index reads a path component as an index of an array.
func Index(component string) (int, bool) {
	if component == "" || len(component) > 9 || len(component) > 1 && component[0] == '0' {
		return 0, false
	}
	for _, c := range component {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(component)
	return n, err == nil
}

// Inner returns the content of a document or an array, and nothing for any other value.
func Inner(v Value) Doc {
	if IsDoc(v) || IsArray(v) {
		return v.Data
	}
	return nil
}
