package engine

import (
	"slices"
	"sort"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Collection is a set of documents in the order they were inserted, with indexes. It is read and
// changed within a transaction only.
type Collection struct {
	DB, Name string
	UUID     bson.Binary
	Options  value.Doc // as listCollections shows them
	Indexes  []*Index  // the first is that of _id

	records []record // by id; removed ones have no document
	live    int
	bytes   int64
	lastID  int64
}

type record struct {
	id  int64
	doc value.Doc
}

// Namespace is the collection's full name.
func (c *Collection) Namespace() string { return c.DB + "." + c.Name }

// Len returns the number of documents.
func (c *Collection) Len() int { return c.live }

// Size returns the bytes of the documents.
func (c *Collection) Size() int64 { return c.bytes }

// Docs visits the documents until visit returns false.
func (c *Collection) Docs(visit func(value.Doc) bool) {
	for _, r := range c.records {
		if r.doc != nil && !visit(r.doc) {
			return
		}
	}
}

func (c *Collection) position(id int64) int {
	return sort.Search(len(c.records), func(i int) bool { return c.records[i].id >= id })
}

func (c *Collection) get(id int64) value.Doc {
	if i := c.position(id); i < len(c.records) && c.records[i].id == id {
		return c.records[i].doc
	}
	return nil
}

// keysOf computes the keys of a document in all indexes, and checks that they are free.
func (c *Collection) keysOf(d value.Doc, id int64) ([]indexKeys, error) {
	all := make([]indexKeys, len(c.Indexes))
	for i, x := range c.Indexes {
		keys, multi, err := x.keys(d)
		if err == nil {
			err = x.check(c, keys, id)
		}
		if err != nil {
			return nil, err
		}
		all[i] = indexKeys{keys, multi}
	}
	return all, nil
}

type indexKeys struct {
	keys  [][]value.Value
	multi bool
}

func (c *Collection) insert(d value.Doc) error {
	id := c.lastID + 1
	all, err := c.keysOf(d, id)
	if err != nil {
		return err
	}
	c.lastID = id
	c.records = append(c.records, record{id, d})
	for i, x := range c.Indexes {
		x.add(all[i].keys, all[i].multi, id)
	}
	c.live++
	c.bytes += int64(len(d))
	return nil
}

func (c *Collection) replace(id int64, d value.Doc) error {
	all, err := c.keysOf(d, id)
	if err != nil {
		return err
	}
	r := &c.records[c.position(id)]
	for i, x := range c.Indexes {
		x.remove(r.doc, id)
		x.add(all[i].keys, all[i].multi, id)
	}
	c.bytes += int64(len(d) - len(r.doc))
	r.doc = d
	return nil
}

func (c *Collection) remove(id int64) {
	r := &c.records[c.position(id)]
	for _, x := range c.Indexes {
		x.remove(r.doc, id)
	}
	c.live--
	c.bytes -= int64(len(r.doc))
	r.doc = nil
	if dead := len(c.records) - c.live; dead > 64 && dead > c.live {
		c.records = slices.Clip(slices.DeleteFunc(c.records, func(r record) bool { return r.doc == nil }))
	}
}

// Index finds an index by its name.
func (c *Collection) Index(name string) *Index {
	for _, x := range c.Indexes {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// build adds an index over the documents there are.
func (c *Collection) build(x *Index) error {
	for _, r := range c.records {
		if r.doc == nil {
			continue
		}
		keys, multi, err := x.keys(r.doc)
		if err == nil {
			err = x.check(c, keys, r.id)
		}
		if err != nil {
			return err
		}
		x.add(keys, multi, r.id)
	}
	c.Indexes = append(c.Indexes, x)
	return nil
}
