package kv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Value is a value of SQL: nil, an int64, a float64, a string or a []byte. JSON tells them apart.
type Value struct{ V any }

type taggedValue struct {
	Float *float64 `json:"f,omitempty"`
	Bytes *[]byte  `json:"b,omitempty"`
}

// MarshalJSON writes integers as numbers and texts as strings; the rest has a tag.
func (v Value) MarshalJSON() ([]byte, error) {
	switch x := v.V.(type) {
	case float64:
		return json.Marshal(taggedValue{Float: &x})
	case []byte:
		return json.Marshal(taggedValue{Bytes: &x})
	case nil, int64, string:
		return json.Marshal(x)
	}
	return nil, fmt.Errorf("a value cannot be a %T", v.V)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (v *Value) UnmarshalJSON(b []byte) error {
	switch b = bytes.TrimSpace(b); {
	case bytes.Equal(b, []byte("null")):
		v.V = nil
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		v.V = s
	case b[0] == '{':
		var t taggedValue
		if err := json.Unmarshal(b, &t); err != nil {
			return err
		}
		switch {
		case t.Float != nil:
			v.V = *t.Float
		case t.Bytes != nil:
			v.V = *t.Bytes
		default:
			return fmt.Errorf("a value without its kind: %s", b)
		}
	default:
		var n int64
		if err := json.Unmarshal(b, &n); err != nil {
			return err
		}
		v.V = n
	}
	return nil
}

// timeFormat is how MySQL writes a time.
const timeFormat = "2006-01-02 15:04:05"

// normal is what a driver has read as one of the kinds of a value.
func normal(x any) any {
	switch x := x.(type) {
	case time.Time:
		return x.Format(timeFormat)
	case bool:
		if x {
			return int64(1)
		}
		return int64(0)
	case []byte:
		return bytes.Clone(x)
	}
	return x
}

// Statement is one statement with its arguments.
type Statement struct {
	SQL  string  `json:"sql"`
	Args []Value `json:"args,omitempty"`
}

// Result is what came of a statement.
type Result struct {
	Columns  []string  `json:"columns,omitempty"`
	Rows     [][]Value `json:"rows,omitempty"`
	Affected int64     `json:"affected,omitempty"`
	LastID   int64     `json:"last_id,omitempty"`
}

// size is about how many bytes the statement is.
func (s Statement) size() int {
	n := len(s.SQL)
	for _, a := range s.Args {
		switch x := a.V.(type) {
		case string:
			n += len(x)
		case []byte:
			n += len(x)
		default:
			n += 8
		}
	}
	return n
}
