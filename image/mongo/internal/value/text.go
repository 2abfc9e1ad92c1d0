package value

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Text writes a document the way the server does in its messages: { find: "geo", filter: {} }.
func Text(d Doc) string {
	var b strings.Builder
	writeDoc(&b, d)
	return b.String()
}

// ValueText writes a value the way the server does in its messages.
func ValueText(v Value) string {
	var b strings.Builder
	writeValue(&b, v)
	return b.String()
}

func writeDoc(b *strings.Builder, d Doc) {
	sep := "{ "
	for key, v := range Fields(d) {
		b.WriteString(sep + key + ": ")
		writeValue(b, v)
		sep = ", "
	}
	if sep == "{ " {
		b.WriteString("{}")
		return
	}
	b.WriteString(" }")
}

func writeArray(b *strings.Builder, a []byte) {
	sep := "[ "
	for _, v := range Items(a) {
		b.WriteString(sep)
		writeValue(b, v)
		sep = ", "
	}
	if sep == "[ " {
		b.WriteString("[]")
		return
	}
	b.WriteString(" ]")
}

func writeValue(b *strings.Builder, v Value) {
	switch v.Type {
	case 0:
		b.WriteString("EOO")
	case bsoncore.TypeEmbeddedDocument:
		writeDoc(b, v.Data)
	case bsoncore.TypeArray:
		writeArray(b, v.Data)
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		b.WriteString(`"` + escape(string(text(v))) + `"`)
	case bsoncore.TypeJavaScript:
		b.WriteString(string(text(v)))
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		n, _ := integer(v)
		b.WriteString(strconv.FormatInt(n, 10))
	case bsoncore.TypeDouble:
		b.WriteString(doubleText(v.Double()))
	case bsoncore.TypeDecimal128:
		b.WriteString(decimal(v).String())
	case bsoncore.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case bsoncore.TypeNull:
		b.WriteString("null")
	case bsoncore.TypeUndefined:
		b.WriteString("undefined")
	case bsoncore.TypeMinKey:
		b.WriteString("MinKey")
	case bsoncore.TypeMaxKey:
		b.WriteString("MaxKey")
	case bsoncore.TypeObjectID:
		fmt.Fprintf(b, "ObjectId('%x')", v.Data)
	case bsoncore.TypeDateTime:
		fmt.Fprintf(b, "new Date(%d)", v.DateTime())
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(b, "Timestamp(%d, %d)", t, i)
	case bsoncore.TypeRegex:
		pattern, options := v.Regex()
		b.WriteString("/" + pattern + "/" + options)
	case bsoncore.TypeBinary:
		writeBinary(b, v)
	default:
		b.WriteString(v.String())
	}
}

func writeBinary(b *strings.Builder, v Value) {
	subtype, data := v.Binary()
	if subtype == 4 && len(data) == 16 {
		fmt.Fprintf(b, `UUID("%x-%x-%x-%x-%x")`, data[:4], data[4:6], data[6:8], data[8:10], data[10:])
		return
	}
	fmt.Fprintf(b, "BinData(%d, %X)", subtype, data)
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func escape(s string) string { return escapes.Replace(s) }

// doubleText writes a double so that it does not look like an integer.
func doubleText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan.0"
	case math.IsInf(f, 1):
		return "inf.0"
	case math.IsInf(f, -1):
		return "-inf.0"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		s = strconv.FormatFloat(f, 'f', 1, 64)
	}
	return s
}
