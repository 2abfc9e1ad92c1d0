package value

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Rank is the place of a type in the order of all values. Types of one rank compare by value.
func Rank(t bsoncore.Type) int {
	switch t {
	case bsoncore.TypeMinKey:
		return -1
	case 0, bsoncore.TypeUndefined:
		return 0
	case bsoncore.TypeNull:
		return 5
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return 10
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		return 15
	case bsoncore.TypeEmbeddedDocument:
		return 20
	case bsoncore.TypeArray:
		return 25
	case bsoncore.TypeBinary:
		return 30
	case bsoncore.TypeObjectID:
		return 35
	case bsoncore.TypeBoolean:
		return 40
	case bsoncore.TypeDateTime:
		return 45
	case bsoncore.TypeTimestamp:
		return 47
	case bsoncore.TypeRegex:
		return 50
	case bsoncore.TypeDBPointer:
		return 55
	case bsoncore.TypeJavaScript:
		return 60
	case bsoncore.TypeCodeWithScope:
		return 65
	}
	return 127 // MaxKey
}

// Equal reports whether two values are the same in a query's sense: 1 and 1.0 are.
func Equal(a, b Value) bool { return Compare(a, b) == 0 }

// Compare orders values of any types.
func Compare(a, b Value) int {
	if c := cmp.Compare(Rank(a.Type), Rank(b.Type)); c != 0 {
		return c
	}
	switch a.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDouble, bsoncore.TypeDecimal128:
		return compareNumbers(a, b)
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		return bytes.Compare(text(a), text(b))
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return CompareDocs(a.Data, b.Data)
	case bsoncore.TypeBinary: // By length, subtype, content: the order of the encoding.
		return cmp.Or(cmp.Compare(len(a.Data), len(b.Data)), bytes.Compare(a.Data[4:], b.Data[4:]))
	case bsoncore.TypeDateTime:
		return cmp.Compare(a.DateTime(), b.DateTime())
	case bsoncore.TypeTimestamp:
		return cmp.Compare(binary.LittleEndian.Uint64(a.Data), binary.LittleEndian.Uint64(b.Data))
	case bsoncore.TypeRegex, bsoncore.TypeObjectID, bsoncore.TypeBoolean, bsoncore.TypeDBPointer,
		bsoncore.TypeCodeWithScope:
		return bytes.Compare(a.Data, b.Data)
	}
	return 0
}

// text is the content of a string.
func text(v Value) []byte { return v.Data[4 : len(v.Data)-1] }

// CompareDocs orders documents field by field: by type, then by name, then by value. The shorter of
// two that are otherwise alike is the lesser.
func CompareDocs(a, b []byte) int {
	restA, restB := body(a), body(b)
	for {
		keyA, va, tailA, okA := next(restA)
		keyB, vb, tailB, okB := next(restB)
		switch {
		case !okA && !okB:
			return 0
		case !okA:
			return -1
		case !okB:
			return 1
		}
		if c := cmp.Compare(Rank(va.Type), Rank(vb.Type)); c != 0 {
			return c
		}
		if c := bytes.Compare(keyA, keyB); c != 0 {
			return c
		}
		if c := Compare(va, vb); c != 0 {
			return c
		}
		restA, restB = tailA, tailB
	}
}

// IsNumber reports whether a value is a number of any type.
func IsNumber(v Value) bool { return Rank(v.Type) == 10 }

// IsNaN reports whether a value is not a number.
func IsNaN(v Value) bool {
	switch v.Type {
	case bsoncore.TypeDouble:
		return math.IsNaN(v.Double())
	case bsoncore.TypeDecimal128:
		return decimal(v).IsNaN()
	}
	return false
}

func decimal(v Value) bson.Decimal128 {
	h, l := v.Decimal128()
	return bson.NewDecimal128(h, l)
}

// compareNumbers orders numbers exactly. NaN is less than all others.
func compareNumbers(a, b Value) int {
	if nanA, nanB := IsNaN(a), IsNaN(b); nanA || nanB {
		switch {
		case nanA && nanB:
			return 0
		case nanA:
			return -1
		}
		return 1
	}
	ia, okA := integer(a)
	ib, okB := integer(b)
	switch {
	case okA && okB:
		return cmp.Compare(ia, ib)
	case a.Type == bsoncore.TypeDouble && b.Type == bsoncore.TypeDouble:
		return cmp.Compare(a.Double(), b.Double())
	case okA && b.Type == bsoncore.TypeDouble:
		return compareIntFloat(ia, b.Double())
	case okB && a.Type == bsoncore.TypeDouble:
		return -compareIntFloat(ib, a.Double())
	}
	if c := cmp.Compare(infinity(a), infinity(b)); c != 0 || infinity(a) != 0 {
		return c
	}
	return rational(a).Cmp(rational(b))
}

func integer(v Value) (int64, bool) {
	switch v.Type {
	case bsoncore.TypeInt32:
		return int64(v.Int32()), true
	case bsoncore.TypeInt64:
		return v.Int64(), true
	}
	return 0, false
}

func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := math.Trunc(f)
	return cmp.Or(cmp.Compare(i, int64(whole)), cmp.Compare(0, f-whole))
}

func infinity(v Value) int {
	switch v.Type {
	case bsoncore.TypeDouble:
		switch f := v.Double(); {
		case math.IsInf(f, 1):
			return 1
		case math.IsInf(f, -1):
			return -1
		}
	case bsoncore.TypeDecimal128:
		return decimal(v).IsInf()
	}
	return 0
}

func rational(v Value) *big.Rat {
	r := new(big.Rat)
	switch v.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		i, _ := integer(v)
		return r.SetInt64(i)
	case bsoncore.TypeDouble:
		return r.SetFloat64(v.Double())
	}
	n, exp, err := decimal(v).BigInt()
	if err != nil {
		return r
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
	if exp < 0 {
		return r.SetFrac(n, scale)
	}
	return r.SetInt(n.Mul(n, scale))
}

// Truthy reports whether a value counts as true in an expression: all values do, except false, null, zero and a
// missing one.
func Truthy(v Value) bool {
	switch {
	case Missing(v), IsNull(v):
		return false
	case v.Type == bsoncore.TypeBoolean:
		return v.Boolean()
	case IsNumber(v):
		return IsNaN(v) || compareNumbers(v, Int32(0)) != 0
	}
	return true
}

// Int returns a number that has no fraction as an integer.
func Int(v Value) (int64, bool) {
	switch v.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		return integer(v)
	case bsoncore.TypeDouble:
		f := v.Double()
		return int64(f), f == math.Trunc(f) && f >= -1<<63 && f < 1<<63
	case bsoncore.TypeDecimal128:
		r := rational(v)
		return r.Num().Int64(), r.IsInt() && r.Num().IsInt64()
	}
	return 0, false
}

// Float returns a number as a double.
func Float(v Value) (float64, bool) {
	switch v.Type {
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		i, _ := integer(v)
		return float64(i), true
	case bsoncore.TypeDouble:
		return v.Double(), true
	case bsoncore.TypeDecimal128:
		switch d := decimal(v); {
		case d.IsNaN():
			return math.NaN(), true
		case d.IsInf() != 0:
			return math.Inf(d.IsInf()), true
		}
		f, _ := rational(v).Float64()
		return f, true
	}
	return 0, false
}

// Str returns a string.
func Str(v Value) (string, bool) {
	if v.Type == bsoncore.TypeString || v.Type == bsoncore.TypeSymbol {
		return string(text(v)), true
	}
	return "", false
}
