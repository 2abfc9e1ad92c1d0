// Package update changes documents: modifiers such as $set, and replacement.
package update

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Update is a parsed update. It is safe for concurrent use.
type Update struct {
	replacement value.Doc // unless there are modifications
	mods        []modification
	filters     map[string]*query.Filter
}

type modification struct {
	op    string
	path  string
	arg   value.Value
	apply func(c *context, path []string, arg value.Value) error
}

// context is one document being updated.
type context struct {
	root    *tree
	id      value.Value
	match   query.Match
	filters map[string]*query.Filter
	insert  bool // it is an upsert's new document
	now     time.Time
}

// modifiers by name.
var modifiers = map[string]func(c *context, path []string, arg value.Value) error{
	"$set": set, "$setOnInsert": setOnInsert, "$unset": unset, "$inc": inc, "$mul": mul,
	"$min": least, "$max": greatest, "$push": push, "$addToSet": addToSet, "$pull": pull,
	"$pullAll": pullAll, "$pop": pop, "$rename": rename, "$currentDate": currentDate,
}

// Parse reads an update and its array filters.
func Parse(d value.Doc, arrayFilters []value.Value) (*Update, error) {
	u := &Update{filters: map[string]*query.Filter{}}
	if name, _ := value.First(d); !strings.HasPrefix(name, "$") {
		u.replacement = d
		return u, checkNames(d)
	}
	for op, arg := range value.Fields(d) {
		if err := u.parseModifier(op, arg); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(u.mods, func(a, b modification) int { return strings.Compare(a.path, b.path) })
	if err := u.checkConflicts(); err != nil {
		return nil, err
	}
	for _, f := range arrayFilters {
		name, _ := value.First(value.Inner(f))
		id, _, _ := strings.Cut(name, ".")
		if id == "" || u.filters[id] != nil {
			return nil, code.Errorf(code.FailedToParse,
				"Found multiple array filters with the same top-level field name %s", id)
		}
		filter, err := query.Parse(f.Data)
		if err != nil {
			return nil, err
		}
		u.filters[id] = filter
	}
	return u, nil
}

func (u *Update) parseModifier(op string, arg value.Value) error {
	apply, ok := modifiers[op]
	switch {
	case !ok:
		return code.Errorf(code.FailedToParse,
			"Unknown modifier: %s. Expected a valid update modifier or pipeline-style update specified as an array", op)
	case !value.IsDoc(arg):
		return code.Errorf(code.FailedToParse,
			"Modifiers operate on fields but we found type %s instead. "+
				"For example: {$mod: {<field>: ...}} not {%s: %s}", value.TypeName(arg), op, value.ValueText(arg))
	case value.Count(arg.Data) == 0:
		return code.Errorf(code.FailedToParse, "'%s' is empty. You must specify a field like so: {%s: {<field>: ...}}",
			op, op)
	}
	for path, v := range value.Fields(arg.Data) {
		if err := checkPath(path); err != nil {
			return err
		}
		if err := checkArg(op, path, v); err != nil {
			return err
		}
		u.mods = append(u.mods, modification{op, path, v, apply})
	}
	return nil
}

func checkPath(path string) error {
	if path == "" {
		return code.Errorf(code.EmptyFieldName, "An empty update path is not valid.")
	}
	for i, name := range strings.Split(path, ".") {
		switch {
		case name == "":
			return code.Errorf(code.EmptyFieldName,
				"The update path '%s' contains an empty field name, which is not allowed.", path)
		case strings.HasPrefix(name, "$") && (i == 0 || name != "$" && !strings.HasPrefix(name, "$[")):
			return code.Errorf(code.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", name, path)
		}
	}
	return nil
}

// checkNames refuses names at the top level of a replacement that look like operators.
func checkNames(d value.Doc) error {
	for name := range value.Fields(d) {
		if strings.HasPrefix(name, "$") {
			return code.Errorf(code.DollarPrefixedFieldName,
				"The dollar ($) prefixed field '%s' in '%s' is not valid for storage.", name, name)
		}
	}
	return nil
}

// checkConflicts refuses two modifications of which one is of the other's field or below it. A field
// that is renamed is modified under both names.
func (u *Update) checkConflicts() error {
	var paths []string
	for _, m := range u.mods {
		paths = append(paths, m.path)
		if to, ok := value.Str(m.arg); m.op == "$rename" && ok {
			paths = append(paths, to)
		}
	}
	for i, a := range paths {
		for _, b := range paths[i+1:] {
			if a == b || strings.HasPrefix(b, a+".") || strings.HasPrefix(a, b+".") {
				return code.Errorf(code.ConflictingUpdateOperators,
					"Updating the path '%s' would create a conflict at '%s'", b, min(a, b))
			}
		}
	}
	return nil
}

// IsReplacement reports whether the update replaces the document.
func (u *Update) IsReplacement() bool { return u.mods == nil }

// Apply returns the updated document, which is d itself if nothing changes.
func (u *Update) Apply(d value.Doc, m query.Match, now time.Time) (value.Doc, error) {
	id := value.Get(d, "_id")
	if u.IsReplacement() {
		return u.replace(d, id)
	}
	c := &context{root: newTree(value.OfDoc(d)), id: id, match: m, filters: u.filters, now: now}
	if err := u.run(c); err != nil {
		return nil, err
	}
	updated := value.Doc(c.root.value().Data)
	if got := value.Get(updated, "_id"); value.Exists(id) && (value.Missing(got) || !value.Equal(got, id)) {
		return nil, code.Errorf(code.ImmutableField,
			"Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	if bytes.Equal(updated, d) {
		return d, nil
	}
	return updated, checkSize(updated)
}

func checkSize(d value.Doc) error {
	if len(d) > value.MaxSize {
		return code.Errorf(17419, "Resulting document after update is larger than %d", value.MaxSize)
	}
	return nil
}

func (u *Update) replace(old value.Doc, id value.Value) (value.Doc, error) {
	own := value.Get(u.replacement, "_id")
	if value.Exists(own) && value.Exists(id) && !value.Equal(own, id) {
		return nil, code.Errorf(code.ImmutableField,
			"After applying the update, the (immutable) field '_id' was found to have been altered to _id: %s",
			value.ValueText(own))
	}
	updated := WithID(u.replacement, id)
	if bytes.Equal(updated, old) {
		return old, nil
	}
	return updated, checkSize(updated)
}

// WithID returns a document with _id as its first field.
func WithID(d value.Doc, id value.Value) value.Doc {
	if name, own := value.First(d); name == "_id" && (value.Missing(id) || value.Equal(own, id)) {
		return d
	}
	var b value.Builder
	if own := value.Get(d, "_id"); value.Missing(id) {
		id = own
	}
	b.Add("_id", id)
	for name, v := range value.Fields(d) {
		if name != "_id" {
			b.Add(name, v)
		}
	}
	return b.Doc()
}

func (u *Update) run(c *context) error {
	for _, m := range u.mods {
		paths, err := c.paths(m.path)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := m.apply(c, path, m.arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// Insert returns the document an upsert inserts when nothing matches the filter.
func (u *Update) Insert(f *query.Filter, now time.Time) (value.Doc, error) {
	c := &context{
		root: newTree(value.OfDoc(value.Make(nil))), match: query.Match{Index: -1}, filters: u.filters,
		insert: true, now: now,
	}
	if u.IsReplacement() {
		c.root.assign(value.OfDoc(u.replacement))
		if value.Exists(value.Get(u.replacement, "_id")) {
			return WithID(u.replacement, value.Value{}), nil
		}
	}
	var err error
	f.Equalities(func(path string, v value.Value) {
		if err != nil || u.IsReplacement() && path != "_id" {
			return
		}
		var t *tree
		if t, err = c.root.reach(strings.Split(path, ".")); err == nil {
			t.assign(v)
		}
	})
	if err == nil {
		err = u.run(c)
	}
	if err != nil {
		return nil, err
	}
	id := newTree(c.root.value()).find([]string{"_id"})
	if id == nil {
		id = newTree(value.Of(bson.NewObjectID()))
	}
	d := WithID(c.root.value().Data, id.value())
	return d, checkSize(d)
}
