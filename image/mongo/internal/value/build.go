package value

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Of encodes a Go value. It takes what replies and updates are made of: nil, booleans, integers,
// doubles, strings, times, bytes, the driver's BSON types, bson.D and bson.A with such values in
// them, and what is encoded already. Anything else is a programming error and panics.
func Of(x any) Value {
	t, data := appendValue(nil, x)
	return Value{Type: t, Data: data}
}

// Make encodes a document.
func Make(d bson.D) Doc { return appendDoc(nil, d) }

// Int32 encodes an integer.
func Int32(n int32) Value {
	return Value{Type: bsoncore.TypeInt32, Data: bsoncore.AppendInt32(nil, n)}
}

// Int64 encodes a long.
func Int64(n int64) Value {
	return Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, n)}
}

// Double encodes a double.
func Double(f float64) Value {
	return Value{Type: bsoncore.TypeDouble, Data: bsoncore.AppendDouble(nil, f)}
}

// String encodes a string.
func String(s string) Value {
	return Value{Type: bsoncore.TypeString, Data: bsoncore.AppendString(nil, s)}
}

// Bool encodes a boolean.
func Bool(b bool) Value {
	return Value{Type: bsoncore.TypeBoolean, Data: bsoncore.AppendBoolean(nil, b)}
}

// Null is null.
func Null() Value { return Value{Type: bsoncore.TypeNull} }

// OfDoc makes a value of a document.
func OfDoc(d Doc) Value { return Value{Type: bsoncore.TypeEmbeddedDocument, Data: d} }

// Array makes an array of values. Those that are missing become null.
func Array(items ...Value) Value {
	start, dst := bsoncore.AppendArrayStart(nil)
	for i, v := range items {
		if Missing(v) {
			v = Null()
		}
		dst = bsoncore.AppendValueElement(dst, strconv.Itoa(i), v)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, start)
	return Value{Type: bsoncore.TypeArray, Data: dst}
}

// List returns the elements of an array.
func List(array []byte) []Value {
	var list []Value
	for _, v := range Items(array) {
		list = append(list, v)
	}
	return list
}

func appendDoc(dst []byte, d bson.D) []byte {
	start, dst := bsoncore.AppendDocumentStart(dst)
	for _, e := range d {
		dst = appendElement(dst, e.Key, e.Value)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, start)
	return dst
}

func appendElement(dst []byte, key string, x any) []byte {
	if v, ok := x.(Value); ok && Missing(v) {
		return dst
	}
	at := len(dst)
	dst = bsoncore.AppendHeader(dst, 0, key)
	t, dst := appendValue(dst, x)
	dst[at] = byte(t)
	return dst
}

func appendValue(dst []byte, x any) (bsoncore.Type, []byte) {
	switch x := x.(type) {
	case nil, bson.Null:
		return bsoncore.TypeNull, dst
	case Value:
		return x.Type, append(dst, x.Data...)
	case Doc:
		return bsoncore.TypeEmbeddedDocument, append(dst, x...)
	case bson.Raw:
		return bsoncore.TypeEmbeddedDocument, append(dst, x...)
	case bson.D:
		return bsoncore.TypeEmbeddedDocument, appendDoc(dst, x)
	case bson.A:
		return bsoncore.TypeArray, appendArray(dst, x)
	case []Doc:
		return bsoncore.TypeArray, appendArray(dst, x)
	case []string:
		return bsoncore.TypeArray, appendArray(dst, x)
	case []Value:
		return bsoncore.TypeArray, append(dst, Array(x...).Data...)
	case bool:
		return bsoncore.TypeBoolean, bsoncore.AppendBoolean(dst, x)
	case int32:
		return bsoncore.TypeInt32, bsoncore.AppendInt32(dst, x)
	case int:
		if int(int32(x)) == x {
			return bsoncore.TypeInt32, bsoncore.AppendInt32(dst, int32(x))
		}
		return bsoncore.TypeInt64, bsoncore.AppendInt64(dst, int64(x))
	case int64:
		return bsoncore.TypeInt64, bsoncore.AppendInt64(dst, x)
	case float64:
		return bsoncore.TypeDouble, bsoncore.AppendDouble(dst, x)
	case string:
		return bsoncore.TypeString, bsoncore.AppendString(dst, x)
	case time.Time:
		return bsoncore.TypeDateTime, bsoncore.AppendTime(dst, x)
	case []byte:
		return bsoncore.TypeBinary, bsoncore.AppendBinary(dst, 0, x)
	}
	return appendSpecial(dst, x)
}

// appendSpecial encodes the driver's types for what Go has no type for.
func appendSpecial(dst []byte, x any) (bsoncore.Type, []byte) {
	switch x := x.(type) {
	case bson.DateTime:
		return bsoncore.TypeDateTime, bsoncore.AppendDateTime(dst, int64(x))
	case bson.ObjectID:
		return bsoncore.TypeObjectID, bsoncore.AppendObjectID(dst, x)
	case bson.Binary:
		return bsoncore.TypeBinary, bsoncore.AppendBinary(dst, x.Subtype, x.Data)
	case bson.Timestamp:
		return bsoncore.TypeTimestamp, bsoncore.AppendTimestamp(dst, x.T, x.I)
	case bson.Regex:
		return bsoncore.TypeRegex, bsoncore.AppendRegex(dst, x.Pattern, x.Options)
	case bson.Decimal128:
		h, l := x.GetBytes()
		return bsoncore.TypeDecimal128, bsoncore.AppendDecimal128(dst, h, l)
	case bson.JavaScript:
		return bsoncore.TypeJavaScript, bsoncore.AppendJavaScript(dst, string(x))
	case bson.Symbol:
		return bsoncore.TypeSymbol, bsoncore.AppendSymbol(dst, string(x))
	case bson.Undefined:
		return bsoncore.TypeUndefined, dst
	case bson.MinKey:
		return bsoncore.TypeMinKey, dst
	case bson.MaxKey:
		return bsoncore.TypeMaxKey, dst
	}
	panic(fmt.Sprintf("value: %T has no BSON form", x))
}

func appendArray[T any](dst []byte, items []T) []byte {
	start, dst := bsoncore.AppendArrayStart(dst)
	for i, x := range items {
		dst = appendElement(dst, strconv.Itoa(i), x)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, start)
	return dst
}

// Builder makes a document field by field. The zero value is ready to use.
type Builder struct{ buf []byte }

// Add appends a field, unless the value is missing.
func (b *Builder) Add(name string, v Value) {
	if Missing(v) {
		return
	}
	if b.buf == nil {
		_, b.buf = bsoncore.AppendDocumentStart(nil)
	}
	b.buf = bsoncore.AppendValueElement(b.buf, name, v)
}

// Doc returns the document and ends the use of the builder.
func (b *Builder) Doc() Doc {
	if b.buf == nil {
		_, b.buf = bsoncore.AppendDocumentStart(nil)
	}
	d, _ := bsoncore.AppendDocumentEnd(b.buf, 0)
	return d
}

// NewUUID returns a random UUID.
func NewUUID() bson.Binary {
	id := make([]byte, 16)
	rand.Read(id)
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return bson.Binary{Subtype: 4, Data: id}
}
