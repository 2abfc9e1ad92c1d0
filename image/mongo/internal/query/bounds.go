package query

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Bounds are the values of one field that a filter allows, as far as an index can use them: some points, or a
// range with two ends, either of which may be missing.
type Bounds struct {
	Points   []value.Value
	Low      value.Value
	High     value.Value
	HighOpen bool // High itself is outside
}

// Bounds returns the bounds that the filter sets for a path, or false if an index cannot use them. A document
// within the bounds need not match.
func (f *Filter) Bounds(path string) (Bounds, bool) {
	var b Bounds
	for _, n := range f.all {
		fd, ok := n.(field)
		if !ok || fd.path != path {
			continue
		}
		switch t := fd.test.(type) {
		case in:
			if len(t.others) == 0 && searchable(t.values...) {
				return Bounds{Points: t.values}, true
			}
		case compare:
			if !searchable(t.with) {
				continue
			}
			if t.op == "$eq" {
				return Bounds{Points: []value.Value{t.with}}, true
			}
			b.narrow(t)
		}
	}
	return b, value.Exists(b.Low) || value.Exists(b.High)
}

func (b *Bounds) narrow(t compare) {
	switch t.op {
	case "$gt", "$gte":
		if value.Missing(b.Low) {
			b.Low = t.with
		}
	default:
		if value.Missing(b.High) {
			b.High, b.HighOpen = t.with, t.op == "$lt"
		}
	}
}

// searchable reports whether a search for the values finds all that equal them: for null that would
// be missing fields as well, and for an array the elements of others.
func searchable(list ...value.Value) bool {
	for _, v := range list {
		switch v.Type {
		case bsoncore.TypeNull, bsoncore.TypeUndefined, bsoncore.TypeArray, bsoncore.TypeRegex,
			bsoncore.TypeMinKey, bsoncore.TypeMaxKey:
			return false
		}
		if value.IsNaN(v) {
			return false
		}
	}
	return true
}

// Equalities visits the paths that must equal one value to match the filter. An upsert begins with them.
func (f *Filter) Equalities(visit func(path string, v value.Value)) { f.all.equalities(visit) }

func (n and) equalities(visit func(path string, v value.Value)) {
	for _, c := range n {
		switch c := c.(type) {
		case and:
			c.equalities(visit)
		case or:
			if len(c) == 1 {
				and(c).equalities(visit)
			}
		case field:
			switch t := c.test.(type) {
			case compare:
				if t.op == "$eq" {
					visit(c.path, t.with)
				}
			case in:
				if len(t.values) == 1 && len(t.others) == 0 {
					visit(c.path, t.values[0])
				}
			}
		}
	}
}
