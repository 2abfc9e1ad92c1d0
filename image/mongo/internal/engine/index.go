package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/btree"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// IDIndex is the name of the index every collection has.
const IDIndex = "_id_"

// Index finds documents by the values of some paths. The order of its entries ignores the direction
// of the paths.
type Index struct {
	Name        string
	Spec        value.Doc // as listIndexes shows it
	Unique      bool
	Sparse      bool
	ExpireAfter *int64 // seconds

	paths    []string
	partial  *query.Filter
	multikey bool
	entries  *btree.BTreeG[entry]
}

// entry is a key of a document.
type entry struct {
	key []value.Value
	id  int64
}

func compareKeys(a, b []value.Value) int {
	for i := range min(len(a), len(b)) {
		if c := value.Compare(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func lessEntry(a, b entry) bool {
	return cmp.Or(compareKeys(a.key, b.key), cmp.Compare(a.id, b.id)) < 0
}

// newIndex reads the specification of an index.
func newIndex(spec value.Doc) (*Index, error) {
	x := &Index{Spec: spec, entries: btree.NewG(32, lessEntry)}
	x.Name, _ = value.Str(value.Get(spec, "name"))
	x.Unique = x.Name == IDIndex || value.Truthy(value.Get(spec, "unique"))
	x.Sparse = value.Truthy(value.Get(spec, "sparse"))
	for path, v := range value.Fields(value.Inner(value.Get(spec, "key"))) {
		if err := checkKey(path, v); err != nil {
			return nil, err
		}
		x.paths = append(x.paths, path)
	}
	if len(x.paths) == 0 {
		return nil, code.Errorf(code.CannotCreateIndex, "Index keys cannot be an empty object.")
	}
	if p := value.Get(spec, "partialFilterExpression"); value.Exists(p) {
		f, err := query.Parse(value.Inner(p))
		if err != nil {
			return nil, err
		}
		x.partial = f
	}
	if v := value.Get(spec, "expireAfterSeconds"); value.Exists(v) {
		n, ok := value.Int(v)
		if !ok || n < 0 {
			return nil, code.Errorf(code.CannotCreateIndex,
				"TTL index 'expireAfterSeconds' option must be numeric, but received a type of '%s'. Index spec: %s",
				value.TypeName(v), value.Text(spec))
		}
		x.ExpireAfter = &n
	}
	return x, nil
}

func checkKey(path string, v value.Value) error {
	if s, ok := value.Str(v); ok {
		if s == "hashed" {
			return nil // Equality is all it is used for, which any index can do.
		}
		return code.Errorf(code.CannotCreateIndex, "Unknown index plugin '%s'", s)
	}
	f, ok := value.Float(v)
	switch {
	case !ok:
		return code.Errorf(code.CannotCreateIndex,
			"Values in v:2 index key pattern cannot be of type %s. Only numbers > 0, numbers < 0, and "+
				"strings are allowed.", value.TypeName(v))
	case f == 0:
		return code.Errorf(code.CannotCreateIndex, "Values in the index key pattern cannot be 0.")
	case path == "" || strings.HasPrefix(path, "$") || strings.Contains(path, ".."):
		return code.Errorf(code.CannotCreateIndex, "Index keys cannot contain an empty field or start with '$': %s",
			path)
	}
	return nil
}

// Key is the key pattern.
func (x *Index) Key() value.Doc { return value.Inner(value.Get(x.Spec, "key")) }

// keys returns the keys of a document: more than one if it has an array on a path.
func (x *Index) keys(d value.Doc) (keys [][]value.Value, multi bool, err error) {
	if x.partial != nil && !x.partial.Match(d) {
		return nil, false, nil
	}
	keys = [][]value.Value{nil}
	array, present := "", false
	for _, path := range x.paths {
		values, exists := keyValues(d, path)
		present = present || exists
		if len(values) > 1 {
			top, _, _ := strings.Cut(path, ".")
			if array != "" && array != top {
				return nil, false, code.Errorf(171, "cannot index parallel arrays [%s] [%s]", path, array)
			}
			array, multi = top, true
		}
		var longer [][]value.Value
		for _, k := range keys {
			for _, v := range values {
				longer = append(longer, append(slices.Clip(k), v))
			}
		}
		keys = longer
	}
	if x.Sparse && !present {
		return nil, false, nil
	}
	if multi {
		slices.SortFunc(keys, compareKeys)
		keys = slices.CompactFunc(keys, func(a, b []value.Value) bool { return compareKeys(a, b) == 0 })
	}
	return keys, multi, nil
}

// keyValues returns what a document is indexed by under a path: the elements of an array instead of
// the array, null for nothing, undefined for an empty array.
func keyValues(d value.Doc, path string) (values []value.Value, exists bool) {
	value.Walk(d, path, func(l value.Leaf) bool {
		v := l.Value
		switch {
		case value.Missing(v):
			values = append(values, value.Null())
			return false
		case value.IsArray(v) && !l.Element:
			exists = true
			if value.Count(v.Data) == 0 {
				values = append(values, value.Of(bson.Undefined{}))
			}
			return false
		}
		exists = true
		values = append(values, v)
		return false
	})
	if len(values) == 0 {
		values = []value.Value{value.Null()}
	}
	return values, exists
}

// holder returns a document other than id that has the key.
func (x *Index) holder(key []value.Value, id int64) (int64, bool) {
	var found int64
	ok := false
	x.entries.AscendGreaterOrEqual(entry{key: key, id: -1}, func(e entry) bool {
		if compareKeys(e.key, key) != 0 {
			return false
		}
		found, ok = e.id, e.id != id
		return !ok
	})
	return found, ok
}

// check refuses a document one of whose keys belongs to another.
func (x *Index) check(c *Collection, keys [][]value.Value, id int64) error {
	if !x.Unique {
		return nil
	}
	for _, k := range keys {
		if _, taken := x.holder(k, id); taken {
			return x.duplicate(c.Namespace(), k)
		}
	}
	return nil
}

func (x *Index) duplicate(ns string, key []value.Value) error {
	var b value.Builder
	for i, p := range x.paths {
		b.Add(p, key[i])
	}
	return &DuplicateKeyError{Namespace: ns, Index: x, Value: b.Doc()}
}

// DuplicateKeyError says which key of which index is taken.
type DuplicateKeyError struct {
	Namespace string
	Index     *Index
	Value     value.Doc
}

func (e *DuplicateKeyError) Error() string {
	return "E11000 duplicate key error collection: " + e.Namespace + " index: " + e.Index.Name + " dup key: " +
		value.Text(e.Value)
}

// Unwrap lets the code of the error be found.
func (e *DuplicateKeyError) Unwrap() error {
	return &code.Error{Code: code.DuplicateKey, Msg: e.Error()}
}

func (x *Index) add(keys [][]value.Value, multi bool, id int64) {
	x.multikey = x.multikey || multi
	for _, k := range keys {
		x.entries.ReplaceOrInsert(entry{k, id})
	}
}

func (x *Index) remove(d value.Doc, id int64) {
	keys, _, err := x.keys(d)
	if err != nil {
		return
	}
	for _, k := range keys {
		x.entries.Delete(entry{k, id})
	}
}
