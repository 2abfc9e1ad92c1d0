package server

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// generic are the fields every command may have, which are not options of what it makes.
var generic = []string{
	"lsid", "$db", "$clusterTime", "$readPreference", "writeConcern", "readConcern", "maxTimeMS",
	"comment", "apiVersion", "apiStrict", "apiDeprecationErrors",
}

func runCreate(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	var options value.Builder
	for name, v := range value.Fields(k.body) {
		switch {
		case name == k.name || slices.Contains(generic, name) || name == "idIndex" || name == "autoIndexId":
		case name == "capped" || name == "size" || name == "max" || name == "storageEngine":
			options.Add(name, v)
		case name == "collation":
			if err := checkCollation(k.body); err != nil {
				return nil, err
			}
		default:
			return nil, code.Errorf(code.CommandNotSupported, "the option '%s' of create is not supported", name)
		}
	}
	if k.flag("capped") && value.Missing(value.Get(k.body, "size")) {
		return nil, code.Errorf(code.InvalidOptions, "the 'size' field is required when 'capped' is true")
	}
	return bson.D{}, k.write(coll, func(tx *engine.Tx) error {
		c, err := tx.Create(k.db, coll, options.Doc())
		if err == nil {
			k.logCreated(c)
		}
		return err
	})
}

// ensure returns a collection and makes it if need be.
func (k *call) ensure(tx *engine.Tx, coll string) (*engine.Collection, error) {
	if c := tx.Collection(k.db, coll); c != nil {
		return c, nil
	}
	c, err := tx.Create(k.db, coll, nil)
	if err == nil {
		k.logCreated(c)
	}
	return c, err
}

func (k *call) logCreated(c *engine.Collection) {
	k.srv.Log.Info(mlog.Storage, 20320, k.conn.name(), "createCollection", bson.D{
		{Key: "namespace", Value: c.Namespace()},
		{Key: "uuidDisposition", Value: "generated"},
		{Key: "uuid", Value: bson.D{{Key: "uuid", Value: c.UUID}}},
		{Key: "options", Value: c.Options},
	})
}

func runDrop(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	reply := bson.D{}
	err = k.write(coll, func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		if c == nil {
			return code.Errorf(code.NamespaceNotFound, "ns not found")
		}
		k.srv.Log.Info(mlog.Command, 518070, k.conn.name(), "CMD: drop",
			bson.D{{Key: "namespace", Value: c.Namespace()}})
		reply = bson.D{{Key: "nIndexesWas", Value: len(c.Indexes)}, {Key: "ns", Value: c.Namespace()}}
		tx.Drop(c)
		return nil
	})
	return reply, err
}

func runDropDatabase(k *call) (bson.D, error) {
	reply := bson.D{}
	err := k.write("system.users", func(tx *engine.Tx) error {
		list := tx.Collections(k.db)
		k.srv.Log.Info(mlog.Command, 20337, k.conn.name(), "dropDatabase - starting", bson.D{{Key: "db", Value: k.db}})
		for _, c := range list {
			tx.Drop(c)
		}
		k.srv.Log.Info(mlog.Command, 20336, k.conn.name(), "dropDatabase",
			bson.D{{Key: "db", Value: k.db}, {Key: "numCollectionsDropped", Value: len(list)}})
		if len(list) > 0 {
			reply = bson.D{{Key: "dropped", Value: k.db}}
		}
		return nil
	})
	return reply, err
}

func runRename(k *call) (bson.D, error) {
	from, err := k.str("renameCollection")
	if err != nil {
		return nil, err
	}
	to, err := k.str("to")
	if err != nil {
		return nil, err
	}
	fromDB, fromName, _ := strings.Cut(from, ".")
	toDB, toName, _ := strings.Cut(to, ".")
	return bson.D{}, k.write(fromName, func(tx *engine.Tx) error {
		c := tx.Collection(fromDB, fromName)
		if c == nil {
			return code.Errorf(code.NamespaceNotFound, "Source collection %s does not exist", from)
		}
		if target := tx.Collection(toDB, toName); target != nil {
			if !k.flag("dropTarget") {
				return code.Errorf(code.NamespaceExists, "target namespace exists")
			}
			tx.Drop(target)
		}
		return tx.Rename(c, toDB, toName)
	})
}

