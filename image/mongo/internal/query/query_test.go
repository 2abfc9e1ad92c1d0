package query

import (
	"errors"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// doc reads relaxed Extended JSON.
func doc(t testing.TB, text string) value.Doc {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.Make(d)
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		filter string
		yes    []string
		no     []string
	}{
		{`{}`, []string{`{}`, `{"a":1}`}, nil},
		{`{"a":1}`, []string{`{"a":1}`, `{"a":1.0}`, `{"a":{"$numberLong":"1"}}`, `{"a":[0,1]}`}, []string{`{}`, `{"a":2}`, `{"a":"1"}`, `{"a":[[1]]}`, `{"a":{"b":1}}`}},
		{`{"a":null}`, []string{`{}`, `{"a":null}`, `{"a":[null]}`}, []string{`{"a":1}`, `{"a":[]}`}},
		{`{"a":[1,2]}`, []string{`{"a":[1,2]}`, `{"a":[[1,2]]}`}, []string{`{"a":[2,1]}`, `{"a":1}`}},
		{`{"a":{"b":1}}`, []string{`{"a":{"b":1}}`, `{"a":[{"b":1}]}`}, []string{`{"a":{"b":1,"c":1}}`}},
		{`{"a.b":1}`, []string{`{"a":{"b":1}}`, `{"a":[{"b":2},{"b":1}]}`, `{"a":{"b":[1]}}`}, []string{`{"a":1}`, `{"a.b":1}`, `{"a":[[{"b":1}]]}`}},
		{`{"a.0":1}`, []string{`{"a":[1,2]}`, `{"a":{"0":1}}`}, []string{`{"a":[2,1]}`}},
		{`{"a.1.b":1}`, []string{`{"a":[0,{"b":1}]}`}, []string{`{"a":[{"b":1},0]}`}},
		{`{"a.b":null}`, []string{`{}`, `{"a":1}`, `{"a":{}}`, `{"a":[{"b":1},{}]}`}, []string{`{"a":[]}`, `{"a":[1]}`, `{"a":{"b":0}}`}},
		{`{"a":{"$gt":1}}`, []string{`{"a":2}`, `{"a":1.5}`, `{"a":[0,2]}`}, []string{`{"a":1}`, `{"a":"2"}`, `{}`, `{"a":null}`}},
		{`{"a":{"$gte":null}}`, []string{`{}`, `{"a":null}`}, []string{`{"a":1}`}},
		{`{"a":{"$lt":"b"}}`, []string{`{"a":"a"}`}, []string{`{"a":"b"}`, `{"a":1}`}},
		{`{"a":{"$lte":{"$date":"2024-01-01T00:00:00Z"}}}`, []string{`{"a":{"$date":"2023-01-01T00:00:00Z"}}`}, []string{`{"a":{"$date":"2025-01-01T00:00:00Z"}}`, `{"a":1}`}},
		// Different elements may meet the two conditions.
		{`{"a":{"$gt":5,"$lt":3}}`, []string{`{"a":[1,9]}`}, []string{`{"a":4}`}},
		{`{"a":{"$ne":1}}`, []string{`{}`, `{"a":2}`, `{"a":"x"}`}, []string{`{"a":1}`, `{"a":[1,2]}`}},
		{`{"a":{"$in":[1,"x",null]}}`, []string{`{"a":1}`, `{"a":"x"}`, `{}`, `{"a":[3,1]}`}, []string{`{"a":2}`}},
		{`{"a":{"$in":[{"$regularExpression":{"pattern":"^h","options":""}}]}}`, []string{`{"a":"hotel"}`}, []string{`{"a":"motel"}`}},
		{`{"a":{"$nin":[1,2]}}`, []string{`{}`, `{"a":3}`}, []string{`{"a":1}`, `{"a":[5,2]}`}},
		{`{"$and":[{"a":1},{"b":2}]}`, []string{`{"a":1,"b":2}`}, []string{`{"a":1}`}},
		{`{"$or":[{"a":1},{"b":2}]}`, []string{`{"a":1}`, `{"b":2}`}, []string{`{"a":2}`}},
		{`{"$nor":[{"a":1},{"b":2}]}`, []string{`{"a":2}`, `{}`}, []string{`{"b":2}`}},
		{`{"a":{"$not":{"$gt":1}}}`, []string{`{}`, `{"a":1}`, `{"a":"x"}`}, []string{`{"a":2}`, `{"a":[0,2]}`}},
		{`{"a":{"$exists":true}}`, []string{`{"a":null}`, `{"a":[]}`}, []string{`{}`}},
		{`{"a.b":{"$exists":false}}`, []string{`{}`, `{"a":1}`, `{"a":[]}`}, []string{`{"a":{"b":null}}`}},
		{`{"a":{"$type":"string"}}`, []string{`{"a":"x"}`, `{"a":[1,"x"]}`}, []string{`{"a":1}`, `{}`}},
		{`{"a":{"$type":"number"}}`, []string{`{"a":1}`, `{"a":1.5}`}, []string{`{"a":"1"}`}},
		{`{"a":{"$type":4}}`, []string{`{"a":[]}`}, []string{`{"a":1}`}},
		{`{"a":{"$regex":"^h.*l$","$options":"i"}}`, []string{`{"a":"HOTEL"}`, `{"a":["x","hl"]}`}, []string{`{"a":"hotels"}`, `{"a":1}`}},
		{`{"a":{"$regex":"a(?!b)"}}`, []string{`{"a":"ac"}`}, []string{`{"a":"ab"}`}},
		{`{"a":{"$regularExpression":{"pattern":"b","options":""}}}`, []string{`{"a":"abc"}`}, []string{`{"a":"ac"}`}},
		{`{"a":{"$size":2}}`, []string{`{"a":[1,2]}`}, []string{`{"a":[1]}`, `{"a":1}`, `{"a":[[1,2]]}`}},
		{`{"a":{"$all":[1,2]}}`, []string{`{"a":[2,1,3]}`}, []string{`{"a":[1]}`, `{"a":1}`}},
		{`{"a":{"$all":[]}}`, nil, []string{`{"a":[]}`, `{}`}},
		{`{"a":{"$all":[{"$elemMatch":{"x":1}},{"$elemMatch":{"x":2}}]}}`, []string{`{"a":[{"x":1},{"x":2}]}`}, []string{`{"a":[{"x":1}]}`}},
		{`{"a":{"$elemMatch":{"x":1,"y":2}}}`, []string{`{"a":[{"x":1,"y":2}]}`}, []string{`{"a":[{"x":1},{"y":2}]}`, `{"a":{"x":1,"y":2}}`}},
		{`{"a":{"$elemMatch":{"$gt":1,"$lt":5}}}`, []string{`{"a":[0,3]}`}, []string{`{"a":[0,9]}`, `{"a":3}`}},
		{`{"a":{"$mod":[4,1]}}`, []string{`{"a":5}`, `{"a":5.9}`, `{"a":[2,9]}`}, []string{`{"a":6}`, `{"a":"5"}`}},
		{`{"$expr":{"$gt":["$a","$b"]}}`, []string{`{"a":2,"b":1}`}, []string{`{"a":1,"b":1}`}},
		{`{"a":{"$gt":{"$minKey":1}}}`, []string{`{"a":1}`, `{"a":"x"}`}, nil},
	} {
		f, err := Parse(doc(t, tt.filter))
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
			continue
		}
		for _, d := range tt.yes {
			if !f.Match(doc(t, d)) {
				t.Errorf("%s does not match %s", tt.filter, d)
			}
		}
		for _, d := range tt.no {
			if f.Match(doc(t, d)) {
				t.Errorf("%s matches %s", tt.filter, d)
			}
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for _, tt := range []struct {
		filter string
		code   code.Code
		msg    string
	}{
		{`{"$foo":1}`, code.BadValue, "unknown top level operator: $foo"},
		{`{"a":{"$foo":1}}`, code.BadValue, "unknown operator: $foo"},
		{`{"$or":[]}`, code.BadValue, "$and/$or/$nor must be a nonempty array"},
		{`{"$and":1}`, code.BadValue, "$and must be an array"},
		{`{"a":{"$in":1}}`, code.BadValue, "$in needs an array"},
		{`{"a":{"$size":"x"}}`, code.BadValue, `Failed to parse $size. Expected a number in: $size: "x"`},
		{`{"a":{"$type":"foo"}}`, code.BadValue, "Unknown type name alias: foo"},
		{`{"a":{"$mod":[0,1]}}`, code.BadValue, "divisor cannot be 0"},
		{`{"a":{"$not":1}}`, code.BadValue, "$not needs a regex or a document"},
		{`{"a":{"$near":[1,2]}}`, code.NoQueryExecutionPlans, "error processing query: unable to find index for $geoNear query"},
	} {
		_, err := Parse(doc(t, tt.filter))
		var e *code.Error
		if !errors.As(err, &e) || e.Code != tt.code || e.Msg != tt.msg {
			t.Errorf("%s: %v", tt.filter, err)
		}
	}
}

func TestPositions(t *testing.T) {
	for _, tt := range []struct {
		filter, doc string
		index       int
	}{
		{`{"a":2}`, `{"a":[1,2,3]}`, 1},
		{`{"a.b":2}`, `{"a":[{"b":1},{"b":[0,2]}]}`, 1},
		{`{"a":{"$elemMatch":{"$gt":1}}}`, `{"a":[1,0,5]}`, 2},
		{`{"x":1}`, `{"x":1,"a":[1]}`, -1},
	} {
		f, err := Parse(doc(t, tt.filter))
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := f.Find(doc(t, tt.doc)); !ok || m.Index != tt.index {
			t.Errorf("%s on %s: %d, %v", tt.filter, tt.doc, m.Index, ok)
		}
	}
}

func TestSort(t *testing.T) {
	docs := []value.Doc{doc(t, `{"_id":1,"a":3}`), doc(t, `{"_id":2,"a":[9,1]}`), doc(t, `{"_id":3}`), doc(t, `{"_id":4,"a":"x"}`), doc(t, `{"_id":5,"a":[]}`), doc(t, `{"_id":6,"a":3}`)}
	for _, tt := range []struct {
		order string
		want  []int64
	}{
		{`{"a":1}`, []int64{5, 3, 2, 1, 6, 4}},
		{`{"a":-1}`, []int64{4, 2, 1, 6, 3, 5}},
		{`{"a":1,"_id":-1}`, []int64{5, 3, 2, 6, 1, 4}},
		{`{"$natural":-1}`, []int64{6, 5, 4, 3, 2, 1}},
	} {
		o, err := ParseOrder(doc(t, tt.order))
		if err != nil {
			t.Fatal(err)
		}
		list := append([]value.Doc(nil), docs...)
		o.Sort(list)
		for i, d := range list {
			if id, _ := value.Int(value.Get(d, "_id")); id != tt.want[i] {
				t.Errorf("%s: place %d has %d, want %d", tt.order, i, id, tt.want[i])
			}
		}
	}
}

func TestProjection(t *testing.T) {
	const d = `{"_id":1,"a":1,"b":{"c":2,"d":3},"l":[{"x":1,"y":2},{"x":3},4],"n":[1,2,3,4]}`
	for _, tt := range []struct{ spec, want string }{
		{`{"a":1}`, `{ _id: 1, a: 1 }`},
		{`{"a":1,"_id":0}`, `{ a: 1 }`},
		{`{"_id":1}`, `{ _id: 1 }`},
		{`{"_id":0}`, `{ a: 1, b: { c: 2, d: 3 }, l: [ { x: 1, y: 2 }, { x: 3 }, 4 ], n: [ 1, 2, 3, 4 ] }`},
		{`{"b":0,"l":0,"n":0}`, `{ _id: 1, a: 1 }`},
		{`{"b.c":1}`, `{ _id: 1, b: { c: 2 } }`},
		{`{"b":{"c":1}}`, `{ _id: 1, b: { c: 2 } }`},
		{`{"b.c":0,"l":0,"n":0}`, `{ _id: 1, a: 1, b: { d: 3 } }`},
		{`{"l.x":1,"_id":0}`, `{ l: [ { x: 1 }, { x: 3 } ] }`},
		{`{"l.x":0,"_id":0,"a":0,"b":0,"n":0}`, `{ l: [ { y: 2 }, {}, 4 ] }`},
		{`{"n":{"$slice":2},"l":0,"b":0}`, `{ _id: 1, a: 1, n: [ 1, 2 ] }`},
		{`{"n":{"$slice":[-2,1]},"l":0,"b":0}`, `{ _id: 1, a: 1, n: [ 3 ] }`},
		{`{"l":{"$elemMatch":{"x":3}}}`, `{ _id: 1, l: [ { x: 3 } ] }`},
		{`{"n.$":1}`, `{ _id: 1, n: [ 3 ] }`},
		{`{"_id":0,"sum":{"$add":["$a","$b.c"]},"name":"$a"}`, `{ sum: 3, name: 1 }`},
	} {
		p, err := ParseProjection(doc(t, tt.spec))
		if err != nil {
			t.Errorf("%s: %v", tt.spec, err)
			continue
		}
		got, err := p.Apply(doc(t, d), Match{Index: 2}, nil)
		if err != nil || value.Text(got) != tt.want {
			t.Errorf("%s: %s, %v\nwant %s", tt.spec, value.Text(got), err, tt.want)
		}
	}
	for spec, want := range map[string]code.Code{`{"a":1,"b":0}`: 31254, `{"a":0,"b":1}`: 31253, `{"a":1,"a.b":1}`: 31249} {
		if _, err := ParseProjection(doc(t, spec)); code.Of(err) != want {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestBounds(t *testing.T) {
	f, err := Parse(value.Make(bson.D{
		{Key: "a", Value: 1},
		{Key: "b", Value: bson.D{{Key: "$gt", Value: 2}, {Key: "$lte", Value: 5}}},
		{Key: "c", Value: nil},
		{Key: "d", Value: bson.D{{Key: "$in", Value: bson.A{2, 1}}}},
		{Key: "$or", Value: bson.A{bson.D{{Key: "e", Value: 1}}}},
		{Key: "f", Value: bson.D{{Key: "$lt", Value: time.Now()}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a": true, "b": true, "c": false, "d": true, "e": false, "f": true, "g": false} {
		if _, ok := f.Bounds(path); ok != want {
			t.Errorf("%s: %v", path, ok)
		}
	}
	if b, _ := f.Bounds("b"); b.Points != nil || value.ValueText(b.Low) != "2" || value.ValueText(b.High) != "5" || b.HighOpen {
		t.Errorf("%+v", b)
	}
}
