package update

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// tree is a value that can be changed. It is taken apart only where it is.
type tree struct {
	raw    value.Value // unless it is open
	open   bool
	array  bool
	names  []string // of a document
	fields []*tree
}

// maxPadding is how many elements an update may append to an array by naming an index.
const maxPadding = 1_500_000

func newTree(v value.Value) *tree { return &tree{raw: v} }

// expand takes a document or array apart. It reports false for other values.
func (t *tree) expand() bool {
	if t.open {
		return true
	}
	inner := value.Inner(t.raw)
	if inner == nil {
		return false
	}
	t.open, t.array = true, value.IsArray(t.raw)
	for name, v := range value.Fields(inner) {
		if !t.array {
			t.names = append(t.names, name)
		}
		t.fields = append(t.fields, newTree(v))
	}
	return true
}

// value encodes the tree.
func (t *tree) value() value.Value {
	if !t.open {
		return t.raw
	}
	list := make([]value.Value, len(t.fields))
	for i, f := range t.fields {
		list[i] = f.value()
	}
	if t.array {
		return value.Array(list...)
	}
	start, dst := bsoncore.AppendDocumentStart(nil)
	for i, v := range list {
		if value.Missing(v) {
			continue // It was reached, but not assigned.
		}
		dst = bsoncore.AppendValueElement(dst, t.names[i], v)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start)
	return value.OfDoc(dst)
}

// assign replaces the whole value.
func (t *tree) assign(v value.Value) { *t = tree{raw: v} }

// index returns where the field of that name is, or -1.
func (t *tree) index(name string) int {
	if t.array {
		if n, ok := value.Index(name); ok && n < len(t.fields) {
			return n
		}
		return -1
	}
	for i, n := range t.names {
		if n == name {
			return i
		}
	}
	return -1
}

// find returns what a path leads to, or nil.
func (t *tree) find(path []string) *tree {
	for _, name := range path {
		if !t.expand() {
			return nil
		}
		i := t.index(name)
		if i < 0 {
			return nil
		}
		t = t.fields[i]
	}
	return t
}

// reach returns what a path leads to, and makes it if it is not there. What it makes is missing
// until it is assigned.
func (t *tree) reach(path []string) (*tree, error) {
	for at, name := range path {
		if !t.expand() {
			if value.Exists(t.raw) {
				return nil, code.Errorf(code.PathNotViable, "Cannot create field '%s' in element {%s: %s}", name,
					last(path[:at]), value.ValueText(t.raw))
			}
			t.assign(value.OfDoc(value.Make(nil)))
			t.expand()
		}
		i := t.index(name)
		if i < 0 {
			var err error
			if i, err = t.grow(name, last(path[:at])); err != nil {
				return nil, err
			}
		}
		t = t.fields[i]
	}
	return t, nil
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// grow adds a field, or the elements up to an index.
func (t *tree) grow(name, own string) (int, error) {
	if !t.array {
		t.names = append(t.names, name)
		t.fields = append(t.fields, newTree(value.Value{}))
		return len(t.fields) - 1, nil
	}
	n, ok := value.Index(name)
	if !ok {
		return 0, code.Errorf(code.PathNotViable, "Cannot create field '%s' in element {%s: %s}", name, own,
			value.ValueText(t.value()))
	}
	if n-len(t.fields) > maxPadding {
		return 0, code.Errorf(code.BadValue, "can't backfill more than %d elements", maxPadding)
	}
	for len(t.fields) <= n {
		t.fields = append(t.fields, newTree(value.Null()))
	}
	t.fields[n].assign(value.Value{})
	return n, nil
}

// remove takes a field away. An element of an array becomes null.
func (t *tree) remove(path []string) {
	parent := t.find(path[:len(path)-1])
	if parent == nil || !parent.expand() {
		return
	}
	i := parent.index(last(path))
	switch {
	case i < 0:
	case parent.array:
		parent.fields[i].assign(value.Null())
	default:
		parent.names = append(parent.names[:i:i], parent.names[i+1:]...)
		parent.fields = append(parent.fields[:i:i], parent.fields[i+1:]...)
	}
}

// paths returns the concrete paths a path with positional operators stands for.
func (c *context) paths(path string) ([][]string, error) {
	return c.positions(c.root, nil, strings.Split(path, "."))
}

func (c *context) positions(t *tree, done, rest []string) ([][]string, error) {
	if len(rest) == 0 {
		return [][]string{done}, nil
	}
	name := rest[0]
	step := func(name string) ([][]string, error) {
		var inner *tree
		if t != nil {
			inner = t.find([]string{name})
		}
		return c.positions(inner, append(done[:len(done):len(done)], name), rest[1:])
	}
	if name == "$" {
		if c.match.Index < 0 {
			return nil, code.Errorf(code.BadValue,
				"The positional operator did not find the match needed from the query.")
		}
		return step(strconv.Itoa(c.match.Index))
	}
	id, ok := strings.CutPrefix(name, "$[")
	if !ok || !strings.HasSuffix(id, "]") {
		return step(name)
	}
	if t == nil || !t.expand() || !t.array {
		return nil, code.Errorf(code.BadValue,
			"The path '%s' must exist in the document in order to apply array updates.", strings.Join(done, "."))
	}
	id = strings.TrimSuffix(id, "]")
	filter, ok := c.filters[id]
	if id != "" && !ok {
		return nil, code.Errorf(code.BadValue, "No array filter found for identifier '%s' in path '%s'", id,
			strings.Join(append(done, rest...), "."))
	}
	var all [][]string
	for i, f := range t.fields {
		if id != "" {
			var b value.Builder
			b.Add(id, f.value())
			if !filter.Match(b.Doc()) {
				continue
			}
		}
		paths, err := step(strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		all = append(all, paths...)
	}
	return all, nil
}
