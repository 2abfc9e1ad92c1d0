package query

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// test is a condition on one value.
type test interface {
	// walk visits the values the condition is about.
	walk(d value.Doc, path string, visit func(value.Leaf) bool) bool
	// holds reports whether a value, which may be missing, meets the condition, and which of its
	// elements does so, if it is about elements.
	holds(v value.Value) (element int, ok bool)
}

// anyValue is embedded by conditions on an array's elements as well as on itself.
type anyValue struct{}

func (anyValue) walk(d value.Doc, path string, visit func(value.Leaf) bool) bool {
	return value.Walk(d, path, visit)
}

// wholeValue is embedded by conditions on an array as a whole.
type wholeValue struct{}

func (wholeValue) walk(d value.Doc, path string, visit func(value.Leaf) bool) bool {
	return value.WalkWhole(d, path, visit)
}

// tests are the operators with a condition on a value.
var tests map[string]func(name string, arg value.Value) (test, error)

func init() { // Some of them parse filters in turn.
	tests = map[string]func(name string, arg value.Value) (test, error){
		"$eq":        func(_ string, arg value.Value) (test, error) { return compare{op: "$eq", with: arg}, nil },
		"$gt":        parseCompare,
		"$gte":       parseCompare,
		"$lt":        parseCompare,
		"$lte":       parseCompare,
		"$in":        parseIn,
		"$type":      parseType,
		"$mod":       parseMod,
		"$size":      parseSize,
		"$elemMatch": parseElemMatch,
	}
}

// compare is $eq, $gt, $gte, $lt or $lte. Only values of comparable types are compared.
type compare struct {
	anyValue
	op   string
	with value.Value
}

// equality is the condition of a plain value: to equal it, or to match it if it is a pattern.
func equality(v value.Value) (test, error) {
	if pattern(v) {
		return parseRegex(v, value.Value{})
	}
	return compare{op: "$eq", with: v}, nil
}

func parseCompare(name string, arg value.Value) (test, error) {
	if pattern(arg) {
		return nil, code.Errorf(code.BadValue, "Can't have RegEx as arg to predicate over field '%s'.", name)
	}
	return compare{op: name, with: arg}, nil
}

func (t compare) holds(v value.Value) (int, bool) {
	if value.Missing(v) || v.Type == bsoncore.TypeUndefined {
		v = value.Null()
	}
	with := t.with
	if with.Type == bsoncore.TypeUndefined {
		with = value.Null()
	}
	edge := with.Type == bsoncore.TypeMinKey || with.Type == bsoncore.TypeMaxKey
	if !edge && value.Rank(v.Type) != value.Rank(with.Type) {
		return -1, false
	}
	c := value.Compare(v, with)
	if value.IsNaN(v) != value.IsNaN(with) {
		return -1, false
	}
	switch t.op {
	case "$gt":
		return -1, c > 0
	case "$gte":
		return -1, c >= 0
	case "$lt":
		return -1, c < 0
	case "$lte":
		return -1, c <= 0
	}
	return -1, c == 0
}

// in is $in: equal to one of the values, or matching one of the patterns.
type in struct {
	anyValue
	values []value.Value // sorted
	others []test
	null   bool
}

func parseIn(name string, arg value.Value) (test, error) {
	if !value.IsArray(arg) {
		return nil, code.Errorf(code.BadValue, "%s needs an array", name)
	}
	t := in{}
	for _, v := range value.Items(arg.Data) {
		switch {
		case isOperators(v):
			return nil, code.Errorf(code.BadValue, "cannot nest $ under %s", name)
		case pattern(v):
			re, err := parseRegex(v, value.Value{})
			if err != nil {
				return nil, err
			}
			t.others = append(t.others, re)
		default:
			t.null = t.null || value.IsNull(v)
			t.values = append(t.values, v)
		}
	}
	slices.SortFunc(t.values, value.Compare)
	return t, nil
}

func (t in) holds(v value.Value) (int, bool) {
	if value.Missing(v) || value.IsNull(v) {
		return -1, t.null
	}
	if _, ok := slices.BinarySearchFunc(t.values, v, value.Compare); ok {
		return -1, true
	}
	return -1, slices.ContainsFunc(t.others, func(o test) bool { _, ok := o.holds(v); return ok })
}

type exists struct{ anyValue }

func (exists) holds(v value.Value) (int, bool) { return -1, value.Exists(v) }

