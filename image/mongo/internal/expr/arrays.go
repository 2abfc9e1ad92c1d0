package expr

import (
	"slices"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

var arrays = map[string]operator{
	"$size": {1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if !value.IsArray(args[0]) {
			return args[0], code.Errorf(17124, "The argument to $size must be an array, but was of type: %s",
				value.TypeName(args[0]))
		}
		return value.Int32(int32(value.Count(value.Inner(args[0])))), nil
	}},
	"$isArray": {1, 1, func(_ string, args []value.Value) (value.Value, error) {
		return value.Bool(value.IsArray(args[0])), nil
	}},
	"$arrayElemAt": {2, 2, func(_ string, args []value.Value) (value.Value, error) {
		if anyNothing(args) {
			return value.Null(), nil
		}
		n, ok := value.Int(args[1])
		if !value.IsArray(args[0]) || !ok {
			return args[0], code.Errorf(28689, "$arrayElemAt's first argument must be an array, but is %s",
				value.TypeName(args[0]))
		}
		return elementAt(value.List(value.Inner(args[0])), n), nil
	}},
	"$first": {1, 1, end(0)},
	"$last":  {1, 1, end(-1)},
	"$in": {2, 2, func(_ string, args []value.Value) (value.Value, error) {
		if !value.IsArray(args[1]) {
			return args[1], code.Errorf(40081, "$in requires an array as a second argument, found: %s",
				value.TypeName(args[1]))
		}
		return value.Bool(contains(value.List(value.Inner(args[1])), args[0])), nil
	}},
	"$slice":        {2, 3, slice},
	"$concatArrays": {0, many, concatArrays},
	"$setUnion":     {0, many, setUnion},
	"$reverseArray": {1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		list := value.List(value.Inner(args[0]))
		slices.Reverse(list)
		return value.Array(list...), nil
	}},
	"$mergeObjects": {0, many, func(_ string, args []value.Value) (value.Value, error) {
		if len(args) == 1 && value.IsArray(args[0]) {
			args = value.List(value.Inner(args[0]))
		}
		return Merge(args)
	}},
	"$objectToArray": {1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		var list []value.Value
		for name, v := range value.Fields(value.Inner(args[0])) {
			var b value.Builder
			b.Add("k", value.String(name))
			b.Add("v", v)
			list = append(list, value.OfDoc(b.Doc()))
		}
		return value.Array(list...), nil
	}},
	"$arrayToObject": {1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		var b value.Builder
		for _, item := range value.Items(value.Inner(args[0])) {
			k, v := value.Get(value.Inner(item), "k"), value.Get(value.Inner(item), "v")
			if value.IsArray(item) {
				k, v = value.Item(value.Inner(item), 0), value.Item(value.Inner(item), 1)
			}
			name, ok := value.Str(k)
			if !ok {
				return k, code.Errorf(40394,
					"$arrayToObject requires an array of key-value pairs, where the key must be of type string. "+
						"Found key type: %s", value.TypeName(k))
			}
			b.Add(name, v)
		}
		return value.OfDoc(b.Doc()), nil
	}},
}

func end(n int64) func(string, []value.Value) (value.Value, error) {
	return func(name string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		if !value.IsArray(args[0]) {
			return args[0], code.Errorf(28689, "%s's argument must be an array, but is %s", name,
				value.TypeName(args[0]))
		}
		return elementAt(value.List(value.Inner(args[0])), n), nil
	}
}

// elementAt counts from the end if n is negative. Outside there is nothing.
func elementAt(list []value.Value, n int64) value.Value {
	if n < 0 {
		n += int64(len(list))
	}
	if n < 0 || n >= int64(len(list)) {
		return value.Value{}
	}
	return list[n]
}

func contains(list []value.Value, v value.Value) bool {
	return slices.ContainsFunc(list, func(x value.Value) bool { return value.Equal(x, v) })
}

// Merge returns a document with the fields of all; the later ones win.
func Merge(docs []value.Value) (value.Value, error) {
	var names []string
	fields := map[string]value.Value{}
	for _, d := range docs {
		if nothing(d) {
			continue
		}
		if !value.IsDoc(d) {
			return d, code.Errorf(40400, "$mergeObjects requires object inputs, but input %s is of type %s",
				value.ValueText(d), value.TypeName(d))
		}
		for name, v := range value.Fields(d.Data) {
			if _, ok := fields[name]; !ok {
				names = append(names, name)
			}
			fields[name] = v
		}
	}
	var b value.Builder
	for _, name := range names {
		b.Add(name, fields[name])
	}
	return value.OfDoc(b.Doc()), nil
}

