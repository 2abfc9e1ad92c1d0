package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// jqInputs are the values jq reads, one after the other, from all its files.
type jqInputs struct {
	q     *jqCall
	files []string
	open  io.ReadCloser
	json  *json.Decoder
	lines *stream.Lines
	ended bool
}

func (q *jqCall) inputs() *jqInputs {
	in := &jqInputs{q: q, files: q.files}
	if len(in.files) == 0 {
		in.files = []string{"-"}
	}
	return in
}

func (in *jqInputs) close() {
	if in.open != nil {
		in.open.Close()
	}
}

// Next returns the next value, or an error as one; false at the end.
func (in *jqInputs) Next() (any, bool) {
	if in.ended {
		return nil, false
	}
	if !in.q.slurp {
		return in.one()
	}
	in.ended = true
	var text strings.Builder
	list := []any{}
	for {
		v, ok := in.one()
		switch v := v.(type) {
		case error:
			return v, true
		case string:
			if in.q.rawText {
				text.WriteString(v + "\n")
				continue
			}
		}
		if !ok {
			break
		}
		list = append(list, v)
	}
	if in.q.rawText {
		return text.String(), true
	}
	return list, true
}

// one reads one value.
func (in *jqInputs) one() (any, bool) {
	for {
		if in.open == nil {
			if len(in.files) == 0 {
				in.ended = true
				return nil, false
			}
			f, err := in.q.c.Open(in.files[0])
			if err != nil {
				in.ended = true
				return fmt.Errorf("could not open %s: %s", in.files[0], tool.Reason(err)), true
			}
			in.open, in.files = f, in.files[1:]
			in.json = json.NewDecoder(f)
			in.json.UseNumber()
			in.lines = stream.NewLines(f)
		}
		v, err := in.read()
		if err == nil {
			return v, true
		}
		in.open.Close()
		in.open = nil
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			in.ended = true
			return fmt.Errorf("the input is not JSON: %w", err), true
		}
	}
}

func (in *jqInputs) read() (any, error) {
	if in.q.rawText {
		line, _, err := in.lines.Next()
		return string(line), err
	}
	var v any
	err := in.json.Decode(&v)
	return plain(v), err
}

// plain turns numbers into what gojq works with.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && int64(int(n)) == n {
			return int(n)
		}
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
		f, _ := v.Float64() // Too large a number is infinite, as in jq.
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

// parseAll reads a text of JSON values.
func parseAll(text string) ([]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	list := []any{}
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, plain(v))
	}
}

// parseJSON reads a text that is one JSON value.
func parseJSON(text string) (any, error) {
	list, err := parseAll(text)
	if err == nil && len(list) != 1 {
		err = errors.New("not one value")
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// indentJSON writes JSON as jq does.
func indentJSON(b []byte, indent string) string {
	if indent == "" {
		return string(b)
	}
	var out bytes.Buffer
	if json.Indent(&out, b, "", indent) != nil {
		return string(b) // NaN and the like are not JSON for everybody.
	}
	return out.String()
}
