package server

import (
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// counters are those of serverStatus.
type counters struct {
	insert, query, update, remove, getMore, other atomic.Int64
}

func (c *counters) command(name string, body value.Doc) {
	n := func(list string) int64 { return int64(value.Count(value.Inner(value.Get(body, list)))) }
	switch name {
	case "insert":
		c.insert.Add(n("documents"))
	case "update":
		c.update.Add(n("updates"))
	case "delete":
		c.remove.Add(n("deletes"))
	case "find":
		c.query.Add(1)
	case "getMore":
		c.getMore.Add(1)
	default:
		c.other.Add(1)
	}
}

func runServerStatus(k *call) (bson.D, error) {
	s := k.srv
	up := time.Since(s.started)
	open := s.Connections()
	mem := s.Env.Memory.Info()
	cpu := s.Env.CPU.Info()
	c := &s.counts
	bytes := int64(0)
	s.Engine.View(func(tx *engine.Tx) error {
		for _, db := range tx.Databases() {
			for _, c := range tx.Collections(db) {
				bytes += c.Size()
			}
		}
		return nil
	})
	return bson.D{
		{Key: "host", Value: s.Env.Hostname},
		{Key: "version", Value: Version},
		{Key: "process", Value: "mongod"},
		{Key: "pid", Value: int64(s.Env.PID)},
		{Key: "uptime", Value: float64(int64(up.Seconds()))},
		{Key: "uptimeMillis", Value: up.Milliseconds()},
		{Key: "uptimeEstimate", Value: int64(up.Seconds())},
		{Key: "localTime", Value: time.Now()},
		{Key: "connections", Value: bson.D{
			{Key: "current", Value: open},
			{Key: "available", Value: maxConnections - open},
			{Key: "totalCreated", Value: int32(s.nextConn.Load())},
			{Key: "active", Value: 1},
		}},
		{Key: "extra_info", Value: bson.D{
			{Key: "user_time_us", Value: cpu.Used.Microseconds()},
			{Key: "note", Value: "fields vary by platform"},
		}},
		{Key: "globalLock", Value: bson.D{
			{Key: "totalTime", Value: up.Microseconds()},
			{Key: "currentQueue", Value: bson.D{
				{Key: "total", Value: 0},
				{Key: "readers", Value: 0},
				{Key: "writers", Value: 0},
			}},
			{Key: "activeClients", Value: bson.D{
				{Key: "total", Value: 0},
				{Key: "readers", Value: 0},
				{Key: "writers", Value: 0},
			}},
		}},
		{Key: "logicalSessionRecordCache", Value: bson.D{{Key: "activeSessionsCount", Value: open}}},
		{Key: "opcounters", Value: bson.D{
			{Key: "insert", Value: c.insert.Load()},
			{Key: "query", Value: c.query.Load()},
			{Key: "update", Value: c.update.Load()},
			{Key: "delete", Value: c.remove.Load()},
			{Key: "getmore", Value: c.getMore.Load()},
			{Key: "command", Value: c.other.Load()},
		}},
		{Key: "metrics", Value: bson.D{{
			Key:   "cursor",
			Value: bson.D{{Key: "open", Value: bson.D{{Key: "total", Value: int64(s.cursors.len())}}}},
		}}},
		{Key: "storageEngine", Value: bson.D{
			{Key: "name", Value: "wiredTiger"},
			{Key: "persistent", Value: true},
			{Key: "readOnly", Value: false},
		}},
		{Key: "security", Value: bson.D{{Key: "authentication", Value: bson.D{}}}},
		{Key: "wiredTiger", Value: bson.D{{Key: "cache", Value: bson.D{
			{Key: "bytes currently in the cache", Value: bytes},
			{Key: "maximum bytes configured", Value: CacheSize(mem)},
		}}}},
		{Key: "mem", Value: bson.D{
			{Key: "bits", Value: 64},
			{Key: "resident", Value: int32(mem.Used >> 20)},
			{Key: "virtual", Value: int32(mem.Used>>20) + 1400},
			{Key: "supported", Value: true},
		}},
	}, nil
}

const maxConnections = 838860

// collSizes are the figures of a collection.
func collSizes(c *engine.Collection) (count int, size, storage, indexes int64) {
	for range c.Indexes {
		indexes += pages(int64(c.Len()) * 16)
	}
	return c.Len(), c.Size(), pages(c.Size()), indexes
}

func (k *call) scale() (int64, error) {
	n, err := k.count("scale", 1)
	if err == nil && n < 1 {
		err = code.Errorf(code.BadValue, "scale has to be > 0")
	}
	return n, err
}

func runDBStats(k *call) (bson.D, error) {
	scale, err := k.scale()
	if err != nil {
		return nil, err
	}
	var collections, objects, indexes int
	var size, storage, indexSize int64
	k.srv.Engine.View(func(tx *engine.Tx) error {
		for _, c := range tx.Collections(k.db) {
			n, bytes, disk, ix := collSizes(c)
			collections, objects, indexes = collections+1, objects+n, indexes+len(c.Indexes)
			size, storage, indexSize = size+bytes, storage+disk, indexSize+ix
		}
		return nil
	})
	avg := 0.0
	if objects > 0 {
		avg = float64(size) / float64(objects)
	}
	reply := bson.D{
		{Key: "db", Value: k.db},
		{Key: "collections", Value: collections},
		{Key: "views", Value: 0},
		{Key: "objects", Value: objects},
		{Key: "avgObjSize", Value: avg},
		{Key: "dataSize", Value: float64(size / scale)},
		{Key: "storageSize", Value: float64(storage / scale)},
		{Key: "indexes", Value: indexes},
		{Key: "indexSize", Value: float64(indexSize / scale)},
		{Key: "totalSize", Value: float64((storage + indexSize) / scale)},
		{Key: "scaleFactor", Value: float64(scale)},
	}
	if fs, err := k.srv.Env.FS.StatFS(k.srv.DBPath); err == nil {
		reply = append(reply, bson.E{Key: "fsUsedSize", Value: float64((fs.Total - fs.Free) / scale)},
			bson.E{Key: "fsTotalSize", Value: float64(fs.Total / scale)})
	}
	return reply, nil
}

func runCollStats(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	scale, err := k.scale()
	if err != nil {
		return nil, err
	}
	reply := bson.D{{Key: "ns", Value: k.db + "." + coll}}
	k.srv.Engine.View(func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		if c == nil {
			reply = append(reply, bson.D{
				{Key: "size", Value: 0},
				{Key: "count", Value: 0},
				{Key: "storageSize", Value: 0},
				{Key: "nindexes", Value: 0},
				{Key: "totalIndexSize", Value: 0},
				{Key: "indexSizes", Value: bson.D{}},
			}...)
			return nil
		}
		n, size, storage, indexSize := collSizes(c)
		reply = append(reply, bson.D{{Key: "size", Value: int(size / scale)}, {Key: "count", Value: n}}...)
		if n > 0 {
			reply = append(reply, bson.E{Key: "avgObjSize", Value: int(size / int64(n))})
		}
		sizes := bson.D{}
		for _, x := range c.Indexes {
			sizes = append(sizes, bson.E{Key: x.Name, Value: int(pages(int64(n)*16) / scale)})
		}
		reply = append(reply, bson.D{
			{Key: "storageSize", Value: int(storage / scale)},
			{Key: "capped", Value: value.Truthy(value.Get(c.Options, "capped"))},
			{Key: "nindexes", Value: len(c.Indexes)},
			{Key: "totalIndexSize", Value: int(indexSize / scale)},
			{Key: "totalSize", Value: int((storage + indexSize) / scale)},
			{Key: "indexSizes", Value: sizes},
			{Key: "scaleFactor", Value: int(scale)},
		}...)
		return nil
	})
	return reply, nil
}

func runValidate(k *call) (bson.D, error) {
	coll, err := k.coll()
	if err != nil {
		return nil, err
	}
	var reply bson.D
	err = k.srv.Engine.View(func(tx *engine.Tx) error {
		c := tx.Collection(k.db, coll)
		if c == nil {
			return code.Errorf(code.NamespaceNotFound, "Collection '%s.%s' does not exist to validate.", k.db, coll)
		}
		k.stats.Docs = c.Len()
		reply = bson.D{
			{Key: "ns", Value: c.Namespace()},
			{Key: "nInvalidDocuments", Value: 0},
			{Key: "nrecords", Value: c.Len()},
			{Key: "nIndexes", Value: len(c.Indexes)},
			{Key: "valid", Value: true},
			{Key: "warnings", Value: bson.A{}},
			{Key: "errors", Value: bson.A{}},
		}
		return nil
	})
	return reply, err
}
