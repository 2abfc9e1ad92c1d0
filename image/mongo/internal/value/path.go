package value

import "strings"

// Leaf is what a path leads to. The value may be missing.
type Leaf struct {
	Value Value
	// Index is that of the outermost array's element it was found in or under, or -1.
	Index int
	// Element is set for an element of an array that the path itself leads to.
	Element bool
}

// Walk visits all that a dotted path leads to in a document, until visit returns true. A path goes
// on in each document of an array on its way, and in the element its next component numbers. The
// elements of an array at its end are visited before the array itself.
func Walk(d Doc, path string, visit func(Leaf) bool) bool {
	return walk(d, path, -1, true, visit)
}

// WalkWhole is Walk that does not visit the elements of an array at the path's end.
func WalkWhole(d Doc, path string, visit func(Leaf) bool) bool {
	return walk(d, path, -1, false, visit)
}

func walk(d Doc, path string, index int, elements bool, visit func(Leaf) bool) bool {
	name, rest, more := strings.Cut(path, ".")
	v := Get(d, name)
	if !more {
		return visitEnd(v, index, elements, visit)
	}
	switch {
	case IsDoc(v):
		return walk(v.Data, rest, index, elements, visit)
	case IsArray(v):
		return walkArray(v.Data, rest, index, elements, visit)
	}
	return visit(Leaf{Index: index})
}

func visitEnd(v Value, index int, elements bool, visit func(Leaf) bool) bool {
	if elements && IsArray(v) {
		for i, item := range Items(v.Data) {
			if visit(Leaf{Value: item, Index: outer(index, i), Element: true}) {
				return true
			}
		}
	}
	return visit(Leaf{Value: v, Index: index})
}

// walkArray goes on with a path in the elements of an array.
func walkArray(array []byte, path string, index int, elements bool, visit func(Leaf) bool) bool {
	name, rest, more := strings.Cut(path, ".")
	if n, ok := Index(name); ok {
		if v := Item(array, n); Exists(v) {
			at := outer(index, n)
			switch {
			case !more:
				if visitEnd(v, at, elements, visit) {
					return true
				}
			case IsDoc(v):
				if walk(v.Data, rest, at, elements, visit) {
					return true
				}
			case IsArray(v):
				if walkArray(v.Data, rest, at, elements, visit) {
					return true
				}
			}
		}
	}
	for i, item := range Items(array) {
		if IsDoc(item) && walk(item.Data, path, outer(index, i), elements, visit) {
			return true
		}
	}
	return false
}

func outer(index, i int) int {
	if index >= 0 {
		return index
	}
	return i
}

// At returns what a path leads to through documents alone, and the indices of arrays.
func At(d Doc, path string) Value {
	v := OfDoc(d)
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		switch {
		case IsDoc(v):
			v = Get(v.Data, name)
		case IsArray(v):
			n, ok := Index(name)
			if !ok {
				return Value{}
			}
			v = Item(v.Data, n)
		default:
			return Value{}
		}
	}
	return v
}
