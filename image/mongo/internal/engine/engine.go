// Package engine keeps databases: collections of documents with indexes, in memory and in a journal
// from which they are read again.
//
// All access is by [Engine.View] and [Engine.Update], each of which is one transaction: what an
// update did is in the journal when it returns, and in the file at the latest [CommitInterval]
// later.
package engine

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// Engine is a set of databases. It is safe for concurrent use.
type Engine struct {
	mu  sync.RWMutex
	dbs map[string]map[string]*Collection

	journal *journal
	bytes   int64 // of all documents
	onSize  func(bytes int64)
}

// Tx is access to the engine within a transaction.
type Tx struct{ e *Engine }

// View runs a transaction that reads. Documents it finds stay valid, for they never change.
func (e *Engine) View(f func(*Tx) error) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return f(&Tx{e})
}

// Update runs a transaction that may write. What it did before it failed stays done, as a command's
// writes do that come before one that fails. The error is a [*WriteError] if the journal cannot be
// written; then the engine is of no use any more.
func (e *Engine) Update(f func(*Tx) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.bytes
	err := f(&Tx{e})
	if werr := e.journal.flush(); werr != nil {
		return werr
	}
	if e.bytes != before && e.onSize != nil {
		e.onSize(e.bytes)
	}
	return err
}

// Databases returns the names of the databases, sorted.
func (tx *Tx) Databases() []string { return slices.Sorted(maps.Keys(tx.e.dbs)) }

// Collections returns the collections of a database by name.
func (tx *Tx) Collections(db string) []*Collection {
	list := slices.Collect(maps.Values(tx.e.dbs[db]))
	slices.SortFunc(list, func(a, b *Collection) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Collection returns a collection, or nil.
func (tx *Tx) Collection(db, name string) *Collection { return tx.e.dbs[db][name] }

// Create makes a collection with options, which may be nil.
func (tx *Tx) Create(db, name string, options value.Doc) (*Collection, error) {
	if err := CheckNamespace(db, name); err != nil {
		return nil, err
	}
	if tx.Collection(db, name) != nil {
		return nil, code.Errorf(code.NamespaceExists, "Collection already exists. NS: %s.%s", db, name)
	}
	id := value.NewUUID()
	c, err := tx.e.create(db, name, id, options)
	if err != nil {
		return nil, err
	}
	tx.e.journal.add(bson.D{
		{Key: "op", Value: opCreate},
		{Key: "ns", Value: c.Namespace()},
		{Key: "uuid", Value: id},
		{Key: "o", Value: c.Options},
	})
	return c, nil
}

func (e *Engine) create(db, name string, id bson.Binary, options value.Doc) (*Collection, error) {
	if options == nil {
		options = value.Make(nil)
	}
	x, err := newIndex(value.Make(bson.D{
		{Key: "v", Value: 2},
		{Key: "key", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "name", Value: IDIndex},
	}))
	if err != nil {
		return nil, err
	}
	c := &Collection{DB: db, Name: name, UUID: id, Options: options, Indexes: []*Index{x}}
	if e.dbs[db] == nil {
		e.dbs[db] = map[string]*Collection{}
	}
	e.dbs[db][name] = c
	return c, nil
}

// Drop removes a collection.
func (tx *Tx) Drop(c *Collection) {
	tx.e.journal.add(bson.D{{Key: "op", Value: opDrop}, {Key: "ns", Value: c.Namespace()}})
	tx.e.drop(c)
}

func (e *Engine) drop(c *Collection) {
	e.bytes -= c.bytes
	delete(e.dbs[c.DB], c.Name)
	if len(e.dbs[c.DB]) == 0 {
		delete(e.dbs, c.DB)
	}
}

// Rename gives a collection another name, which must be free.
func (tx *Tx) Rename(c *Collection, db, name string) error {
	if err := CheckNamespace(db, name); err != nil {
		return err
	}
	tx.e.journal.add(bson.D{
		{Key: "op", Value: opRename},
		{Key: "ns", Value: c.Namespace()},
		{Key: "db", Value: db},
		{Key: "to", Value: name},
	})
	tx.e.rename(c, db, name)
	return nil
}

func (e *Engine) rename(c *Collection, db, name string) {
	bytes := e.bytes
	e.drop(c)
	e.bytes = bytes
	if e.dbs[db] == nil {
		e.dbs[db] = map[string]*Collection{}
	}
	c.DB, c.Name = db, name
	e.dbs[db][name] = c
}

// Insert adds a document that has an _id.
func (tx *Tx) Insert(c *Collection, d value.Doc) error {
	if err := c.insert(d); err != nil {
		return err
	}
	tx.e.bytes += int64(len(d))
	tx.e.journal.add(bson.D{{Key: "op", Value: opInsert}, {Key: "ns", Value: c.Namespace()}, {Key: "o", Value: d}})
	return nil
}

// Replace puts a document in the place of another with the same _id.
func (tx *Tx) Replace(c *Collection, id int64, d value.Doc) error {
	old := len(c.get(id))
	if err := c.replace(id, d); err != nil {
		return err
	}
	tx.e.bytes += int64(len(d) - old)
	tx.e.journal.add(bson.D{{Key: "op", Value: opUpdate}, {Key: "ns", Value: c.Namespace()}, {Key: "o", Value: d}})
	return nil
}

// Delete removes a document.
func (tx *Tx) Delete(c *Collection, id int64) {
	d := c.get(id)
	tx.e.bytes -= int64(len(d))
	tx.e.journal.add(bson.D{
		{Key: "op", Value: opDelete},
		{Key: "ns", Value: c.Namespace()},
		{Key: "o", Value: value.Get(d, "_id")},
	})
	c.remove(id)
}

// CreateIndex adds an index. Its specification has a key and a name.
func (tx *Tx) CreateIndex(c *Collection, spec value.Doc) error {
	x, err := newIndex(spec)
	if err == nil {
		err = c.build(x)
	}
	if err == nil {
		tx.e.journal.add(bson.D{
			{Key: "op", Value: opIndex},
			{Key: "ns", Value: c.Namespace()},
			{Key: "o", Value: spec},
		})
	}
	return err
}

// DropIndex removes an index.
func (tx *Tx) DropIndex(c *Collection, name string) {
	tx.e.journal.add(bson.D{
		{Key: "op", Value: opDropIndex},
		{Key: "ns", Value: c.Namespace()},
		{Key: "o", Value: name},
	})
	c.Indexes = slices.DeleteFunc(c.Indexes, func(x *Index) bool { return x.Name == name })
}

// SetOptions changes the options of a collection.
func (tx *Tx) SetOptions(c *Collection, options value.Doc) {
	tx.e.journal.add(bson.D{
		{Key: "op", Value: opOptions},
		{Key: "ns", Value: c.Namespace()},
		{Key: "o", Value: options},
	})
	c.Options = options
}
