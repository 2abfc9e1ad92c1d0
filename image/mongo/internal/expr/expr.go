// Package expr evaluates aggregation expressions, such as {$add: ["$price", 1]}, on documents.
package expr

import (
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Expr is a parsed expression. It is safe for concurrent use.
type Expr interface {
	eval(s *scope) (value.Value, error)
}

// scope is what an expression can refer to.
type scope struct {
	root value.Doc
	now  time.Time
	vars map[string]value.Value
}

// with returns a scope with one more variable.
func (s *scope) with(name string, v value.Value) *scope {
	vars := make(map[string]value.Value, len(s.vars)+1)
	for k, old := range s.vars {
		vars[k] = old
	}
	vars[name] = v
	return &scope{root: s.root, now: s.now, vars: vars}
}

// Eval returns the value of an expression for a document. A field that is not there is missing.
func Eval(e Expr, d value.Doc, vars map[string]value.Value) (value.Value, error) {
	return e.eval(&scope{root: d, now: time.Now(), vars: vars})
}

type (
	literal struct{ v value.Value }
	path    struct {
		variable string // "" is the document
		path     string
	}
	object struct {
		names  []string
		fields []Expr
	}
	array []Expr
)

// Parse reads an expression.
func Parse(v value.Value) (Expr, error) {
	if s, ok := value.Str(v); ok && strings.HasPrefix(s, "$") {
		return parsePath(s)
	}
	switch {
	case value.IsArray(v):
		return parseArray(v)
	case value.IsDoc(v):
		return parseObject(v.Data)
	}
	return literal{v}, nil
}

func parsePath(s string) (Expr, error) {
	if variable, ok := strings.CutPrefix(s, "$$"); ok {
		name, rest, _ := strings.Cut(variable, ".")
		if name == "" {
			return nil, code.Errorf(16869, "empty variable names are not allowed")
		}
		if name == "CURRENT" {
			name = "ROOT"
		}
		return path{name, rest}, nil
	}
	if s == "$" {
		return nil, code.Errorf(16872, "'$' by itself is not a valid FieldPath")
	}
	return path{"", s[1:]}, nil
}

func parseArray(v value.Value) (Expr, error) {
	var list array
	for _, item := range value.Items(v.Data) {
		e, err := Parse(item)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func parseObject(d value.Doc) (Expr, error) {
	if name, arg := value.First(d); strings.HasPrefix(name, "$") {
		if n := value.Count(d); n != 1 {
			return nil, code.Errorf(15983, "An object representing an expression must have exactly one field: %s",
				value.Text(d))
		}
		return parseOperator(name, arg)
	}
	var o object
	for name, v := range value.Fields(d) {
		e, err := Parse(v)
		if err != nil {
			return nil, err
		}
		o.names, o.fields = append(o.names, name), append(o.fields, e)
	}
	return o, nil
}

func (e literal) eval(*scope) (value.Value, error) { return e.v, nil }

func (e path) eval(s *scope) (value.Value, error) {
	v := value.OfDoc(s.root)
	switch e.variable {
	case "", "ROOT":
	case "NOW":
		v = value.Of(s.now)
	case "REMOVE":
		return value.Value{}, nil
	default:
		var ok bool
		if v, ok = s.vars[e.variable]; !ok {
			return v, code.Errorf(17276, "Use of undefined variable: %s", e.variable)
		}
	}
	return Field(v, e.path), nil
}

// Field follows a path in a value. In an array it is followed in each document, which gives an array.
func Field(v value.Value, path string) value.Value {
	if path == "" {
		return v
	}
	name, rest, _ := strings.Cut(path, ".")
	switch {
	case value.IsDoc(v):
		return Field(value.Get(v.Data, name), rest)
	case value.IsArray(v):
		var list []value.Value
		for _, item := range value.Items(v.Data) {
			if got := Field(item, path); value.IsDoc(item) && value.Exists(got) || value.IsArray(item) {
				list = append(list, got)
			}
		}
		return value.Array(list...)
	}
	return value.Value{}
}

func (e object) eval(s *scope) (value.Value, error) {
	var b value.Builder
	for i, f := range e.fields {
		v, err := f.eval(s)
		if err != nil {
			return v, err
		}
		b.Add(e.names[i], v)
	}
	return value.OfDoc(b.Doc()), nil
}

func (e array) eval(s *scope) (value.Value, error) {
	list, err := evalAll(e, s)
	return value.Array(list...), err
}

func evalAll(list []Expr, s *scope) ([]value.Value, error) {
	values := make([]value.Value, len(list))
	for i, e := range list {
		var err error
		if values[i], err = e.eval(s); err != nil {
			return nil, err
		}
	}
	return values, nil
}
