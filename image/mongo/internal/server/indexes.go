package server

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func runCreateIndexes(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	specs, err := k.list("indexes")
	if err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, code.Errorf(code.BadValue, "Must specify at least one index to create")
	}
	var reply bson.D
	err = k.write(coll, func(tx *engine.Tx) error {
		created := tx.Collection(k.db, coll) == nil
		c, err := k.ensure(tx, coll)
		if err != nil {
			return err
		}
		before := len(c.Indexes)
		for _, s := range specs {
			if err := k.createIndex(tx, c, s); err != nil {
				return err
			}
		}
		reply = bson.D{
			{Key: "createdCollectionAutomatically", Value: created},
			{Key: "numIndexesBefore", Value: before},
			{Key: "numIndexesAfter", Value: len(c.Indexes)},
		}
		if before == len(c.Indexes) {
			reply = append(reply, bson.E{Key: "note", Value: "all indexes already exist"})
		}
		return nil
	})
	return reply, err
}

// createIndex makes one index, unless there is the same already.
func (k *call) createIndex(tx *engine.Tx, c *engine.Collection, d value.Doc) error {
	key := value.Get(d, "key")
	if !value.IsDoc(key) {
		return code.Errorf(code.FailedToParse,
			"Error in specification %s :: caused by :: The 'key' field is a required property "+
				"of an index specification", value.Text(d))
	}
	if err := checkCollation(d); err != nil {
		return err
	}
	name, ok := value.Str(value.Get(d, "name"))
	if !ok || name == "" {
		return code.Errorf(code.FailedToParse,
			"Error in specification %s :: caused by :: The 'name' field is a required property of an "+
				"index specification", value.Text(d))
	}
	var b value.Builder
	b.Add("v", value.Int32(2))
	for field, v := range value.Fields(d) {
		switch field {
		case "v", "background", "ns", "collation":
		case "unique", "sparse", "hidden":
			if value.Truthy(v) {
				b.Add(field, value.Bool(true))
			}
		default:
			b.Add(field, v)
		}
	}
	spec := b.Doc()
	for _, x := range c.Indexes {
		sameKey := value.CompareDocs(x.Key(), key.Data) == 0
		switch {
		case sameKey && (x.Name == engine.IDIndex || x.Name == name && value.CompareDocs(x.Spec, spec) == 0):
			return nil
		case sameKey && x.Name == name:
			return code.Errorf(code.IndexOptionsConflict,
				"An existing index has the same name as the requested index. When index names are not specified, "+
					"they are auto generated and can cause conflicts. Please refer to our documentation. Requested "+
					"index: %s, existing index: %s", value.Text(spec), value.Text(x.Spec))
		case sameKey:
			return code.Errorf(code.IndexOptionsConflict,
				"Index with name: %s already exists with different options or a different name: %s", name, x.Name)
		case x.Name == name:
			return code.Errorf(code.IndexKeySpecsConflict,
				"Index must have unique name.The existing index: %s has the same name as the requested index: %s",
				value.Text(x.Spec), value.Text(spec))
		}
	}
	if err := tx.CreateIndex(c, spec); err != nil {
		return err
	}
	k.stats.Docs += c.Len()
	k.srv.Log.Info(mlog.Index, 20345, k.conn.name(), "Index build: done building", bson.D{
		{Key: "buildUUID", Value: nil},
		{Key: "namespace", Value: c.Namespace()},
		{Key: "index", Value: name},
		{Key: "commitTimestamp", Value: nil},
	})
	return nil
}

func runDropIndexes(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	which := value.Get(k.body, "index")
	reply := bson.D{}
	err = k.write(coll, func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		if c == nil {
			return code.Errorf(code.NamespaceNotFound, "ns not found %s.%s", k.db, coll)
		}
		reply = append(reply, bson.E{Key: "nIndexesWas", Value: len(c.Indexes)})
		names, err := chosenIndexes(c, which)
		if err != nil {
			return err
		}
		for _, n := range names {
			tx.DropIndex(c, n)
		}
		if s, _ := value.Str(which); s == "*" {
			reply = append(reply, bson.E{Key: "msg", Value: "non-_id indexes dropped for collection"})
		}
		return nil
	})
	return reply, err
}

// chosenIndexes returns the indexes that a name, a list of names, a key or * stands for.
func chosenIndexes(c *engine.Collection, which value.Value) (names []string, err error) {
	if value.IsDoc(which) {
		for _, x := range c.Indexes {
			if value.CompareDocs(x.Key(), which.Data) == 0 {
				names = append(names, x.Name)
			}
		}
		if len(names) == 0 {
			return nil, code.Errorf(code.IndexNotFound, "can't find index with key: %s", value.Text(which.Data))
		}
	} else {
		list := []value.Value{which}
		if value.IsArray(which) {
			list = value.List(which.Data)
		}
		for _, v := range list {
			s, ok := value.Str(v)
			if !ok {
				return nil, code.Errorf(code.TypeMismatch, "Must specify the index name or its key")
			}
			if s == "*" {
				for _, x := range c.Indexes[1:] {
					names = append(names, x.Name)
				}
				continue
			}
			if c.Index(s) == nil {
				return nil, code.Errorf(code.IndexNotFound, "index not found with name [%s]", s)
			}
			names = append(names, s)
		}
	}
	for _, n := range names {
		if n == engine.IDIndex {
			return nil, code.Errorf(code.InvalidOptions, "cannot drop _id index")
		}
	}
	return names, nil
}
