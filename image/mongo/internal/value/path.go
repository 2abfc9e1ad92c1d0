package value

import "strings"

// Leaf is what a path leads to. The value may be missing.
type Leaf struct {
	Value Value
	// Index is where in the outermost array of the path the value was found, or -1 if there is no array.
	Index int
	// Element is set if the path leads to an array and the value is an element of it.
	Element bool
}

// Walk visits all that a dotted path leads to in a document, until visit returns true. Where the path meets an
// array, it goes on in each document of the array, and in the element whose number is the next component of the
// path. If it ends at an array, the elements are visited before the array itself.
func Walk(d Doc, path string, visit func(Leaf) bool) bool {
	return walk(d, path, -1, true, visit)
}

// WalkWhole is like Walk, but does not visit the elements of an array at the end of the path.
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

// At returns the value at a path that goes through documents, and through arrays by index only.
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