// typed is $type.
type typed struct {
	anyValue
	types  []bsoncore.Type
	number bool
}

func parseType(_ string, arg value.Value) (test, error) {
	t := typed{}
	list := []value.Value{arg}
	if value.IsArray(arg) {
		list = value.List(arg.Data)
	}
	for _, v := range list {
		if s, ok := value.Str(v); ok {
			if s == "number" {
				t.number = true
				continue
			}
			kind, ok := value.TypeNamed(s)
			if !ok {
				return nil, code.Errorf(code.BadValue, "Unknown type name alias: %s", s)
			}
			t.types = append(t.types, kind)
			continue
		}
		n, ok := value.Int(v)
		if !ok {
			return nil, code.Errorf(code.TypeMismatch, "type must be represented as a number or a string")
		}
		kind, ok := value.TypeNumbered(n)
		if !ok {
			return nil, code.Errorf(code.BadValue, "Invalid numerical type code: %d", n)
		}
		t.types = append(t.types, kind)
	}
	return t, nil
}

func (t typed) holds(v value.Value) (int, bool) {
	return -1, value.Exists(v) && (t.number && value.IsNumber(v) || slices.Contains(t.types, v.Type))
}

// mod is $mod: the remainder of a division.
type mod struct {
	anyValue
	divisor, remainder int64
}

func parseMod(_ string, arg value.Value) (test, error) {
	if !value.IsArray(arg) {
		return nil, code.Errorf(code.BadValue, "malformed mod, needs to be an array")
	}
	list := value.List(arg.Data)
	switch {
	case len(list) < 2:
		return nil, code.Errorf(code.BadValue, "malformed mod, not enough elements")
	case len(list) > 2:
		return nil, code.Errorf(code.BadValue, "malformed mod, too many elements")
	}
	var n [2]int64
	for i, what := range []string{"divisor", "remainder"} {
		f, ok := value.Float(list[i])
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, code.Errorf(code.BadValue, "malformed mod, %s not a number", what)
		}
		n[i] = int64(f)
	}
	if n[0] == 0 {
		return nil, code.Errorf(code.BadValue, "divisor cannot be 0")
	}
	return mod{divisor: n[0], remainder: n[1]}, nil
}

func (t mod) holds(v value.Value) (int, bool) {
	f, ok := value.Float(v)
	if !ok || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return -1, false
	}
	n, exact := value.Int(v)
	if !exact {
		n = int64(f)
	}
	return -1, n%t.divisor == t.remainder
}

// size is $size.
type size struct {
	wholeValue
	n int64
}

func parseSize(_ string, arg value.Value) (test, error) {
	n, ok := value.Int(arg)
	if !ok {
		return nil, code.Errorf(code.BadValue, "Failed to parse $size. Expected a number in: $size: %s",
			value.ValueText(arg))
	}
	if n < 0 {
		return nil, code.Errorf(code.BadValue, "Failed to parse $size. Expected a non-negative number in: $size: %d", n)
	}
	return size{n: n}, nil
}

func (t size) holds(v value.Value) (int, bool) {
	return -1, value.IsArray(v) && int64(value.Count(v.Data)) == t.n
}

// elemMatch is $elemMatch: one element of an array meets all conditions, which are on its fields or
// on itself.
type elemMatch struct {
	wholeValue
	fields and
	value  and // with the element in field ""
}

func parseElemMatch(_ string, arg value.Value) (test, error) {
	if !value.IsDoc(arg) {
		return nil, code.Errorf(code.BadValue, "$elemMatch needs an Object")
	}
	name, _ := value.First(arg.Data)
	if isOperators(arg) && name != "$and" && name != "$or" && name != "$nor" && name != "$expr" {
		list, err := parseCondition("", arg)
		return elemMatch{value: list}, err
	}
	list, err := parse(arg.Data)
	return elemMatch{fields: list}, err
}

func (t elemMatch) holds(v value.Value) (int, bool) {
	if !value.IsArray(v) {
		return -1, false
	}
	for i, item := range value.Items(v.Data) {
		if t.value != nil {
			var b value.Builder
			b.Add("", item)
			if t.value.match(b.Doc(), &Match{}) {
				return i, true
			}
			continue
		}
		if value.Inner(item) != nil && t.fields.match(item.Data, &Match{}) {
			return i, true
		}
	}
	return -1, false
}
