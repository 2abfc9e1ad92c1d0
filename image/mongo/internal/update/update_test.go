package update

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func doc(t testing.TB, text string) value.Doc {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.Make(d)
}

func TestApply(t *testing.T) {
	now := time.UnixMilli(1000)
	for _, tt := range []struct{ doc, update, want string }{
		{`{"_id":1,"a":1}`, `{"$set":{"a":2,"b":3}}`, `{ _id: 1, a: 2, b: 3 }`},
		{`{"_id":1}`, `{"$set":{"z":1,"a.b.c":2}}`, `{ _id: 1, a: { b: { c: 2 } }, z: 1 }`}, // Fields are added in order of their names.
		{`{"_id":1,"a":[1]}`, `{"$set":{"a.0":5,"a.3":6}}`, `{ _id: 1, a: [ 5, null, null, 6 ] }`},
		{`{"_id":1,"a":1,"b":{"c":1,"d":2}}`, `{"$unset":{"a":"","b.c":1,"x.y":1}}`, `{ _id: 1, b: { d: 2 } }`},
		{`{"_id":1,"a":[1,2]}`, `{"$unset":{"a.0":1}}`, `{ _id: 1, a: [ null, 2 ] }`},
		{`{"_id":1,"a":1}`, `{"$inc":{"a":2,"b":1.5}}`, `{ _id: 1, a: 3, b: 1.5 }`},
		{`{"_id":1,"a":2147483647}`, `{"$inc":{"a":1}}`, `{ _id: 1, a: 2147483648 }`},
		{`{"_id":1,"a":3}`, `{"$mul":{"a":2,"b":5}}`, `{ _id: 1, a: 6, b: 0 }`},
		{`{"_id":1,"a":3,"b":3}`, `{"$min":{"a":2},"$max":{"b":2,"c":1}}`, `{ _id: 1, a: 2, b: 3, c: 1 }`},
		{`{"_id":1}`, `{"$push":{"a":1}}`, `{ _id: 1, a: [ 1 ] }`},
		{`{"_id":1,"a":[1]}`, `{"$push":{"a":[2]}}`, `{ _id: 1, a: [ 1, [ 2 ] ] }`},
		{`{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[2,3]}}}`, `{ _id: 1, a: [ 1, 2, 3 ] }`},
		{`{"_id":1,"a":[1]}`, `{"$push":{"a":{"$each":[2,3],"$position":0}}}`, `{ _id: 1, a: [ 2, 3, 1 ] }`},
		{`{"_id":1,"a":[3,1]}`, `{"$push":{"a":{"$each":[2],"$sort":1,"$slice":2}}}`, `{ _id: 1, a: [ 1, 2 ] }`},
		{`{"_id":1,"a":[{"s":3}]}`, `{"$push":{"a":{"$each":[{"s":9},{"s":1}],"$sort":{"s":-1},"$slice":-2}}}`, `{ _id: 1, a: [ { s: 3 }, { s: 1 } ] }`},
		{`{"_id":1,"a":[1]}`, `{"$addToSet":{"a":{"$each":[1,2,2]}}}`, `{ _id: 1, a: [ 1, 2 ] }`},
		{`{"_id":1}`, `{"$addToSet":{"a":"x"}}`, `{ _id: 1, a: [ "x" ] }`},
		{`{"_id":1,"a":[1,2,3,2]}`, `{"$pull":{"a":2}}`, `{ _id: 1, a: [ 1, 3 ] }`},
		{`{"_id":1,"a":[1,2,3]}`, `{"$pull":{"a":{"$gte":2}}}`, `{ _id: 1, a: [ 1 ] }`},
		{`{"_id":1,"a":[{"u":1,"t":2},{"u":2}]}`, `{"$pull":{"a":{"u":1}}}`, `{ _id: 1, a: [ { u: 2 } ] }`},
		{`{"_id":1,"a":[1,2,3]}`, `{"$pullAll":{"a":[1,3]}}`, `{ _id: 1, a: [ 2 ] }`},
		{`{"_id":1,"a":[1,2,3],"b":[1,2]}`, `{"$pop":{"a":1,"b":-1}}`, `{ _id: 1, a: [ 1, 2 ], b: [ 2 ] }`},
		{`{"_id":1,"a":1}`, `{"$rename":{"a":"b.c"}}`, `{ _id: 1, b: { c: 1 } }`},
		{`{"_id":1}`, `{"$setOnInsert":{"a":1}}`, `{ _id: 1 }`},
		{`{"_id":1}`, `{"$currentDate":{"a":true,"b":{"$type":"timestamp"}}}`, `{ _id: 1, a: new Date(1000), b: Timestamp(1, 1) }`},
		{`{"_id":1,"a":[{"x":1},{"x":2}]}`, `{"$set":{"a.$[].x":0}}`, `{ _id: 1, a: [ { x: 0 }, { x: 0 } ] }`},
		{`{"_id":1,"a":[{"x":1},{"x":2}]}`, `{"$set":{"a.$[e].y":9}}`, `{ _id: 1, a: [ { x: 1 }, { x: 2, y: 9 } ] }`},
		{`{"_id":1,"a":[4,5]}`, `{"$inc":{"a.$":10}}`, `{ _id: 1, a: [ 4, 15 ] }`},
		{`{"_id":1,"a":1}`, `{"b":2}`, `{ _id: 1, b: 2 }`},
		{`{"_id":1,"a":1}`, `{"b":2,"_id":1}`, `{ _id: 1, b: 2 }`},
	} {
		var filters []value.Value
		if tt.update == `{"$set":{"a.$[e].y":9}}` {
			filters = append(filters, value.OfDoc(doc(t, `{"e.x":{"$gt":1}}`)))
		}
		u, err := Parse(doc(t, tt.update), filters)
		if err != nil {
			t.Errorf("%s: %v", tt.update, err)
			continue
		}
		got, err := u.Apply(doc(t, tt.doc), query.Match{Index: 1}, now)
		if err != nil || value.Text(got) != tt.want {
			t.Errorf("%s on %s: %s, %v\nwant %s", tt.update, tt.doc, value.Text(got), err, tt.want)
		}
	}
}

