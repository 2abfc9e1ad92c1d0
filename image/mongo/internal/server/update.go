package server

import (
	"bytes"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/aggregate"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/update"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// change is a parsed update: modifiers, a replacement or a pipeline.
type change struct {
	update   *update.Update
	pipeline *aggregate.Pipeline
}

func parseChange(u, arrayFilters value.Value) (*change, error) {
	switch {
	case value.IsArray(u):
		p, err := aggregate.Parse(u)
		return &change{pipeline: p}, err
	case !value.IsDoc(u):
		return nil, code.Errorf(code.FailedToParse, "Update argument must be either an object or an array")
	}
	up, err := update.Parse(u.Data, value.List(value.Inner(arrayFilters)))
	return &change{update: up}, err
}

func (c *change) apply(h engine.Hit, now time.Time) (value.Doc, error) {
	if c.update != nil {
		return c.update.Apply(h.Doc, h.Match, now)
	}
	d, err := c.pipeline.Apply(h.Doc)
	if err != nil {
		return nil, err
	}
	id := value.Get(h.Doc, "_id")
	if got := value.Get(d, "_id"); value.Exists(got) && !value.Equal(got, id) {
		return nil, code.Errorf(code.ImmutableField,
			"Performing an update on the path '_id' would modify the immutable field '_id'")
	}
	return update.WithID(d, id), nil
}

// insert returns the document of an upsert.
func (c *change) insert(f *query.Filter, now time.Time) (value.Doc, error) {
	if c.update != nil {
		return c.update.Insert(f, now)
	}
	empty, err := update.Parse(value.Make(
		bson.D{{Key: "$setOnInsert", Value: bson.D{{Key: "_id", Value: bson.NewObjectID()}}}}), nil)
	if err != nil {
		return nil, err
	}
	d, err := empty.Insert(f, now)
	if err != nil {
		return nil, err
	}
	return c.pipeline.Apply(d)
}

// single is one of the updates of a command.
type single struct {
	filter        *query.Filter
	change        *change
	multi, upsert bool
}

func parseSingle(d value.Doc) (*single, error) {
	s := &single{multi: value.Truthy(value.Get(d, "multi")), upsert: value.Truthy(value.Get(d, "upsert"))}
	var err error
	if s.filter, err = query.Parse(value.Inner(value.Get(d, "q"))); err != nil {
		return nil, err
	}
	if err = checkCollation(d); err != nil {
		return nil, err
	}
	if s.change, err = parseChange(value.Get(d, "u"), value.Get(d, "arrayFilters")); err != nil {
		return nil, err
	}
	if s.multi && s.change.update != nil && s.change.update.IsReplacement() {
		return nil, code.Errorf(code.FailedToParse, "multi update is not supported for replacement-style update")
	}
	return s, nil
}

// updated is what an update did.
type updated struct {
	matched, modified int
	upserted          value.Value // the _id
}

// run does the update.
func (s *single) run(k *call, tx *engine.Tx, coll string, now time.Time) (u updated, err error) {
	c := tx.Collection(k.db, coll)
	limit := 1
	if s.multi {
		limit = 0
	}
	hits, stats := c.Search(s.filter, limit)
	k.addStats(stats)
	for _, h := range hits {
		changed, err := replace(tx, c, h, s.change, now)
		if err != nil {
			return u, err
		}
		u.matched++
		if changed != nil {
			u.modified++
		}
	}
	if len(hits) > 0 || !s.upsert {
		return u, nil
	}
	d, err := upsert(k, tx, coll, s.filter, s.change, now)
	if err != nil {
		return u, err
	}
	u.upserted = value.Get(d, "_id")
	return u, nil
}

// replace applies a change to a document and returns the new one, or nil if it is the same.
func replace(tx *engine.Tx, c *engine.Collection, h engine.Hit, ch *change, now time.Time) (value.Doc, error) {
	d, err := ch.apply(h, now)
	if err != nil || bytes.Equal(d, h.Doc) {
		return nil, err
	}
	return d, tx.Replace(c, h.ID, d)
}

func upsert(k *call, tx *engine.Tx, coll string, f *query.Filter, ch *change, now time.Time) (value.Doc, error) {
	d, err := ch.insert(f, now)
	if err == nil {
		d, err = storable(d)
	}
	if err != nil {
		return nil, err
	}
	c, err := k.ensure(tx, coll)
	if err != nil {
		return nil, err
	}
	return d, tx.Insert(c, d)
}

func runUpdate(k *call) (bson.D, error) {
	coll, list, ordered, err := k.batch("updates")
	if err != nil {
		return nil, err
	}
	n, modified := 0, 0
	upserts := bson.A{}
	var failed writeErrors
	now := time.Now()
	err = k.write(coll, func(tx *engine.Tx) error {
		for i, d := range list {
			s, err := parseSingle(d)
			var u updated
			if err == nil {
				u, err = s.run(k, tx, coll, now)
			}
			n, modified = n+u.matched, modified+u.modified
			if value.Exists(u.upserted) {
				n++
				upserts = append(upserts, bson.D{{Key: "index", Value: i}, {Key: "_id", Value: u.upserted}})
			}
			if err != nil && !failed.add(i, err, ordered) {
				break
			}
		}
		return nil
	})
	reply := bson.D{{Key: "n", Value: n}, {Key: "nModified", Value: modified}}
	if len(upserts) > 0 {
		reply = append(reply, bson.E{Key: "upserted", Value: upserts})
	}
	return failed.into(reply), err
}

func runFindAndModify(k *call) (bson.D, error) {
	s, err := k.selection("query")
	if err != nil {
		return nil, err
	}
	k.cost += costWrite
	remove := k.flag("remove")
	u := value.Get(k.body, "update")
	var ch *change
	switch {
	case remove && value.Exists(u):
		return nil, code.Errorf(code.FailedToParse, "Cannot specify both an update and remove=true")
	case remove && k.flag("upsert"):
		return nil, code.Errorf(code.FailedToParse, "Cannot specify both upsert=true and remove=true")
	case remove && k.flag("new"):
		return nil, code.Errorf(code.FailedToParse,
			"Cannot specify both new=true and remove=true; 'remove' always returns the deleted document")
	case !remove && value.Missing(u):
		return nil, code.Errorf(code.FailedToParse, "Either an update or remove=true must be specified")
	case !remove:
		if ch, err = parseChange(u, value.Get(k.body, "arrayFilters")); err != nil {
			return nil, err
		}
	}
	last := bson.D{{Key: "n", Value: 0}}
	if !remove {
		last = append(last, bson.E{Key: "updatedExisting", Value: false})
	}
	var result value.Doc
	err = k.write(s.coll, func(tx *engine.Tx) error {
		result, last, err = k.modify(tx, s, ch, last)
		return err
	})
	if err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "lastErrorObject", Value: last}}
	if result == nil {
		return append(reply, bson.E{Key: "value", Value: nil}), nil
	}
	k.hits++
	return append(reply, bson.E{Key: "value", Value: result}), nil
}

