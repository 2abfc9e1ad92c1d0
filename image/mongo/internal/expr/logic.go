package expr

import (
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func comparison(test func(c int) bool) operator {
	return operator{2, 2, func(_ string, a []value.Value) (value.Value, error) {
		return value.Bool(test(value.Compare(a[0], a[1]))), nil
	}}
}

var logical = map[string]operator{
	"$eq":  comparison(func(c int) bool { return c == 0 }),
	"$ne":  comparison(func(c int) bool { return c != 0 }),
	"$gt":  comparison(func(c int) bool { return c > 0 }),
	"$gte": comparison(func(c int) bool { return c >= 0 }),
	"$lt":  comparison(func(c int) bool { return c < 0 }),
	"$lte": comparison(func(c int) bool { return c <= 0 }),
	"$cmp": {2, 2, func(_ string, a []value.Value) (value.Value, error) {
		return value.Int32(int32(value.Compare(a[0], a[1]))), nil
	}},
	"$not": {1, 1, func(_ string, a []value.Value) (value.Value, error) {
		return value.Bool(!value.Truthy(a[0])), nil
	}},
	"$type": {1, 1, func(_ string, a []value.Value) (value.Value, error) {
		return value.String(value.TypeName(a[0])), nil
	}},
}

// logic is $and or $or: it ends at the first argument whose truth is stop.
type logic struct {
	stop bool
	args []Expr
}

func parseLogic(stop bool) func(value.Value) (Expr, error) {
	return func(arg value.Value) (Expr, error) {
		if !value.IsArray(arg) {
			arg = value.Array(arg)
		}
		list, err := parseArray(arg)
		if err != nil {
			return nil, err
		}
		return logic{stop, list.(array)}, nil
	}
}

func (e logic) eval(s *scope) (value.Value, error) {
	for _, a := range e.args {
		v, err := a.eval(s)
		if err != nil {
			return v, err
		}
		if value.Truthy(v) == e.stop {
			return value.Bool(e.stop), nil
		}
	}
	return value.Bool(!e.stop), nil
}

type branch struct{ when, then Expr }

// choice is the first branch whose condition holds. Without a default, no branch is an error.
type choice struct {
	branches  []branch
	otherwise Expr
}

func (e choice) eval(s *scope) (value.Value, error) {
	for _, b := range e.branches {
		v, err := b.when.eval(s)
		if err != nil {
			return v, err
		}
		if value.Truthy(v) {
			return b.then.eval(s)
		}
	}
	if e.otherwise == nil {
		return value.Value{}, code.Errorf(40066,
			"$switch could not find a matching branch for an input, and no default was specified.")
	}
	return e.otherwise.eval(s)
}

func parseCond(arg value.Value) (Expr, error) {
	var parts [3]value.Value
	switch {
	case value.IsArray(arg):
		if n := value.Count(value.Inner(arg)); n != 3 {
			return nil, code.Errorf(16020, "Expression $cond takes exactly 3 arguments. %d were passed in.", n)
		}
		copy(parts[:], value.List(arg.Data))
	case value.IsDoc(arg):
		for i, name := range []string{"if", "then", "else"} {
			if parts[i] = value.Get(arg.Data, name); value.Missing(parts[i]) {
				return nil, code.Errorf(code.Code(17080+i), "Missing '%s' parameter to $cond", name)
			}
		}
	default:
		return nil, code.Errorf(16020, "Expression $cond takes exactly 3 arguments. 1 were passed in.")
	}
	var exprs [3]Expr
	for i, p := range parts {
		var err error
		if exprs[i], err = Parse(p); err != nil {
			return nil, err
		}
	}
	return choice{[]branch{{exprs[0], exprs[1]}}, exprs[2]}, nil
}

func parseSwitch(arg value.Value) (Expr, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(40060, "$switch requires an object as an argument, found: %s", value.TypeName(arg))
	}
	var c choice
	for _, b := range value.Items(value.Inner(value.Get(arg.Data, "branches"))) {
		if !value.IsDoc(b) {
			return nil, code.Errorf(40062, "$switch expected each branch to be an object, found: %s", value.TypeName(b))
		}
		when, err := Parse(value.Get(b.Data, "case"))
		if err != nil {
			return nil, err
		}
		then, err := Parse(value.Get(b.Data, "then"))
		if err != nil {
			return nil, err
		}
		c.branches = append(c.branches, branch{when, then})
	}
	if len(c.branches) == 0 {
		return nil, code.Errorf(40068, "$switch requires at least one branch.")
	}
	if d := value.Get(arg.Data, "default"); value.Exists(d) {
		var err error
		if c.otherwise, err = Parse(d); err != nil {
			return nil, err
		}
	}
	return c, nil
}

type ifNull []Expr

func parseIfNull(arg value.Value) (Expr, error) {
	if !value.IsArray(arg) || value.Count(value.Inner(arg)) < 2 {
		return nil, code.Errorf(16020, "Expression $ifNull takes exactly 2 arguments. %d were passed in.",
			value.Count(value.Inner(arg)))
	}
	list, err := parseArray(arg)
	if err != nil {
		return nil, err
	}
	return ifNull(list.(array)), nil
}

func (e ifNull) eval(s *scope) (v value.Value, err error) {
	for _, a := range e {
		if v, err = a.eval(s); err != nil || !nothing(v) {
			return v, err
		}
	}
	return v, nil
}

// let is an expression with variables of its own.
type let struct {
	names  []string
	values []Expr
	in     Expr
}

func parseLet(arg value.Value) (Expr, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(16874, "$let only supports an object as its argument")
	}
	var l let
	for name, v := range value.Fields(value.Inner(value.Get(arg.Data, "vars"))) {
		e, err := Parse(v)
		if err != nil {
			return nil, err
		}
		l.names, l.values = append(l.names, name), append(l.values, e)
	}
	var err error
	l.in, err = Parse(value.Get(arg.Data, "in"))
	return l, err
}

func (e let) eval(s *scope) (value.Value, error) {
	inner := s
	for i, x := range e.values {
		v, err := x.eval(s)
		if err != nil {
			return v, err
		}
		inner = inner.with(e.names[i], v)
	}
	return e.in.eval(inner)
}
