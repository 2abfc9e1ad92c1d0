package query

import (
	"strings"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/expr"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Projection says which fields of a document are returned, and what is computed in addition.
type Projection struct {
	root *shape
	// rest is whether fields that are not mentioned stay.
	rest bool
	// inPlace is whether a computed field takes the place of an old one, or comes last.
	inPlace bool
}

// shape is what becomes of a field: it is kept, dropped, computed or changed, or it is a document
// whose fields have shapes.
type shape struct {
	keep     bool
	computed expr.Expr
	change   func(v value.Value, m Match) value.Value

	names  []string
	fields map[string]*shape
}

// leaf reports whether the shape is that of a field as a whole.
func (s *shape) leaf() bool { return s.fields == nil }

// ParseProjection reads the projection of find or $project.
func ParseProjection(d value.Doc) (*Projection, error) {
	p := &Projection{root: newShape()}
	include, decided := false, false
	decide := func(path string, in bool) error {
		if decided && in != include && path != "_id" {
			if in {
				return code.Errorf(31253, "Cannot do inclusion on field %s in exclusion projection", path)
			}
			return code.Errorf(31254, "Cannot do exclusion on field %s in inclusion projection", path)
		}
		if path != "_id" {
			include, decided = in, true
		}
		return nil
	}
	if err := p.add(p.root, "", d, decide); err != nil {
		return nil, err
	}
	id := p.root.fields["_id"]
	if !decided {
		include = id != nil && id.keep
	}
	p.rest = !include
	if include && id == nil {
		p.root.set("_id", &shape{keep: true})
	}
	if include && id != nil && id.leaf() && !id.keep && id.computed == nil {
		p.root.remove("_id")
	}
	return p, nil
}

// ParseAddFields reads the fields of $addFields.
func ParseAddFields(d value.Doc) (*Projection, error) {
	p := &Projection{root: newShape(), rest: true, inPlace: true}
	for path, v := range value.Fields(d) {
		e, err := expr.Parse(v)
		if err != nil {
			return nil, err
		}
		if err := p.root.place(path, &shape{computed: e}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Exclude returns a projection without some paths.
func Exclude(paths []string) (*Projection, error) {
	p := &Projection{root: newShape(), rest: true}
	for _, path := range paths {
		if err := p.root.place(path, &shape{}); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newShape() *shape { return &shape{fields: map[string]*shape{}} }

// add reads the specification of the fields below a path.
func (p *Projection) add(root *shape, prefix string, d value.Doc, decide func(string, bool) error) error {
	for name, v := range value.Fields(d) {
		path := prefix + name
		if isPlain(v) {
			if err := p.add(root, path+".", v.Data, decide); err != nil {
				return err
			}
			continue
		}
		path, s, in, err := parseShape(path, v)
		if err == nil && in != nil {
			err = decide(path, *in)
		}
		if err == nil {
			err = root.place(path, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isPlain reports whether a value is a document of fields.
func isPlain(v value.Value) bool {
	if !value.IsDoc(v) {
		return false
	}
	name, _ := value.First(v.Data)
	return name != "" && !strings.HasPrefix(name, "$")
}

// parseShape reads what becomes of one path. It tells whether that includes or excludes it, unless
// it could be either.
func parseShape(path string, v value.Value) (string, *shape, *bool, error) {
	yes, no := true, false
	if value.IsNumber(v) || v.Type == value.Bool(true).Type {
		keep := value.Truthy(v)
		if array, ok := strings.CutSuffix(path, ".$"); ok && keep {
			return array, &shape{change: positional}, &yes, nil
		}
		return path, &shape{keep: keep}, &keep, nil
	}
	if value.IsDoc(v) {
		switch name, arg := value.First(v.Data); name {
		case "$slice":
			if s, err := parseSlice(arg); s != nil || err != nil {
				return path, s, nil, err
			}
		case "$elemMatch":
			t, err := parseElemMatch(name, arg)
			return path, &shape{change: firstElement(t)}, &yes, err
		case "":
			return path, nil, &no, code.Errorf(51270,
				"An empty sub-projection is not a valid value. Found empty object at path")
		}
	}
	e, err := expr.Parse(v)
	return path, &shape{computed: e}, &yes, err
}

// positional keeps the element of an array that the filter matched.
func positional(v value.Value, m Match) value.Value {
	if !value.IsArray(v) || m.Index < 0 {
		return v
	}
	return value.Array(value.Item(v.Data, m.Index))
}

func firstElement(t test) func(value.Value, Match) value.Value {
	return func(v value.Value, _ Match) value.Value {
		if i, ok := t.holds(v); ok {
			return value.Array(value.Item(v.Data, i))
		}
		return value.Value{}
	}
}

// parseSlice reads $slice: n, or [skip, n]. Anything else is the expression of that name.
func parseSlice(arg value.Value) (*shape, error) {
	var skip *int64
	n, ok := value.Int(arg)
	if value.IsArray(arg) && value.Count(arg.Data) == 2 {
		from, ok1 := value.Int(value.Item(arg.Data, 0))
		count, ok2 := value.Int(value.Item(arg.Data, 1))
		if ok = ok1 && ok2; ok && count <= 0 {
			return nil, code.Errorf(28724, "$slice limit must be positive")
		}
		skip, n = &from, count
	}
	if !ok {
		return nil, nil
	}
	return &shape{change: func(v value.Value, _ Match) value.Value {
		if !value.IsArray(v) {
			return v
		}
		return value.Array(expr.Slice(value.List(v.Data), skip, n)...)
	}}, nil
}

func (s *shape) set(name string, f *shape) {
	if s.fields[name] == nil {
		s.names = append(s.names, name)
	}
	s.fields[name] = f
}

func (s *shape) remove(name string) {
	delete(s.fields, name)
	for i, n := range s.names {
		if n == name {
			s.names = append(s.names[:i], s.names[i+1:]...)
			return
		}
	}
}

// place puts a leaf at a path.
func (s *shape) place(path string, f *shape) error {
	name, rest, more := strings.Cut(path, ".")
	if name == "" {
		return code.Errorf(15998, "FieldPath field names may not be empty strings.")
	}
	old := s.fields[name]
	if !more {
		if old != nil {
			return code.Errorf(31250, "Path collision at %s", path)
		}
		s.set(name, f)
		return nil
	}
	if old == nil {
		old = newShape()
		s.set(name, old)
	} else if old.leaf() {
		return code.Errorf(31249, "Path collision at %s remaining portion %s", path, rest)
	}
	return old.place(rest, f)
}

// Apply returns the projected document. The match is what the filter found out about the document.
func (p *Projection) Apply(d value.Doc, m Match, vars map[string]value.Value) (value.Doc, error) {
	if p == nil {
		return d, nil
	}
	return p.doc(p.root, d, m, func(e expr.Expr) (value.Value, error) { return expr.Eval(e, d, vars) })
}

type evaluator func(expr.Expr) (value.Value, error)

func (p *Projection) doc(s *shape, d value.Doc, m Match, eval evaluator) (value.Doc, error) {
	var b value.Builder
	done := map[string]bool{}
	for name, v := range value.Fields(d) {
		f := s.fields[name]
		switch {
		case f == nil:
			if p.rest {
				b.Add(name, v)
			}
			continue
		case f.computed != nil && !p.inPlace:
			continue
		case f.computed != nil:
			var err error
			if v, err = eval(f.computed); err != nil {
				return nil, err
			}
		case f.change != nil:
			v = f.change(v, m)
		case !f.leaf():
			var err error
			if v, err = p.value(f, v, m, eval); err != nil {
				return nil, err
			}
		case !f.keep:
			continue
		}
		done[name] = true
		b.Add(name, v)
	}
	for _, name := range s.names {
		f := s.fields[name]
		if done[name] || !f.computes() {
			continue
		}
		v, err := p.fresh(f, m, eval)
		if err != nil {
			return nil, err
		}
		b.Add(name, v)
	}
	return b.Doc(), nil
}

// fresh computes a field that the document does not have.
func (p *Projection) fresh(f *shape, m Match, eval evaluator) (value.Value, error) {
	if f.computed != nil {
		return eval(f.computed)
	}
	d, err := p.doc(f, nil, m, eval)
	return value.OfDoc(d), err
}

// computes reports whether the field, or one below it, is computed.
func (s *shape) computes() bool {
	if s.computed != nil {
		return true
	}
	for _, f := range s.fields {
		if f.computes() {
			return true
		}
	}
	return false
}

// value applies the shape of a document to a value, or to each document of an array.
func (p *Projection) value(s *shape, v value.Value, m Match, eval evaluator) (value.Value, error) {
	switch {
	case value.IsDoc(v):
		d, err := p.doc(s, v.Data, m, eval)
		return value.OfDoc(d), err
	case value.IsArray(v):
		var list []value.Value
		for _, item := range value.Items(v.Data) {
			got, err := p.value(s, item, m, eval)
			if err != nil {
				return got, err
			}
			if value.Exists(got) {
				list = append(list, got)
			}
		}
		return value.Array(list...), nil
	case s.computes():
		return p.fresh(s, m, eval)
	case p.rest:
		return v, nil
	}
	return value.Value{}, nil
}
