package value

import (
	"math"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

func decimalOf(s string) bson.Decimal128 {
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		panic(err)
	}
	return d
}

// ascending is values in the documented order of comparison; those in one row are equal.
var ascending = [][]any{
	{bson.MinKey{}},
	{bson.Undefined{}},
	{nil},
	{math.NaN(), decimalOf("NaN")},
	{math.Inf(-1), decimalOf("-Infinity")},
	{-1e300},
	{int64(math.MinInt64)},
	{int32(-1), int64(-1), -1.0, decimalOf("-1.0")},
	{-0.5},
	{0, 0.0, math.Copysign(0, -1), decimalOf("0")},
	{decimalOf("0.1")},
	{0.1}, // A double of 0.1 is a little more.
	{int32(1), int64(1), 1.0, decimalOf("1"), decimalOf("1.00")},
	{1.5},
	{float64(1 << 53), int64(1 << 53)},
	{int64(1<<53 + 1)},
	{int64(math.MaxInt64)},
	{float64(1 << 63)},
	{math.Inf(1), decimalOf("Infinity")},
	{""},
	{"A"},
	{"a", bson.Symbol("a")},
	{"aa"},
	{"b"},
	{bson.D{}},
	{bson.D{{Key: "a", Value: 1}}, bson.D{{Key: "a", Value: 1.0}}},
	{bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}}},
	{bson.D{{Key: "a", Value: 2}}},
	{bson.D{{Key: "b", Value: 0}}},
	{bson.D{{Key: "a", Value: "x"}}}, // The type counts before the name.
	{bson.A{}},
	{bson.A{1}},
	{bson.A{1, 2}},
	{bson.A{2}},
	{bson.Binary{Data: []byte{9}}},
	{bson.Binary{Data: []byte{1, 2}}}, // The length counts first.
	{bson.Binary{Subtype: 4, Data: []byte{0, 0}}},
	{bson.ObjectID{1}},
	{bson.ObjectID{2}},
	{false},
	{true},
	{time.UnixMilli(-1)},
	{time.UnixMilli(1)},
	{bson.Timestamp{T: 1, I: 2}},
	{bson.Timestamp{T: 2, I: 1}},
	{bson.Regex{Pattern: "a"}},
	{bson.Regex{Pattern: "b"}},
	{bson.JavaScript("f")},
	{bson.MaxKey{}},
}

func TestCompare(t *testing.T) {
	for i, row := range ascending {
		for j, other := range ascending {
			for _, a := range row {
				for _, b := range other {
					want := 0
					if i < j {
						want = -1
					} else if i > j {
						want = 1
					}
					if got := Compare(Of(a), Of(b)); got != want {
						t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
}

// TestNumbers compares numbers of all types with each other, which must be a total order.
func TestNumbers(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) Value {
		switch rapid.IntRange(0, 2).Draw(t, "type") {
		case 0:
			return Int32(rapid.Int32().Draw(t, "int"))
		case 1:
			return Int64(rapid.Int64().Draw(t, "long"))
		default:
			return Double(rapid.Float64().Draw(t, "double"))
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c")
		if Compare(a, b) != -Compare(b, a) {
			t.Fatal("not antisymmetric")
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatal("not transitive")
		}
	})
}

func TestText(t *testing.T) {
	d := Make(bson.D{
		{Key: "find", Value: "geo"},
		{Key: "filter", Value: bson.D{}},
		{Key: "n", Value: 1},
		{Key: "l", Value: int64(2)},
		{Key: "d", Value: 1.0},
		{Key: "x", Value: 0.25},
		{Key: "list", Value: bson.A{1, "a", bson.A{}}},
		{Key: "ok", Value: true},
		{Key: "null", Value: nil},
		{Key: "at", Value: time.UnixMilli(5)},
		{Key: "id", Value: bson.ObjectID{0xab}},
		{Key: "u", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
		{Key: "b", Value: []byte{1, 0xff}},
		{Key: "q", Value: `a"b`},
	})
	want := `{ find: "geo", filter: {}, n: 1, l: 2, d: 1.0, x: 0.25, list: [ 1, "a", [] ], ok: true, null: null, at: new Date(5), id: ObjectId('ab0000000000000000000000'), u: UUID("00000000-0000-0000-0000-000000000000"), b: BinData(0, 01FF), q: "a\"b" }`
	if got := Text(d); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(Make(bson.D{{Key: "a", Value: bson.A{1, "x", bson.D{}}}, {Key: "r", Value: bson.Regex{Pattern: "a"}}})))
	for _, row := range ascending {
		f.Add([]byte(Make(bson.D{{Key: "v", Value: row[0]}})))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := Doc(data)
		if Validate(d) != nil {
			return
		}
		// What is valid can be walked, shown and compared.
		_ = Text(d)
		if CompareDocs(d, d) != 0 {
			t.Error("a document differs from itself")
		}
		var b Builder
		for name, v := range Fields(d) {
			b.Add(name, v)
			Truthy(v)
			Int(v)
		}
		if got := b.Doc(); string(got) != string(d) {
			t.Errorf("rebuilt %x, want %x", got, d)
		}
	})
}