func slice(_ string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	if !value.IsArray(args[0]) {
		return args[0], code.Errorf(28724, "First argument to $slice must be an array, but is of type: %s",
			value.TypeName(args[0]))
	}
	list := value.List(value.Inner(args[0]))
	n, _ := value.Int(args[1])
	if len(args) == 2 {
		return value.Array(Slice(list, nil, n)...), nil
	}
	count, _ := value.Int(args[2])
	if count <= 0 {
		return value.Value{}, code.Errorf(28729, "Third argument to $slice must be positive: %d", count)
	}
	return value.Array(Slice(list, &n, count)...), nil
}

// Slice returns n elements from the index skip on; a negative skip counts from the end. If skip is nil, it returns
// the first n elements, or the last -n if n is negative.
func Slice(list []value.Value, skip *int64, n int64) []value.Value {
	size := int64(len(list))
	if skip == nil {
		if n >= 0 {
			return list[:min(n, size)]
		}
		return list[max(0, size+n):]
	}
	from := *skip
	if from < 0 {
		from = max(0, size+from)
	}
	from = min(from, size)
	return list[from : from+min(n, size-from)]
}

func concatArrays(_ string, args []value.Value) (value.Value, error) {
	if anyNothing(args) {
		return value.Null(), nil
	}
	var list []value.Value
	for _, a := range args {
		if !value.IsArray(a) {
			return a, code.Errorf(28664, "$concatArrays only supports arrays, not %s", value.TypeName(a))
		}
		list = append(list, value.List(value.Inner(a))...)
	}
	return value.Array(list...), nil
}

func setUnion(name string, args []value.Value) (value.Value, error) {
	all, err := concatArrays(name, args)
	if err != nil || !value.IsArray(all) {
		return all, err
	}
	list := value.List(value.Inner(all))
	slices.SortFunc(list, value.Compare)
	return value.Array(slices.CompactFunc(list, value.Equal)...), nil
}

// loop is $filter, $map or $reduce.
type loop struct {
	input Expr
	as    string
	in    Expr
	// initial is that of $reduce.
	initial Expr
	filter  bool
}

func parseLoop(arg value.Value, body string, filter bool) (*loop, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(16878, "the expression only supports an object as its argument")
	}
	l := &loop{as: "this", filter: filter}
	if as, ok := value.Str(value.Get(arg.Data, "as")); ok {
		l.as = as
	}
	var err error
	if l.input, err = Parse(value.Get(arg.Data, "input")); err != nil {
		return nil, err
	}
	l.in, err = Parse(value.Get(arg.Data, body))
	return l, err
}

func parseFilter(arg value.Value) (Expr, error) { return parseLoop(arg, "cond", true) }

func parseMap(arg value.Value) (Expr, error) { return parseLoop(arg, "in", false) }

func parseReduce(arg value.Value) (Expr, error) {
	l, err := parseLoop(arg, "in", false)
	if err != nil {
		return nil, err
	}
	l.initial, err = Parse(value.Get(arg.Data, "initialValue"))
	return l, err
}

func (e *loop) eval(s *scope) (value.Value, error) {
	in, err := e.input.eval(s)
	if err != nil {
		return in, err
	}
	if nothing(in) {
		return value.Null(), nil
	}
	if !value.IsArray(in) {
		return in, code.Errorf(28651, "input to the expression must be an array not %s", value.TypeName(in))
	}
	var total value.Value
	if e.initial != nil {
		if total, err = e.initial.eval(s); err != nil {
			return total, err
		}
	}
	var list []value.Value
	for _, item := range value.Items(value.Inner(in)) {
		inner := s.with(e.as, item)
		if e.initial != nil {
			inner = inner.with("value", total)
		}
		v, err := e.in.eval(inner)
		switch {
		case err != nil:
			return v, err
		case e.initial != nil:
			total = v
		case e.filter && value.Truthy(v):
			list = append(list, item)
		case !e.filter:
			list = append(list, v)
		}
	}
	if e.initial != nil {
		return total, nil
	}
	return value.Array(list...), nil
}
