package query

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Order is a sort order: paths, the first of which counts most.
type Order []OrderKey

// OrderKey is one path of an order.
type OrderKey struct {
	Path       string
	Descending bool
}

// natural is the order documents were inserted in.
const natural = "$natural"

// ParseOrder reads a sort specification.
func ParseOrder(d value.Doc) (Order, error) {
	var order Order
	for path, v := range value.Fields(d) {
		if path == natural {
			if n, _ := value.Int(v); n < 0 {
				order = append(order, OrderKey{natural, true})
			}
			continue
		}
		if path == "" {
			return nil, code.Errorf(40352, "FieldPath cannot be constructed with empty string")
		}
		if value.IsDoc(v) {
			return nil, code.Errorf(17312, "$meta is the only expression supported by $sort right now")
		}
		n, ok := value.Int(v)
		if !ok || n != 1 && n != -1 {
			return nil, code.Errorf(15975, "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
		}
		order = append(order, OrderKey{path, n < 0})
	}
	return order, nil
}

// Key returns the values that a document is sorted by. An array counts as its least element, or as its greatest if
// the order descends.
func (o Order) Key(d value.Doc) []value.Value {
	key := make([]value.Value, len(o))
	for i, k := range o {
		key[i] = sortValue(d, k)
	}
	return key
}

func sortValue(d value.Doc, k OrderKey) value.Value {
	best, found, empty := value.Null(), false, false
	value.Walk(d, k.Path, func(l value.Leaf) bool {
		v := l.Value
		switch {
		case value.Missing(v):
			v = value.Null()
		case value.IsArray(v) && !l.Element:
			if value.Count(v.Data) > 0 {
				return false // Its elements were visited.
			}
			empty = true
			return false
		}
		if c := value.Compare(v, best); !found || c < 0 != k.Descending && c != 0 {
			best, found = v, true
		}
		return false
	})
	if empty && !found {
		return value.Of(bson.Undefined{}) // An empty array comes before null.
	}
	return best
}

// CompareKeys orders the keys of two documents.
func (o Order) CompareKeys(a, b []value.Value) int {
	for i, k := range o {
		if c := value.Compare(a[i], b[i]); c != 0 {
			if k.Descending {
				return -c
			}
			return c
		}
	}
	return 0
}

// Sort sorts documents; those that compare equal keep their order.
func (o Order) Sort(docs []value.Doc) {
	SortBy(o, docs, func(d value.Doc) value.Doc { return d })
}

// SortBy sorts values by a document of each.
func SortBy[T any](o Order, list []T, doc func(T) value.Doc) {
	if len(o) == 0 {
		return
	}
	if o[0].Path == natural {
		slices.Reverse(list)
		return
	}
	type keyed struct {
		key  []value.Value
		item T
	}
	all := make([]keyed, len(list))
	for i, item := range list {
		all[i] = keyed{o.Key(doc(item)), item}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return o.CompareKeys(a.key, b.key) })
	for i, k := range all {
		list[i] = k.item
	}
}