func runListCollections(k *call) (bson.D, error) {
	d, err := k.doc("filter")
	if err != nil {
		return nil, err
	}
	f, err := query.Parse(d)
	if err != nil {
		return nil, err
	}
	privileges := k.conn.privileges()
	all := !k.srv.Auth || auth.Allows(privileges, auth.Database(k.db), "listCollections")
	var docs []value.Doc
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		for _, c := range tx.Collections(k.db) {
			if !all && !auth.Allows(privileges, auth.Collection(k.db, c.Name), "find") {
				continue
			}
			d := bson.D{{Key: "name", Value: c.Name}, {Key: "type", Value: "collection"}}
			if !k.flag("nameOnly") {
				d = append(d, bson.E{Key: "options", Value: c.Options},
					bson.E{Key: "info", Value: bson.D{{Key: "readOnly", Value: false}, {Key: "uuid", Value: c.UUID}}},
					bson.E{Key: "idIndex", Value: c.Indexes[0].Spec})
			}
			if doc := value.Make(d); f.Match(doc) {
				docs = append(docs, doc)
			}
		}
		return nil
	})
	return k.cursorReply(k.db+".$cmd.listCollections", docs, k.batchSize(), false), err
}

// batchSize is that of a command's cursor option.
func (k *call) batchSize() int {
	if n, ok := value.Int(value.At(k.body, "cursor.batchSize")); ok {
		return int(n)
	}
	return -1
}

func runListDatabases(k *call) (bson.D, error) {
	d, err := k.doc("filter")
	if err != nil {
		return nil, err
	}
	f, err := query.Parse(d)
	if err != nil {
		return nil, err
	}
	privileges := k.conn.privileges()
	all := !k.srv.Auth || auth.Allows(privileges, auth.Cluster(), "listDatabases")
	if v := value.Get(k.body, "authorizedDatabases"); value.Exists(v) && value.Truthy(v) {
		all = !k.srv.Auth
	} else if value.Exists(v) && !all {
		return nil, k.unauthorized()
	}
	list, total := bson.A{}, int64(0)
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		for _, db := range tx.Databases() {
			if !all && !auth.Allows(privileges, auth.Database(db), "find") {
				continue
			}
			size := sizeOnDisk(tx, db)
			e := bson.D{{Key: "name", Value: db}}
			if !k.flag("nameOnly") {
				e = append(e, bson.E{Key: "sizeOnDisk", Value: float64(size)}, bson.E{Key: "empty", Value: false})
			}
			if f.Match(value.Make(e)) {
				list, total = append(list, e), total+size
			}
		}
		return nil
	})
	reply := bson.D{{Key: "databases", Value: list}}
	if !k.flag("nameOnly") {
		reply = append(reply, bson.E{Key: "totalSize", Value: float64(total)})
	}
	return reply, err
}

// Files grow by pages, and each has one for itself.
const page = 4096

func pages(bytes int64) int64 { return (bytes/page + 1) * page }

func sizeOnDisk(tx *engine.Tx, db string) (size int64) {
	for _, c := range tx.Collections(db) {
		size += pages(c.Size()) + int64(len(c.Indexes))*pages(int64(c.Len())*16)
	}
	return size
}

func runListIndexes(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	var docs []value.Doc
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		if c == nil {
			return code.Errorf(code.NamespaceNotFound, "ns does not exist: %s.%s", k.db, coll)
		}
		for _, x := range c.Indexes {
			docs = append(docs, x.Spec)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return k.cursorReply(fmt.Sprintf("%s.%s", k.db, coll), docs, k.batchSize(), false), nil
}
