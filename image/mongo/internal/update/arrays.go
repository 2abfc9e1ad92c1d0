package update

import (
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// list returns the array at a path, and makes it if the path leads to nothing.
func (c *context) list(path []string) (*tree, []value.Value, error) {
	t, err := c.root.reach(path)
	if err != nil {
		return nil, nil, err
	}
	v := t.value()
	if value.Exists(v) && !value.IsArray(v) {
		return nil, nil, code.Errorf(code.BadValue,
			"The field '%s' must be an array but is of type %s in document {_id: %s}", strings.Join(path, "."),
			value.TypeName(v), value.ValueText(c.id))
	}
	return t, value.List(v.Data), nil
}

// each returns the values to be added: the argument, or those of its $each.
func each(arg value.Value) (values []value.Value, modifiers value.Doc, err error) {
	if value.IsDoc(arg) {
		if e := value.Get(arg.Data, "$each"); value.Exists(e) {
			if !value.IsArray(e) {
				return nil, nil, code.Errorf(code.BadValue,
					"The argument to $each in $push must be an array but it was of type: %s", value.TypeName(e))
			}
			return value.List(e.Data), arg.Data, nil
		}
	}
	return []value.Value{arg}, nil, nil
}

func push(c *context, path []string, arg value.Value) error {
	t, list, err := c.list(path)
	if err != nil {
		return err
	}
	values, modifiers, err := each(arg)
	if err != nil {
		return err
	}
	at := len(list)
	for name, v := range value.Fields(modifiers) {
		switch name {
		case "$each", "$slice", "$sort":
		case "$position":
			n, ok := value.Int(v)
			if !ok {
				return code.Errorf(code.BadValue, "The value for $position must be an integer value, not of type: %s",
					value.TypeName(v))
			}
			if n < 0 {
				n = max(0, int64(len(list))+n)
			}
			at = int(min(n, int64(len(list))))
		default:
			return code.Errorf(code.BadValue, "Unrecognized clause in $push: %s", name)
		}
	}
	list = slices.Insert(list, at, values...)
	if s := value.Get(modifiers, "$sort"); value.Exists(s) {
		if err := sortList(list, s); err != nil {
			return err
		}
	}
	if s := value.Get(modifiers, "$slice"); value.Exists(s) {
		n, ok := value.Int(s)
		if !ok {
			return code.Errorf(code.BadValue, "The value for $slice must be an integer value but was given type: %s",
				value.TypeName(s))
		}
		list = expr.Slice(list, nil, n)
	}
	t.assign(value.Array(list...))
	return nil
}

// sortList sorts by the fields of the elements, or by the elements themselves.
func sortList(list []value.Value, by value.Value) error {
	if value.IsDoc(by) {
		order, err := query.ParseOrder(by.Data)
		if err != nil {
			return err
		}
		slices.SortStableFunc(list, func(a, b value.Value) int {
			return order.CompareKeys(order.Key(value.Inner(a)), order.Key(value.Inner(b)))
		})
		return nil
	}
	n, ok := value.Int(by)
	if !ok || n != 1 && n != -1 {
		return code.Errorf(code.BadValue, "The $sort element value must be either 1 or -1")
	}
	slices.SortStableFunc(list, func(a, b value.Value) int { return value.Compare(a, b) * int(n) })
	return nil
}

func contains(list []value.Value, v value.Value) bool {
	return slices.ContainsFunc(list, func(x value.Value) bool { return value.Equal(x, v) })
}

func addToSet(c *context, path []string, arg value.Value) error {
	t, list, err := c.list(path)
	if err != nil {
		return err
	}
	values, _, err := each(arg)
	if err != nil {
		return err
	}
	before := len(list)
	for _, v := range values {
		if !contains(list, v) {
			list = append(list, v)
		}
	}
	if len(list) > before || value.Missing(t.value()) {
		t.assign(value.Array(list...))
	}
	return nil
}

// without removes the elements of an array that meet a condition.
func (c *context) without(op string, path []string, drop func(value.Value) bool) error {
	t := c.root.find(path)
	if t == nil {
		return nil
	}
	v := t.value()
	if !value.IsArray(v) {
		return code.Errorf(code.BadValue, "Cannot apply %s to a non-array value", op)
	}
	list := value.List(v.Data)
	if kept := slices.DeleteFunc(slices.Clone(list), drop); len(kept) < len(list) {
		t.assign(value.Array(kept...))
	}
	return nil
}

func pull(c *context, path []string, arg value.Value) error {
	drop, err := condition(arg)
	if err != nil {
		return err
	}
	return c.without("$pull", path, drop)
}

// condition is that of $pull: a filter of documents, a condition on values, or a value to equal.
func condition(arg value.Value) (func(value.Value) bool, error) {
	if name, _ := value.First(value.Inner(arg)); value.IsDoc(arg) && !strings.HasPrefix(name, "$") {
		f, err := query.Parse(arg.Data)
		return func(v value.Value) bool { return value.IsDoc(v) && f.Match(v.Data) }, err
	}
	const name = "v"
	var b value.Builder
	b.Add(name, arg)
	f, err := query.Parse(b.Doc())
	return func(v value.Value) bool {
		if value.IsArray(arg) {
			return value.Equal(v, arg)
		}
		var b value.Builder
		b.Add(name, v)
		return f.Match(b.Doc())
	}, err
}

func pullAll(c *context, path []string, arg value.Value) error {
	values := value.List(arg.Data)
	return c.without("$pullAll", path, func(v value.Value) bool { return contains(values, v) })
}

func pop(c *context, path []string, arg value.Value) error {
	t := c.root.find(path)
	if t == nil {
		return nil
	}
	v := t.value()
	if !value.IsArray(v) {
		return code.Errorf(code.TypeMismatch, "Path '%s' contains an element of non-array type '%s'",
			strings.Join(path, "."), value.TypeName(v))
	}
	list := value.List(v.Data)
	if len(list) == 0 {
		return nil
	}
	if n, _ := value.Int(arg); n < 0 {
		list = list[1:]
	} else {
		list = list[:len(list)-1]
	}
	t.assign(value.Array(list...))
	return nil
}
