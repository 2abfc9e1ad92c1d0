package mongo

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func TestCRUD(t *testing.T) {
	b := startBox(t)
	ctx := t.Context()
	c := b.connect(plainURI).Database("geo-db").Collection("geo")
	res, err := c.InsertOne(ctx, bson.D{{Key: "hotelId", Value: "1"}, {Key: "lat", Value: 37.7867}})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := res.InsertedID.(bson.ObjectID); !ok {
		t.Errorf("inserted %v", res.InsertedID)
	}
	many := []any{}
	for i := range 300 {
		many = append(many, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 7}, {Key: "hotelId", Value: "x"}})
	}
	if _, err := c.InsertMany(ctx, many); err != nil {
		t.Fatal(err)
	}
	// More than the first batch holds.
	cur, err := c.Find(ctx, bson.D{{Key: "n", Value: bson.D{{Key: "$gte", Value: 3}}}}, options.Find().SetSort(bson.D{{Key: "_id", Value: -1}}).SetBatchSize(50))
	if err != nil {
		t.Fatal(err)
	}
	var got []struct {
		ID int `bson:"_id"`
		N  int
	}
	if err := cur.All(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 171 || got[0].ID != 299 || got[170].ID != 3 {
		t.Errorf("found %d, %v", len(got), got[0])
	}
	up, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 5}}, bson.D{{Key: "$set", Value: bson.D{{Key: "a.b", Value: 1}}}, {Key: "$inc", Value: bson.D{{Key: "n", Value: 10}}}})
	if err != nil || up.MatchedCount != 1 || up.ModifiedCount != 1 {
		t.Errorf("%v %v", up, err)
	}
	up, err = c.UpdateOne(ctx, bson.D{{Key: "_id", Value: "new"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: true}}}}, options.UpdateOne().SetUpsert(true))
	if err != nil || up.UpsertedID != "new" {
		t.Errorf("%v %v", up, err)
	}
	n, err := c.CountDocuments(ctx, bson.D{})
	if err != nil || n != 302 {
		t.Errorf("%d %v", n, err)
	}
	if n, err = c.EstimatedDocumentCount(ctx); err != nil || n != 302 {
		t.Errorf("%d %v", n, err)
	}
	del, err := c.DeleteMany(ctx, bson.D{{Key: "n", Value: 0}})
	if err != nil || del.DeletedCount != 43 {
		t.Errorf("%v %v", del, err)
	}
	var doc bson.D
	err = c.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$push", Value: bson.D{{Key: "l", Value: "v"}}}},
		options.FindOneAndUpdate().SetReturnDocument(options.After).SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "l", Value: 1}})).Decode(&doc)
	if want := (bson.D{{Key: "l", Value: bson.A{"v"}}}); err != nil || !cmp.Equal(doc, want) {
		t.Errorf("%v %v", doc, err)
	}
	if err := c.FindOne(ctx, bson.D{{Key: "_id", Value: "none"}}).Err(); !errors.Is(err, driver.ErrNoDocuments) {
		t.Errorf("%v", err)
	}
	values := c.Distinct(ctx, "n", bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 6}}}})
	var ns []int
	if err := values.Decode(&ns); err != nil || !cmp.Equal(ns, []int{1, 2, 3, 4, 15}) {
		t.Errorf("%v %v", ns, err)
	}
	if _, err := c.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 2}}, bson.D{{Key: "r", Value: 1}}); err != nil {
		t.Error(err)
	}
	cur, err = c.Aggregate(ctx, bson.A{
		bson.D{{Key: "$match", Value: bson.D{{Key: "hotelId", Value: "x"}}}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$n"}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
		bson.D{{Key: "$limit", Value: 2}},
	})
	var groups []bson.M
	if err == nil {
		err = cur.All(ctx, &groups)
	}
	if want := []bson.M{{"_id": int32(1), "count": int32(43)}, {"_id": int32(2), "count": int32(42)}}; err != nil || !cmp.Equal(groups, want) {
		t.Errorf("%v %v", groups, err)
	}
}

