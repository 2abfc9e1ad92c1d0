package aggregate

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/query"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func parse(t testing.TB, text string) value.Value {
	t.Helper()
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(`{"v":`+text+`}`), false, &d); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value.Get(value.Make(d), "v")
}

func docs(t testing.TB, text string) (list []value.Doc) {
	t.Helper()
	for _, v := range value.Items(parse(t, text).Data) {
		list = append(list, v.Data)
	}
	return list
}

const hotels = `[
	{"_id":1,"city":"SF","stars":4,"rates":[{"p":100},{"p":80}]},
	{"_id":2,"city":"SF","stars":3,"rates":[]},
	{"_id":3,"city":"NY","stars":5,"rates":[{"p":300}]},
	{"_id":4,"stars":1}]`

const cities = `[{"_id":"SF","pop":1},{"_id":"NY","pop":8}]`

func TestPipelines(t *testing.T) {
	for _, tt := range []struct{ pipeline, want string }{
		{`[{"$match":{"city":"SF"}},{"$project":{"city":1}}]`, `[ { _id: 1, city: "SF" }, { _id: 2, city: "SF" } ]`},
		{
			`[{"$group":{"_id":"$city","n":{"$sum":1},"avg":{"$avg":"$stars"},"max":{"$max":"$stars"},"ids":{"$push":"$_id"}}},{"$sort":{"_id":1}}]`,
			`[ { _id: null, n: 1, avg: 1.0, max: 1, ids: [ 4 ] }, { _id: "NY", n: 1, avg: 5.0, max: 5, ids: [ 3 ] }, { _id: "SF", n: 2, avg: 3.5, max: 4, ids: [ 1, 2 ] } ]`,
		},
		{`[{"$group":{"_id":null,"first":{"$first":"$_id"},"last":{"$last":"$_id"},"set":{"$addToSet":"$city"}}}]`, `[ { _id: null, first: 1, last: 4, set: [ "SF", "NY" ] } ]`},
		{`[{"$sort":{"stars":-1}},{"$skip":1},{"$limit":2},{"$project":{"_id":1}}]`, `[ { _id: 1 }, { _id: 2 } ]`},
		{`[{"$unwind":"$rates"},{"$project":{"p":"$rates.p"}}]`, `[ { _id: 1, p: 100 }, { _id: 1, p: 80 }, { _id: 3, p: 300 } ]`},
		{
			`[{"$match":{"_id":{"$in":[2,4]}}},{"$unwind":{"path":"$rates","preserveNullAndEmptyArrays":true,"includeArrayIndex":"i"}}]`,
			`[ { _id: 2, city: "SF", stars: 3, i: null }, { _id: 4, stars: 1, i: null } ]`,
		},
		{`[{"$match":{"stars":{"$gt":3}}},{"$count":"good"}]`, `[ { good: 2 } ]`},
		{`[{"$match":{"_id":9}},{"$count":"n"}]`, `[]`},
		{`[{"$match":{"_id":3}},{"$addFields":{"stars":"five","x.y":{"$size":"$rates"}}},{"$unset":["rates","city"]}]`, `[ { _id: 3, stars: "five", x: { y: 1 } } ]`},
		{`[{"$match":{"_id":1}},{"$lookup":{"from":"cities","localField":"city","foreignField":"_id","as":"c"}},{"$project":{"c":1}}]`, `[ { _id: 1, c: [ { _id: "SF", pop: 1 } ] } ]`},
		{`[{"$match":{"_id":1}},{"$lookup":{"from":"cities","let":{"n":"$city"},"pipeline":[{"$match":{"$expr":{"$ne":["$_id","$$n"]}}},{"$project":{"pop":1,"_id":0}}],"as":"c"}},{"$project":{"c":1}}]`, `[ { _id: 1, c: [ { pop: 8 } ] } ]`},
		{`[{"$match":{"_id":1}},{"$replaceRoot":{"newRoot":{"$mergeObjects":[{"a":1},{"$arrayElemAt":["$rates",0]}]}}}]`, `[ { a: 1, p: 100 } ]`},
		{`[{"$sortByCount":"$city"},{"$limit":1}]`, `[ { _id: "SF", count: 2 } ]`},
		{`[{"$facet":{"a":[{"$count":"n"}],"b":[{"$match":{"_id":1}},{"$project":{"_id":1}}]}}]`, `[ { a: [ { n: 4 } ], b: [ { _id: 1 } ] } ]`},
		{`[{"$match":{"_id":4}},{"$project":{"_id":1}},{"$unionWith":"cities"}]`, `[ { _id: 4 }, { _id: "SF", pop: 1 }, { _id: "NY", pop: 8 } ]`},
	} {
		p, err := Parse(parse(t, tt.pipeline))
		if err != nil {
			t.Errorf("%s: %v", tt.pipeline, err)
			continue
		}
		find := func(from string, f *query.Filter) (found []value.Doc) {
			for _, d := range docs(t, map[string]string{"hotels": hotels, "cities": cities}[from]) {
				if f.Match(d) {
					found = append(found, d)
				}
			}
			return found
		}
		out, err := p.Run(&Env{Find: find}, find("hotels", p.Filter()))
		if got := value.ValueText(value.Of(out)); err != nil || got != tt.want {
			t.Errorf("%s\n got %s, %v\nwant %s", tt.pipeline, got, err, tt.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	const d = `{"a":5,"b":2.5,"s":"Hello","l":[3,1,2],"o":{"x":1},"n":null,"at":{"$date":"2024-03-05T06:07:08.009Z"}}`
	for _, tt := range []struct{ expr, want string }{
		{`{"$add":["$a","$b",1]}`, "8.5"},
		{`{"$subtract":["$a",7]}`, "-2"},
		{`{"$multiply":["$a",2]}`, "10"},
		{`{"$divide":["$a",2]}`, "2.5"},
		{`{"$mod":["$a",3]}`, "2"},
		{`{"$add":["$a","$n"]}`, "null"},
		{`{"$round":[2.567,1]}`, "2.6"},
		{`{"$abs":-3}`, "3"},
		{`{"$gt":["$a",3]}`, "true"},
		{`{"$cmp":["$a","$s"]}`, "-1"},
		{`{"$and":["$a",{"$not":["$n"]}]}`, "true"},
		{`{"$cond":[{"$gte":["$a",5]},"big","small"]}`, `"big"`},
		{`{"$cond":{"if":"$n","then":1,"else":2}}`, "2"},
		{`{"$ifNull":["$missing","none"]}`, `"none"`},
		{`{"$switch":{"branches":[{"case":{"$eq":["$a",1]},"then":"one"}],"default":"other"}}`, `"other"`},
		{`{"$concat":["$s"," ","there"]}`, `"Hello there"`},
		{`{"$toUpper":"$s"}`, `"HELLO"`},
		{`{"$substrCP":["$s",1,3]}`, `"ell"`},
		{`{"$strLenCP":"$s"}`, "5"},
		{`{"$split":["a,b",","]}`, `[ "a", "b" ]`},
		{`{"$trim":{"input":"  x "}}`, `"x"`},
		{`{"$size":"$l"}`, "3"},
		{`{"$arrayElemAt":["$l",-1]}`, "2"},
		{`{"$in":[1,"$l"]}`, "true"},
		{`{"$slice":["$l",1,2]}`, "[ 1, 2 ]"},
		{`{"$filter":{"input":"$l","as":"i","cond":{"$gt":["$$i",1]}}}`, "[ 3, 2 ]"},
		{`{"$map":{"input":"$l","in":{"$multiply":["$$this",2]}}}`, "[ 6, 2, 4 ]"},
		{`{"$reduce":{"input":"$l","initialValue":0,"in":{"$add":["$$value","$$this"]}}}`, "6"},
		{`{"$sum":"$l"}`, "6"},
		{`{"$max":["$a",9]}`, "9"},
		{`{"$let":{"vars":{"x":2},"in":{"$add":["$$x","$a"]}}}`, "7"},
		{`{"$type":"$b"}`, `"double"`},
		{`{"$toString":"$a"}`, `"5"`},
		{`{"$toInt":"7"}`, "7"},
		{`{"$convert":{"input":"x","to":"int","onError":-1}}`, "-1"},
		{`{"$year":"$at"}`, "2024"},
		{`{"$dateToString":{"date":"$at","format":"%Y-%m-%d %H:%M"}}`, `"2024-03-05 06:07"`},
		{`{"$objectToArray":"$o"}`, `[ { k: "x", v: 1 } ]`},
		{`{"$literal":"$a"}`, `"$a"`},
		{`"$$ROOT.o.x"`, "1"},
		{`{"x":"$a","y":["$b"]}`, "{ x: 5, y: [ 2.5 ] }"},
	} {
		p, err := Parse(parse(t, `[{"$project":{"_id":0,"r":`+tt.expr+`}}]`))
		if err != nil {
			// A document with a field of a number would be read as a projection.
			p, err = Parse(parse(t, `[{"$replaceWith":{"r":`+tt.expr+`}}]`))
		}
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		out, err := p.Run(&Env{}, []value.Doc{parse(t, d).Data})
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		if got := value.ValueText(value.Get(out[0], "r")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.expr, got, tt.want)
		}
	}
}

func TestPipelineErrors(t *testing.T) {
	for pipeline, want := range map[string]code.Code{
		`[{"$foo":1}]`: 40324, `[{"$limit":0}]`: 15958, `[{"$group":{}}]`: 15955, `[{"$project":{"a":{"$foo":1}}}]`: code.InvalidPipelineOperator,
		`[{"$group":{"_id":1,"n":{"$foo":1}}}]`: 15952, `[{"$match":1,"$limit":1}]`: 40323, `[{"$unwind":"a"}]`: 28818, `[{"$replaceWith":"$x"}]`: 40228,
		`[{"$project":{"a":{"$divide":[1,0]}}}]`: 16608, `{"a":1}`: code.TypeMismatch,
	} {
		p, err := Parse(parse(t, pipeline))
		if err == nil {
			_, err = p.Run(&Env{}, []value.Doc{value.Make(nil)})
		}
		if code.Of(err) != want {
			t.Errorf("%s: %d %v, want %d", pipeline, code.Of(err), err, want)
		}
	}
}
