package mlog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// quote returns a string of JSON. Nearly all that is logged is as it is there.
func quote(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r > '~' }) {
		return `"` + s + `"`
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}

// writeJSON writes a value in relaxed Extended JSON.
func writeJSON(b *strings.Builder, v value.Value) {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		sep := "{"
		for name, f := range value.Fields(v.Data) {
			b.WriteString(sep + quote(name) + ":")
			writeJSON(b, f)
			sep = ","
		}
		if sep == "{" {
			b.WriteString(sep)
		}
		b.WriteString("}")
	case bsoncore.TypeArray:
		b.WriteString("[")
		for i, item := range value.Items(v.Data) {
			if i > 0 {
				b.WriteString(",")
			}
			writeJSON(b, item)
		}
		b.WriteString("]")
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		s, _ := value.Str(v)
		b.WriteString(quote(s))
	case bsoncore.TypeInt32, bsoncore.TypeInt64:
		n, _ := value.Int(v)
		b.WriteString(strconv.FormatInt(n, 10))
	case bsoncore.TypeDouble:
		writeDouble(b, v.Double())
	case bsoncore.TypeBoolean:
		b.WriteString(strconv.FormatBool(v.Boolean()))
	case bsoncore.TypeNull, bsoncore.TypeUndefined:
		b.WriteString("null")
	case bsoncore.TypeObjectID:
		fmt.Fprintf(b, `{"$oid":"%x"}`, v.Data)
	case bsoncore.TypeDateTime:
		fmt.Fprintf(b, `{"$date":"%s"}`, time.UnixMilli(v.DateTime()).UTC().Format("2006-01-02T15:04:05.000Z"))
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		fmt.Fprintf(b, `{"$timestamp":{"t":%d,"i":%d}}`, t, i)
	case bsoncore.TypeBinary:
		writeBinary(b, v)
	default:
		b.WriteString(quote(value.ValueText(v)))
	}
}

func writeDouble(b *strings.Builder, f float64) {
	switch {
	case math.IsNaN(f):
		b.WriteString(`{"$numberDouble":"NaN"}`)
	case math.IsInf(f, 0):
		fmt.Fprintf(b, `{"$numberDouble":"%s"}`, strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64)+"inity", "+"))
	default:
		b.WriteString(value.ValueText(value.Double(f)))
	}
}

func writeBinary(b *strings.Builder, v value.Value) {
	subtype, data := v.Binary()
	if subtype == 4 && len(data) == 16 {
		fmt.Fprintf(b, `{"$uuid":"%x-%x-%x-%x-%x"}`, data[:4], data[4:6], data[6:8], data[8:10], data[10:])
		return
	}
	fmt.Fprintf(b, `{"$binary":{"base64":"%s","subType":"%x"}}`, base64.StdEncoding.EncodeToString(data), subtype)
}