func TestUniqueIndex(t *testing.T) {
	b := startBox(t)
	ctx := t.Context()
	c := b.connect(plainURI).Database("user").Collection("user")
	name, err := c.Indexes().CreateOne(ctx, driver.IndexModel{Keys: bson.D{{Key: "username", Value: 1}}, Options: options.Index().SetUnique(true)})
	if err != nil || name != "username_1" {
		t.Fatalf("%q, %v", name, err)
	}
	if _, err := c.InsertMany(ctx, []any{bson.M{"_id": 1, "username": "a"}, bson.M{"_id": 2, "username": "a"}, bson.M{"_id": 3, "username": "b"}}, options.InsertMany().SetOrdered(false)); !driver.IsDuplicateKeyError(err) {
		t.Errorf("%v", err)
	}
	if n, _ := c.CountDocuments(ctx, bson.D{}); n != 2 {
		t.Errorf("%d documents", n)
	}
	_, err = c.InsertOne(ctx, bson.M{"username": "b"})
	var we driver.WriteException
	if !errors.As(err, &we) || we.WriteErrors[0].Code != 11000 || we.WriteErrors[0].Message != `E11000 duplicate key error collection: user.user index: username_1 dup key: { username: "b" }` {
		t.Errorf("%v", err)
	}
	_, err = c.UpdateOne(ctx, bson.M{"_id": 3}, bson.M{"$set": bson.M{"username": "a"}})
	if !driver.IsDuplicateKeyError(err) {
		t.Errorf("%v", err)
	}
	specs, err := c.Indexes().ListSpecifications(ctx)
	if err != nil || len(specs) != 2 || specs[1].Name != "username_1" || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v %v", specs, err)
	}
}

func TestErrors(t *testing.T) {
	b := startBox(t)
	db := b.connect(plainURI).Database("test")
	for _, tt := range []struct {
		cmd  bson.D
		code int32
		msg  string
	}{
		{bson.D{{Key: "frobnicate", Value: 1}}, 59, "no such command: 'frobnicate'"},
		{bson.D{{Key: "drop", Value: "none"}}, 26, "ns not found"},
		{bson.D{{Key: "find", Value: "c"}, {Key: "filter", Value: bson.M{"a": bson.M{"$foo": 1}}}}, 2, "unknown operator: $foo"},
		{bson.D{{Key: "listDatabases", Value: 1}}, 13, "listDatabases may only be run against the admin database."},
		{bson.D{{Key: "getMore", Value: int64(5)}, {Key: "collection", Value: "c"}}, 43, "cursor id 5 not found"},
		{bson.D{{Key: "insert", Value: "c"}, {Key: "documents", Value: bson.A{bson.M{}}}, {Key: "txnNumber", Value: int64(1)}}, 20, "Transaction numbers are only allowed on a replica set member or mongos"},
		{bson.D{{Key: "aggregate", Value: "c"}, {Key: "pipeline", Value: bson.A{bson.M{"$foo": 1}}}, {Key: "cursor", Value: bson.M{}}}, 40324, "Unrecognized pipeline stage name: '$foo'"},
	} {
		if err := errorOf(t, db, tt.cmd); err.Code != tt.code || err.Message != tt.msg {
			t.Errorf("%v: %d %q", tt.cmd, err.Code, err.Message)
		}
	}
	if err := errorOf(t, b.connect(plainURI).Database("admin"), bson.D{{Key: "replSetGetStatus", Value: 1}}); err.Code != 76 || err.Name != "NoReplicationEnabled" {
		t.Errorf("%v", err)
	}
}

func TestRestart(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			b := startBox(t)
			ctx := t.Context()
			client := b.connect(plainURI)
			c := client.Database("d").Collection("c")
			if _, err := c.InsertMany(ctx, []any{bson.M{"_id": 1}, bson.M{"_id": 2}, bson.M{"_id": 3}}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Indexes().CreateOne(ctx, driver.IndexModel{Keys: bson.D{{Key: "k", Value: 1}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.UpdateByID(ctx, 2, bson.M{"$set": bson.M{"k": "v"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.DeleteOne(ctx, bson.M{"_id": 3}); err != nil {
				t.Fatal(err)
			}
			client.Disconnect(ctx)
			code := b.stop(sig)
			if sig == syscall.SIGKILL && b.server.Read("/data/db/mongod.lock") != "1\n" {
				t.Error("a killed server has cleaned up")
			}
			if sig == syscall.SIGTERM && (code != 0 || b.server.Read("/data/db/mongod.lock") != "") {
				t.Errorf("exit %d, lock %q", code, b.server.Read("/data/db/mongod.lock"))
			}
			b.start()
			c = b.connect(plainURI).Database("d").Collection("c")
			cur, err := c.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))
			var got []bson.D
			if err == nil {
				err = cur.All(ctx, &got)
			}
			want := []bson.D{{{Key: "_id", Value: int32(1)}}, {{Key: "_id", Value: int32(2)}, {Key: "k", Value: "v"}}}
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("%v %v", got, err)
			}
			if specs, err := c.Indexes().ListSpecifications(ctx); err != nil || len(specs) != 2 {
				t.Errorf("%v %v", specs, err)
			}
		})
	}
}