// modify does what findAndModify asks for to the first document that is found. A change of nil is
// its removal.
func (k *call) modify(tx *engine.Tx, s *selection, ch *change, last bson.D) (value.Doc, bson.D, error) {
	c := tx.Collection(k.db, s.coll)
	limit := 1
	if len(s.order) > 0 {
		limit = 0
	}
	hits, stats := c.Search(s.filter, limit)
	k.addStats(stats)
	query.SortBy(s.order, hits, hitDoc)
	now := time.Now()
	switch {
	case len(hits) == 0 && ch != nil && k.flag("upsert"):
		d, err := upsert(k, tx, s.coll, s.filter, ch, now)
		if err != nil {
			return nil, nil, err
		}
		last = bson.D{
			{Key: "n", Value: 1},
			{Key: "updatedExisting", Value: false},
			{Key: "upserted", Value: value.Get(d, "_id")},
		}
		if !k.flag("new") {
			return nil, last, nil
		}
		d, err = s.projection.Apply(d, query.Match{Index: -1}, nil)
		return d, last, err
	case len(hits) == 0:
		return nil, last, nil
	case ch == nil:
		tx.Delete(c, hits[0].ID)
		d, err := s.projection.Apply(hits[0].Doc, hits[0].Match, nil)
		return d, bson.D{{Key: "n", Value: 1}}, err
	}
	h := hits[0]
	changed, err := replace(tx, c, h, ch, now)
	if err != nil {
		return nil, nil, err
	}
	if changed != nil && k.flag("new") {
		h.Doc = changed
	}
	d, err := s.projection.Apply(h.Doc, h.Match, nil)
	return d, bson.D{{Key: "n", Value: 1}, {Key: "updatedExisting", Value: true}}, err
}
