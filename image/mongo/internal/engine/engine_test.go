package engine

import (
	"errors"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func newEnv(t testing.TB) *kit.Env {
	m := kittest.New(t).Machine("db", "10.244.0.2")
	env := m.Env()
	if err := env.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	return env
}

func open(t testing.TB, env *kit.Env) *Engine {
	t.Helper()
	e, err := Open(env, Options{Dir: "/data"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// insert adds documents with the given fields to d.c.
func insert(t testing.TB, e *Engine, docs ...bson.D) {
	t.Helper()
	err := e.Update(func(tx *Tx) error {
		c := tx.Collection("d", "c")
		if c == nil {
			var err error
			if c, err = tx.Create("d", "c", nil); err != nil {
				return err
			}
		}
		for _, d := range docs {
			if err := tx.Insert(c, value.Make(d)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dump is all there is, as a text.
func dump(e *Engine) string {
	text := ""
	e.View(func(tx *Tx) error {
		for _, db := range tx.Databases() {
			for _, c := range tx.Collections(db) {
				text += c.Namespace() + value.Text(c.Options) + "\n"
				for _, x := range c.Indexes {
					text += "  " + value.Text(x.Spec) + "\n"
				}
				c.Docs(func(d value.Doc) bool {
					text += "  " + value.Text(d) + "\n"
					return true
				})
			}
		}
		return nil
	})
	return text
}

func index(key bson.D, name string, more ...bson.E) value.Doc {
	return value.Make(append(bson.D{{Key: "v", Value: 2}, {Key: "key", Value: key}, {Key: "name", Value: name}}, more...))
}

// fill does one of each operation.
func fill(t testing.TB, e *Engine) {
	t.Helper()
	for i := range 10 {
		insert(t, e, bson.D{{Key: "_id", Value: i}, {Key: "k", Value: i % 3}})
	}
	err := e.Update(func(tx *Tx) error {
		c := tx.Collection("d", "c")
		if err := tx.CreateIndex(c, index(bson.D{{Key: "k", Value: 1}}, "k_1")); err != nil {
			return err
		}
		if err := tx.CreateIndex(c, index(bson.D{{Key: "x", Value: 1}}, "x_1")); err != nil {
			return err
		}
		tx.DropIndex(c, "x_1")
		f, _ := query.Parse(value.Make(bson.D{{Key: "k", Value: 1}}))
		hits, _ := c.Search(f, 0)
		tx.Delete(c, hits[0].ID)
		if err := tx.Replace(c, hits[1].ID, value.Make(bson.D{{Key: "_id", Value: 4}, {Key: "new", Value: true}})); err != nil {
			return err
		}
		for _, name := range []string{"gone", "old"} {
			if _, err := tx.Create("d", name, nil); err != nil {
				return err
			}
		}
		tx.Drop(tx.Collection("d", "gone"))
		tx.SetOptions(c, value.Make(bson.D{{Key: "capped", Value: false}}))
		return tx.Rename(tx.Collection("d", "old"), "other", "new")
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRecovery(t *testing.T) {
	env := newEnv(t)
	e := open(t, env)
	fill(t, e)
	want := dump(e)
	for range 3 { // From the journal, and again.
		if e.Close() != nil {
			t.Fatal("close")
		}
		if e = open(t, env); dump(e) != want {
			t.Fatalf("got\n%s\nwant\n%s", dump(e), want)
		}
	}
	if err := e.Checkpoint(env, "/data"); err != nil { // From a checkpoint.
		t.Fatal(err)
	}
	if e = open(t, env); dump(e) != want || e.JournalSize() != 0 {
		t.Fatalf("after a checkpoint, with a journal of %d bytes, got\n%s", e.JournalSize(), dump(e))
	}
	insert(t, e, bson.D{{Key: "_id", Value: "late"}}) // From a checkpoint and a journal.
	want = dump(e)
	if e = open(t, env); dump(e) != want {
		t.Fatalf("got\n%s\nwant\n%s", dump(e), want)
	}
}

// TestTornTail cuts the journal at every byte: what is whole before the cut is recovered.
func TestTornTail(t *testing.T) {
	env := newEnv(t)
	e := open(t, env)
	states := map[int64]string{0: ""}
	for i := range 4 {
		insert(t, e, bson.D{{Key: "_id", Value: i}})
		states[e.JournalSize()] = dump(e)
	}
	log := logName("/data", 1)
	data, err := env.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := readFrame(data)
	states[int64(frameHeader+len(first))] = "d.c{}\n  { v: 2, key: { _id: 1 }, name: \"_id_\" }\n"
	want := ""
	for cut := range len(data) + 1 {
		if s, ok := states[int64(cut)]; ok {
			want = s
		}
		if err := env.WriteFile(log, data[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		e := open(t, env)
		if got := dump(e); got != want {
			t.Fatalf("cut at %d: got\n%s\nwant\n%s", cut, got, want)
		}
		if cut%7 == 0 { // What comes next is recovered, too.
			if err := e.Update(func(tx *Tx) error { _, err := tx.Create("e", "after", nil); return err }); err != nil {
				t.Fatal(err)
			}
			want := dump(e)
			if got := dump(open(t, env)); got != want {
				t.Fatalf("cut at %d and gone on: got\n%s\nwant\n%s", cut, got, want)
			}
		}
	}
}

func TestCorruptCheckpoint(t *testing.T) {
	env := newEnv(t)
	e := open(t, env)
	fill(t, e)
	if err := e.Checkpoint(env, "/data"); err != nil {
		t.Fatal(err)
	}
	data, err := env.ReadFile("/data/" + checkpointFile)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := env.WriteFile("/data/"+checkpointFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(env, Options{Dir: "/data"}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}

func FuzzReplay(f *testing.F) {
	env := newEnv(f)
	e := open(f, env)
	fill(f, e)
	data, err := env.ReadFile(logName("/data", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:100])
	f.Fuzz(func(t *testing.T, data []byte) {
		e := &Engine{dbs: map[string]map[string]*Collection{}, journal: &journal{}}
		for len(data) > 0 { // The checksum would keep the fuzzer out.
			n := min(len(data), 64)
			e.replay(fuzzed(data[:n]))
			data = data[n:]
		}
		if good, err := e.replayAll(appendFrame(nil, value.Make(bson.D{{Key: "op", Value: opCreate}, {Key: "ns", Value: "z.z"}}))); err == nil && good == 0 {
			t.Error("a good frame was not read")
		}
	})
}

// fuzzed makes an operation of any bytes.
func fuzzed(data []byte) value.Doc {
	if d := value.Doc(data); value.Validate(d) == nil {
		return d
	}
	ops := []string{opCreate, opDrop, opRename, opInsert, opUpdate, opDelete, opIndex, opDropIndex, opOptions, "?"}
	var o any = int(data[0])
	if len(data) > 1 && data[1]%2 == 0 {
		o = bson.D{{Key: "_id", Value: int(data[0])}, {Key: "key", Value: bson.D{{Key: "a", Value: 1}}}, {Key: "name", Value: "n"}}
	}
	return value.Make(bson.D{{Key: "op", Value: ops[int(data[0])%len(ops)]}, {Key: "ns", Value: fmt.Sprintf("d.c%d", len(data)%3)}, {Key: "o", Value: o}, {Key: "db", Value: "d"}, {Key: "to", Value: "t"}})
}

func TestPlans(t *testing.T) {
	e := open(t, newEnv(t))
	for i := range 200 {
		insert(t, e, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: i % 10}, {Key: "b", Value: i % 7}, {Key: "l", Value: bson.A{i % 5, i % 3}}, {Key: "s", Value: fmt.Sprint(i)}})
	}
	if err := e.Update(func(tx *Tx) error {
		c := tx.Collection("d", "c")
		for _, key := range []bson.D{{{Key: "a", Value: 1}, {Key: "b", Value: -1}}, {{Key: "l", Value: 1}}, {{Key: "s", Value: 1}}} {
			if err := tx.CreateIndex(c, index(key, key[0].Key)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	between := func(low, high any) bson.D { return bson.D{{Key: "$gte", Value: low}, {Key: "$lt", Value: high}} }
	for _, tt := range []struct {
		filter bson.D
		plan   string
		keys   int
	}{
		{bson.D{}, "COLLSCAN", 0},
		{bson.D{{Key: "x", Value: 1}}, "COLLSCAN", 0},
		{bson.D{{Key: "_id", Value: 7}}, "IDHACK", 1},
		{bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{7, 9, 7, "x"}}}}}, "IXSCAN { _id: 1 }", 2},
		{bson.D{{Key: "a", Value: 3}}, "IXSCAN { a: 1, b: -1 }", 20},
		{bson.D{{Key: "a", Value: 3}, {Key: "b", Value: 2}}, "IXSCAN { a: 1, b: -1 }", 3},
		{bson.D{{Key: "a", Value: 3}, {Key: "b", Value: between(1, 3)}}, "IXSCAN { a: 1, b: -1 }", 6},
		{bson.D{{Key: "a", Value: between(2, 4)}}, "IXSCAN { a: 1, b: -1 }", 40},
		{bson.D{{Key: "a", Value: bson.D{{Key: "$lt", Value: 1}}}}, "IXSCAN { a: 1, b: -1 }", 20},
		{bson.D{{Key: "b", Value: 1}}, "COLLSCAN", 0},
		{bson.D{{Key: "l", Value: 4}}, "IXSCAN { l: 1 }", 40},
		{bson.D{{Key: "l", Value: bson.D{{Key: "$gt", Value: 3}, {Key: "$lt", Value: 1}}}}, "IXSCAN { l: 1 }", -1},
		{bson.D{{Key: "s", Value: bson.D{{Key: "$lt", Value: "11"}}}}, "IXSCAN { s: 1 }", 13},
	} {
		f, err := query.Parse(value.Make(tt.filter))
		if err != nil {
			t.Fatal(err)
		}
		e.View(func(tx *Tx) error {
			c := tx.Collection("d", "c")
			hits, stats := c.Search(f, 0)
			want := map[string]bool{}
			c.Docs(func(d value.Doc) bool {
				if f.Match(d) {
					want[value.Text(d)] = true
				}
				return true
			})
			if stats.Plan != tt.plan || tt.keys >= 0 && stats.Keys != tt.keys {
				t.Errorf("%v: %+v", tt.filter, stats)
			}
			if len(hits) != len(want) {
				t.Errorf("%v: %d found by the plan, %d by a scan", tt.filter, len(hits), len(want))
			}
			for _, h := range hits {
				if !want[value.Text(h.Doc)] {
					t.Errorf("%v: found %s", tt.filter, value.Text(h.Doc))
				}
			}
			return nil
		})
	}
}

func TestUnique(t *testing.T) {
	e := open(t, newEnv(t))
	insert(t, e, bson.D{{Key: "_id", Value: 1}, {Key: "e", Value: "a"}, {Key: "l", Value: bson.A{1, 2}}})
	if err := e.Update(func(tx *Tx) error {
		c := tx.Collection("d", "c")
		unique := bson.E{Key: "unique", Value: true}
		if err := tx.CreateIndex(c, index(bson.D{{Key: "e", Value: 1}}, "e_1", unique)); err != nil {
			return err
		}
		return tx.CreateIndex(c, index(bson.D{{Key: "l", Value: 1}}, "l_1", unique, bson.E{Key: "sparse", Value: true}))
	}); err != nil {
		t.Fatal(err)
	}
	try := func(d bson.D) error {
		return e.Update(func(tx *Tx) error { return tx.Insert(tx.Collection("d", "c"), value.Make(d)) })
	}
	for _, tt := range []struct {
		doc bson.D
		err string
	}{
		{bson.D{{Key: "_id", Value: 1.0}}, "E11000 duplicate key error collection: d.c index: _id_ dup key: { _id: 1.0 }"},
		{bson.D{{Key: "_id", Value: 2}, {Key: "e", Value: "a"}}, `E11000 duplicate key error collection: d.c index: e_1 dup key: { e: "a" }`},
		{bson.D{{Key: "_id", Value: 2}, {Key: "l", Value: 2}}, "E11000 duplicate key error collection: d.c index: l_1 dup key: { l: 2 }"},
		{bson.D{{Key: "_id", Value: 2}}, ""}, // Its e is null, its l is not indexed.
		{bson.D{{Key: "_id", Value: 3}}, "E11000 duplicate key error collection: d.c index: e_1 dup key: { e: null }"},
		{bson.D{{Key: "_id", Value: 3}, {Key: "e", Value: "b"}}, ""},
	} {
		err := try(tt.doc)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != tt.err || code.Of(err) != code.DuplicateKey) {
			t.Errorf("%v: %v", tt.doc, err)
		}
	}
	// An index that cannot be unique is not made.
	err := e.Update(func(tx *Tx) error {
		return tx.CreateIndex(tx.Collection("d", "c"), index(bson.D{{Key: "none", Value: 1}}, "none_1", bson.E{Key: "unique", Value: true}))
	})
	if code.Of(err) != code.DuplicateKey {
		t.Errorf("%v", err)
	}
}