func TestNoChange(t *testing.T) {
	d := doc(t, `{"_id":1,"a":[1,2],"b":5}`)
	for _, text := range []string{`{"$set":{"b":5}}`, `{"$pull":{"a":9}}`, `{"$addToSet":{"a":1}}`, `{"$max":{"b":1}}`, `{"$unset":{"x":1}}`, `{"_id":1,"a":[1,2],"b":5}`} {
		u, err := Parse(doc(t, text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := u.Apply(d, query.Match{Index: -1}, time.Now()); err != nil || &got[0] != &d[0] {
			t.Errorf("%s: %s, %v", text, value.Text(got), err)
		}
	}
}

func TestUpdateErrors(t *testing.T) {
	const d = `{"_id":1,"a":"x","n":1,"l":[1]}`
	for _, tt := range []struct {
		update string
		code   code.Code
		msg    string
	}{
		{`{"$foo":{"a":1}}`, code.FailedToParse, "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array"},
		{`{"$set":{}}`, code.FailedToParse, "'$set' is empty. You must specify a field like so: {$set: {<field>: ...}}"},
		{`{"$set":{"_id":2}}`, code.ImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'"},
		{`{"_id":2}`, code.ImmutableField, "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2"},
		{`{"$set":{"n.x":1}}`, code.PathNotViable, "Cannot create field 'x' in element {n: 1}"},
		{`{"$set":{"l.x":1}}`, code.PathNotViable, "Cannot create field 'x' in element {l: [ 1 ]}"},
		{`{"$set":{"a":1},"$inc":{"a":1}}`, code.ConflictingUpdateOperators, "Updating the path 'a' would create a conflict at 'a'"},
		{`{"$set":{"a.b":1},"$unset":{"a":1}}`, code.ConflictingUpdateOperators, "Updating the path 'a.b' would create a conflict at 'a'"},
		{`{"$inc":{"a":1}}`, code.TypeMismatch, "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 'a' of non-numeric type string"},
		{`{"$inc":{"n":"x"}}`, code.TypeMismatch, `Cannot increment with non-numeric argument: {n: "x"}`},
		{`{"$push":{"a":1}}`, code.BadValue, "The field 'a' must be an array but is of type string in document {_id: 1}"},
		{`{"$pull":{"a":1}}`, code.BadValue, "Cannot apply $pull to a non-array value"},
		{`{"$pop":{"a":1}}`, code.TypeMismatch, "Path 'a' contains an element of non-array type 'string'"},
		{`{"$set":{"l.$":1}}`, code.BadValue, "The positional operator did not find the match needed from the query."},
		{`{"$set":{"l.$[e]":1}}`, code.BadValue, "No array filter found for identifier 'e' in path 'l.$[e]'"},
		{`{"$set":{"":1}}`, code.EmptyFieldName, "An empty update path is not valid."},
	} {
		u, err := Parse(doc(t, tt.update), nil)
		if err == nil {
			_, err = u.Apply(doc(t, d), query.Match{Index: -1}, time.Now())
		}
		var e *code.Error
		if !errors.As(err, &e) || e.Code != tt.code || e.Msg != tt.msg {
			t.Errorf("%s: %v %q\nwant %v %q", tt.update, code.Of(err), err, tt.code, tt.msg)
		}
	}
}

func TestUpsert(t *testing.T) {
	for _, tt := range []struct{ filter, update, want string }{
		{`{"_id":7,"a":{"$gt":1}}`, `{"$set":{"b":1}}`, `{ _id: 7, b: 1 }`},
		{`{"_id":7,"a.b":2}`, `{"$setOnInsert":{"c":1},"$inc":{"n":1}}`, `{ _id: 7, a: { b: 2 }, c: 1, n: 1 }`},
		{`{"$and":[{"_id":7},{"x":{"$eq":1}}]}`, `{"$push":{"l":1}}`, `{ _id: 7, x: 1, l: [ 1 ] }`},
		{`{"_id":7,"x":1}`, `{"y":2}`, `{ _id: 7, y: 2 }`},
		{`{"x":1}`, `{"_id":8,"y":2}`, `{ _id: 8, y: 2 }`},
	} {
		f, err := query.Parse(doc(t, tt.filter))
		if err != nil {
			t.Fatal(err)
		}
		u, err := Parse(doc(t, tt.update), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := u.Insert(f, time.Now()); err != nil || value.Text(got) != tt.want {
			t.Errorf("%s %s: %s, %v", tt.filter, tt.update, value.Text(got), err)
		}
	}
}
