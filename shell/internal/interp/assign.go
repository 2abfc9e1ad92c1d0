package interp

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// assign performs one assignment: name=value, name+=value, name[i]=value or name=(...). kind is what
// declare made of the variable, if it did.
func (s *Shell) assign(ctx context.Context, as *syntax.Assign, kind expand.ValueKind) (name string, err error) {
	name = as.Name.Value
	v := s.vars[name]
	if target, ref := v.Resolve(environ{s}); target != "" && kind != expand.NameRef {
		name, v = target, ref
	}
	switch {
	case as.Array != nil:
		v, err = s.arrayValue(ctx, v, as, kind)
	case as.Index != nil:
		v, err = s.element(ctx, v, as)
	default:
		v, err = s.scalarValue(ctx, v, as, kind)
	}
	if err != nil {
		return name, err
	}
	return name, s.setVar(name, v)
}

func (s *Shell) scalarValue(
	ctx context.Context, v expand.Variable, as *syntax.Assign, kind expand.ValueKind,
) (expand.Variable, error) {
	value := ""
	if as.Value != nil {
		var err error
		if value, err = s.literal(ctx, as.Value); err != nil {
			return v, err
		}
	}
	switch {
	case kind == expand.NameRef:
		v.Kind, v.Str = expand.NameRef, value
	case v.Kind == expand.Indexed:
		old := ""
		if as.Append {
			old = elementAt(v, 0)
		}
		v = setElement(v, 0, old+value)
	case v.Kind == expand.Associative:
		v.Map = maps.Clone(v.Map)
		v.Map["0"] = value
	case as.Append:
		v.Kind, v.Str = expand.String, v.Str+value
	default:
		v.Kind, v.Str = expand.String, value
	}
	v.Set = true
	return v, nil
}

// element is name[index]=value.
func (s *Shell) element(ctx context.Context, v expand.Variable, as *syntax.Assign) (expand.Variable, error) {
	value := ""
	if as.Value != nil {
		var err error
		if value, err = s.literal(ctx, as.Value); err != nil {
			return v, err
		}
	}
	if v.Kind == expand.Associative {
		key, err := s.key(ctx, as.Index)
		if err != nil {
			return v, err
		}
		v.Map = maps.Clone(v.Map)
		if v.Map == nil {
			v.Map = map[string]string{}
		}
		if as.Append {
			value = v.Map[key] + value
		}
		v.Map[key], v.Set = value, true
		return v, nil
	}
	i, err := expand.Arithm(s.config(ctx), as.Index)
	if err != nil {
		return v, err
	}
	if v.Kind == expand.String && v.Set {
		v.List = []string{v.Str}
	}
	v.Kind = expand.Indexed
	if i < 0 {
		i += lastIndex(v) + 1
	}
	if i < 0 {
		return v, fmt.Errorf("%s: bad array subscript", as.Name.Value)
	}
	if as.Append {
		value = elementAt(v, i) + value
	}
	return setElement(v, i, value), nil
}

// key is the index of an associative array.
func (s *Shell) key(ctx context.Context, index syntax.ArithmExpr) (string, error) {
	if w, ok := index.(*syntax.Word); ok {
		return s.literal(ctx, w)
	}
	n, err := expand.Arithm(s.config(ctx), index)
	return fmt.Sprint(n), err
}

// arrayValue is name=(...).
func (s *Shell) arrayValue(
	ctx context.Context, v expand.Variable, as *syntax.Assign, kind expand.ValueKind,
) (expand.Variable, error) {
	if kind == expand.Associative || kind == expand.Unknown && v.Kind == expand.Associative {
		return s.associative(ctx, v, as)
	}
	result := expand.Variable{Set: true, Kind: expand.Indexed, List: []string{}, Exported: v.Exported, Local: v.Local}
	if as.Append {
		switch {
		case v.Kind == expand.Indexed:
			result.List, result.Indexes = slices.Clone(v.List), slices.Clone(v.Indexes)
		case v.Set:
			result.List = []string{v.Str}
		}
	}
	next := lastIndex(result) + 1
	for _, e := range as.Array.Elems {
		if e.Index != nil {
			i, err := expand.Arithm(s.config(ctx), e.Index)
			if err != nil {
				return v, err
			}
			value, err := s.literal(ctx, e.Value)
			if err != nil {
				return v, err
			}
			if i < 0 {
				return v, fmt.Errorf("%s: bad array subscript", as.Name.Value)
			}
			result, next = setElement(result, i, value), i+1
			continue
		}
		fields, err := s.fields(ctx, e.Value)
		if err != nil {
			return v, err
		}
		for _, f := range fields {
			result = setElement(result, next, f)
			next++
		}
	}
	return result, nil
}

func (s *Shell) associative(ctx context.Context, v expand.Variable, as *syntax.Assign) (expand.Variable, error) {
	m := map[string]string{}
	if as.Append {
		maps.Copy(m, v.Map)
	}
	for _, e := range as.Array.Elems {
		if e.Index == nil {
			return v, fmt.Errorf("%s: must use subscript when assigning associative array", as.Name.Value)
		}
		key, err := s.key(ctx, e.Index)
		if err != nil {
			return v, err
		}
		if m[key], err = s.literal(ctx, e.Value); err != nil {
			return v, err
		}
	}
	return expand.Variable{Set: true, Kind: expand.Associative, Map: m, Exported: v.Exported}, nil
}

// lastIndex is the highest index of an indexed array; -1 if it is empty.
func lastIndex(v expand.Variable) int {
	if n := len(v.Indexes); n > 0 {
		return v.Indexes[n-1]
	}
	return len(v.List) - 1
}

func elementAt(v expand.Variable, i int) string {
	if v.Indexes != nil {
		at, ok := slices.BinarySearch(v.Indexes, i)
		if !ok {
			return ""
		}
		return v.List[at]
	}
	if i < len(v.List) {
		return v.List[i]
	}
	return ""
}

// setElement returns a copy of an indexed array with one element set. A hole makes it sparse.
func setElement(v expand.Variable, i int, value string) expand.Variable {
	v.Set, v.Kind = true, expand.Indexed
	v.List = slices.Clone(v.List)
	if v.Indexes == nil && i > len(v.List) {
		v.Indexes = make([]int, len(v.List))
		for k := range v.Indexes {
			v.Indexes[k] = k
		}
	}
	if v.Indexes == nil {
		if i == len(v.List) {
			v.List = append(v.List, value)
		} else {
			v.List[i] = value
		}
		return v
	}
	v.Indexes = slices.Clone(v.Indexes)
	at, ok := slices.BinarySearch(v.Indexes, i)
	if ok {
		v.List[at] = value
		return v
	}
	v.Indexes = slices.Insert(v.Indexes, at, i)
	v.List = slices.Insert(v.List, at, value)
	return v
}

// removeElement returns a copy of an indexed array without one element.
func removeElement(v expand.Variable, i int) expand.Variable {
	if v.Indexes == nil {
		v.Indexes = make([]int, len(v.List))
		for k := range v.Indexes {
			v.Indexes[k] = k
		}
	}
	at, ok := slices.BinarySearch(v.Indexes, i)
	if !ok {
		return v
	}
	v.Indexes = slices.Delete(slices.Clone(v.Indexes), at, at+1)
	v.List = slices.Delete(slices.Clone(v.List), at, at+1)
	return v
}
