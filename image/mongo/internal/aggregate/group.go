package aggregate

import (
	"slices"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// accumulators compute a value from those of a group, in the order of its documents.
var accumulators = map[string]func([]value.Value) (value.Value, error){
	"$sum": plain(expr.Sum), "$avg": plain(expr.Avg), "$min": plain(expr.Min), "$max": plain(expr.Max),
	"$first":        plain(func(l []value.Value) value.Value { return orNull(l[0]) }),
	"$last":         plain(func(l []value.Value) value.Value { return orNull(l[len(l)-1]) }),
	"$push":         plain(func(l []value.Value) value.Value { return value.Array(present(l)...) }),
	"$addToSet":     plain(distinct),
	"$mergeObjects": expr.Merge,
}

func plain(f func([]value.Value) value.Value) func([]value.Value) (value.Value, error) {
	return func(list []value.Value) (value.Value, error) { return f(list), nil }
}

func orNull(v value.Value) value.Value {
	if value.Missing(v) {
		return value.Null()
	}
	return v
}

func present(list []value.Value) []value.Value {
	return slices.DeleteFunc(slices.Clone(list), value.Missing)
}

func distinct(list []value.Value) value.Value {
	var set []value.Value
	for _, v := range present(list) {
		if !slices.ContainsFunc(set, func(x value.Value) bool { return value.Equal(x, v) }) {
			set = append(set, v)
		}
	}
	return value.Array(set...)
}

type accumulation struct {
	name    string
	combine func([]value.Value) (value.Value, error)
	arg     expr.Expr
}

// group is the documents with one _id.
type group struct {
	id   value.Value
	args [][]value.Value // of each accumulation
}

func parseGroup(arg value.Value) (stage, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(15947, "a group's fields must be specified in an object")
	}
	idSpec := value.Get(arg.Data, "_id")
	if value.Missing(idSpec) {
		return nil, code.Errorf(15955, "a group specification must include an _id")
	}
	id, err := expr.Parse(idSpec)
	if err != nil {
		return nil, err
	}
	var accs []accumulation
	for name, v := range value.Fields(arg.Data) {
		if name == "_id" {
			continue
		}
		acc, err := parseAccumulation(name, v)
		if err != nil {
			return nil, err
		}
		accs = append(accs, acc)
	}
	return func(env *Env, docs []value.Doc) ([]value.Doc, error) {
		groups, err := collect(env, docs, id, accs)
		if err != nil {
			return nil, err
		}
		out := make([]value.Doc, 0, len(groups))
		for _, g := range groups {
			var b value.Builder
			b.Add("_id", orNull(g.id))
			for i, a := range accs {
				v, err := a.combine(g.args[i])
				if err != nil {
					return nil, err
				}
				b.Add(a.name, v)
			}
			out = append(out, b.Doc())
		}
		return out, nil
	}, nil
}

func parseAccumulation(name string, v value.Value) (accumulation, error) {
	op, arg := value.First(value.Inner(v))
	if !value.IsDoc(v) || op == "" {
		return accumulation{}, code.Errorf(40234, "The field '%s' must be an accumulator object", name)
	}
	if op == "$count" {
		op, arg = "$sum", value.Int32(1)
	}
	combine, ok := accumulators[op]
	if !ok {
		return accumulation{}, code.Errorf(15952, "unknown group operator '%s'", op)
	}
	e, err := expr.Parse(arg)
	return accumulation{name, combine, e}, err
}

// collect sorts the documents into groups, in the order of their first ones.
func collect(env *Env, docs []value.Doc, id expr.Expr, accs []accumulation) ([]*group, error) {
	var groups []*group
	byText := map[string][]*group{} // Equal values may differ in type, but not by much.
	for _, d := range docs {
		key, err := expr.Eval(id, d, env.Vars)
		if err != nil {
			return nil, err
		}
		text := hashText(key)
		i := slices.IndexFunc(byText[text], func(g *group) bool { return value.Equal(orNull(g.id), orNull(key)) })
		var g *group
		if i >= 0 {
			g = byText[text][i]
		} else {
			g = &group{id: key, args: make([][]value.Value, len(accs))}
			groups, byText[text] = append(groups, g), append(byText[text], g)
		}
		for i, a := range accs {
			v, err := expr.Eval(a.arg, d, env.Vars)
			if err != nil {
				return nil, err
			}
			g.args[i] = append(g.args[i], v)
		}
	}
	return groups, nil
}

// hashText is equal for equal values, and mostly different for others.
func hashText(v value.Value) string {
	switch {
	case value.Missing(v):
		return "null"
	case value.IsNumber(v):
		f, _ := value.Float(v)
		return value.ValueText(value.Double(f))
	case value.IsDoc(v), value.IsArray(v):
		_, first := value.First(v.Data)
		return "{" + hashText(first)
	}
	return value.ValueText(v)
}
