package server

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/update"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// maxWriteBatch is how many writes a command may have.
const maxWriteBatch = 100_000

// write runs a transaction that changes a collection.
func (k *call) write(coll string, f func(tx *engine.Tx) error) error {
	err := k.srv.Engine.Update(f)
	if k.db == adminDB && strings.HasPrefix(coll, "system.") {
		k.srv.access.invalidate()
	}
	if err == nil {
		err = k.journaled()
	}
	return err
}

// writeErrors are those of the single writes of a command.
type writeErrors []bson.D

// add notes why a write failed. It reports whether the command goes on with the next.
func (w *writeErrors) add(index int, err error, ordered bool) bool {
	e := bson.D{{Key: "index", Value: index}, {Key: "code", Value: int32(code.Of(err))}}
	if dup, ok := errors.AsType[*engine.DuplicateKeyError](err); ok {
		e = append(e, bson.E{Key: "keyPattern", Value: dup.Index.Key()}, bson.E{Key: "keyValue", Value: dup.Value})
	}
	*w = append(*w, append(e, bson.E{Key: "errmsg", Value: err.Error()}))
	return !ordered
}

func (w writeErrors) into(reply bson.D) bson.D {
	if len(w) == 0 {
		return reply
	}
	list := bson.A{}
	for _, e := range w {
		list = append(list, e)
	}
	return append(reply, bson.E{Key: "writeErrors", Value: list})
}

// batch reads the list of single writes.
func (k *call) batch(name string) (coll string, list []value.Doc, ordered bool, err error) {
	if coll, err = k.coll(); err != nil {
		return
	}
	if err = engine.CheckNamespace(k.db, coll); err != nil {
		return
	}
	list, err = k.list(name)
	if err == nil && (len(list) == 0 || len(list) > maxWriteBatch) {
		err = code.Errorf(16, "Write batch sizes must be between 1 and %d. Got %d operations.", maxWriteBatch,
			len(list))
	}
	ordered = value.Missing(value.Get(k.body, "ordered")) || k.flag("ordered")
	k.cost += time.Duration(len(list)) * costWrite
	return
}

func runInsert(k *call) (bson.D, error) {
	coll, docs, ordered, err := k.batch("documents")
	if err != nil {
		return nil, err
	}
	n := 0
	var failed writeErrors
	err = k.write(coll, func(tx *engine.Tx) error {
		c, err := k.ensure(tx, coll)
		if err != nil {
			return err
		}
		for i, d := range docs {
			if d, err = storable(d); err == nil {
				err = tx.Insert(c, d)
			}
			if err != nil {
				if !failed.add(i, err, ordered) {
					break
				}
				continue
			}
			trim(tx, c)
			n++
		}
		return nil
	})
	return failed.into(bson.D{{Key: "n", Value: n}}), err
}

// storable returns a copy of a document that can be kept: with an _id in front.
func storable(d value.Doc) (value.Doc, error) {
	if len(d) > value.MaxSize {
		return nil, code.Errorf(code.BSONObjectTooLarge, "object to insert too large. size in bytes: %d, max size: %d",
			len(d), value.MaxSize)
	}
	for name := range value.Fields(d) {
		if strings.HasPrefix(name, "$") {
			return nil, code.Errorf(code.BadValue, "Document can't have $ prefixed field names: %s", name)
		}
	}
	id := value.Get(d, "_id")
	switch {
	case value.Missing(id):
		return update.WithID(d, value.Of(bson.NewObjectID())), nil
	case value.IsArray(id):
		return nil, code.Errorf(code.InvalidIDField, "The '_id' value cannot be of type array")
	case id.Type == value.Of(bson.Regex{}).Type, id.Type == value.Of(bson.Undefined{}).Type:
		return nil, code.Errorf(code.InvalidIDField, "The '_id' value cannot be of type %s", value.TypeName(id))
	}
	return slices.Clone(update.WithID(d, value.Value{})), nil
}

// trim removes the oldest documents of a capped collection that is over its limits.
func trim(tx *engine.Tx, c *engine.Collection) {
	if !value.Truthy(value.Get(c.Options, "capped")) {
		return
	}
	size, _ := value.Int(value.Get(c.Options, "size"))
	most, limited := value.Int(value.Get(c.Options, "max"))
	for c.Size() > size && c.Len() > 1 || limited && most > 0 && int64(c.Len()) > most {
		hits, _ := c.Search(&query.Filter{}, 1)
		tx.Delete(c, hits[0].ID)
	}
}

func runDelete(k *call) (bson.D, error) {
	coll, list, ordered, err := k.batch("deletes")
	if err != nil {
		return nil, err
	}
	n := 0
	var failed writeErrors
	err = k.write(coll, func(tx *engine.Tx) error {
		for i, d := range list {
			deleted, err := k.deleteOne(tx, coll, d)
			n += deleted
			if err != nil && !failed.add(i, err, ordered) {
				break
			}
		}
		return nil
	})
	return failed.into(bson.D{{Key: "n", Value: n}}), err
}

// deleteOne does one of the deletions of a command.
func (k *call) deleteOne(tx *engine.Tx, coll string, d value.Doc) (int, error) {
	f, err := query.Parse(value.Inner(value.Get(d, "q")))
	if err != nil {
		return 0, err
	}
	if err := checkCollation(d); err != nil {
		return 0, err
	}
	limit, ok := value.Int(value.Get(d, "limit"))
	if !ok || limit != 0 && limit != 1 {
		return 0, code.Errorf(code.FailedToParse, "The limit field in delete objects must be 0 or 1. Got %s",
			value.ValueText(value.Get(d, "limit")))
	}
	c := tx.Collection(k.db, coll)
	hits, stats := c.Search(f, int(limit))
	k.addStats(stats)
	for _, h := range hits {
		tx.Delete(c, h.ID)
	}
	return len(hits), nil
}

func (k *call) addStats(s engine.Stats) {
	s.Keys, s.Docs = s.Keys+k.stats.Keys, s.Docs+k.stats.Docs
	k.stats = s
}

// expireDocuments removes the documents whose time, by a TTL index, has passed.
func (s *Server) expireDocuments() {
	now := time.Now()
	err := s.Engine.Update(func(tx *engine.Tx) error {
		for _, db := range tx.Databases() {
			for _, c := range tx.Collections(db) {
				for _, x := range c.Indexes {
					if x.ExpireAfter != nil {
						expire(tx, c, x, now)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		s.fail(err)
	}
}

func expire(tx *engine.Tx, c *engine.Collection, x *engine.Index, now time.Time) {
	path, _ := value.First(x.Key())
	before := now.Add(-time.Duration(*x.ExpireAfter) * time.Second)
	f, err := query.Parse(value.Make(bson.D{{Key: path, Value: bson.D{{Key: "$lte", Value: before}}}}))
	if err != nil {
		return
	}
	hits, _ := c.Search(f, 0)
	for _, h := range hits {
		tx.Delete(c, h.ID)
	}
}
