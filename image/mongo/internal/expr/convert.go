package expr

import (
	"math"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

var conversions = map[string]operator{
	"$toString":   to("string"),
	"$toInt":      to("int"),
	"$toLong":     to("long"),
	"$toDouble":   to("double"),
	"$toBool":     to("bool"),
	"$toDate":     to("date"),
	"$toObjectId": to("objectId"),
}

func to(kind string) operator {
	return operator{1, 1, func(_ string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		return convertTo(args[0], kind)
	}}
}

func convert(args map[string]value.Value) (value.Value, error) {
	if nothing(args["input"]) {
		if v, ok := args["onNull"]; ok {
			return v, nil
		}
		return value.Null(), nil
	}
	kind, _ := value.Str(args["to"])
	v, err := convertTo(args["input"], kind)
	if err != nil {
		if fallback, ok := args["onError"]; ok {
			return fallback, nil
		}
	}
	return v, err
}

func convertTo(v value.Value, kind string) (value.Value, error) {
	s, isText := value.Str(v)
	switch kind {
	case "string":
		return toString(v)
	case "bool":
		return value.Bool(value.Truthy(v)), nil
	case "double":
		if f, ok := number(v); ok {
			return value.Double(f), nil
		}
	case "int", "long":
		if n, ok := whole(v); ok && (kind == "long" || int64(int32(n)) == n) {
			return integer(n, kind == "long"), nil
		}
	case "date":
		return toDate(v)
	case "objectId":
		if id, err := bson.ObjectIDFromHex(s); isText && err == nil {
			return value.Of(id), nil
		}
		if v.Type == bsoncore.TypeObjectID {
			return v, nil
		}
	default:
		return v, code.Errorf(code.BadValue, "Unknown type name: %s", kind)
	}
	if isText {
		return v, code.Errorf(code.ConversionFailure, "Failed to parse number '%s' in $convert with no onError value",
			s)
	}
	return v, code.Errorf(code.ConversionFailure,
		"Unsupported conversion from %s to %s in $convert with no onError value", value.TypeName(v), kind)
}

// number reads a number, a boolean, a date or a text as a double.
func number(v value.Value) (float64, bool) {
	if s, ok := value.Str(v); ok {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil
	}
	if v.Type == bsoncore.TypeBoolean || v.Type == bsoncore.TypeDateTime {
		n, _ := whole(v)
		return float64(n), true
	}
	return value.Float(v)
}

// whole is number for integers; fractions are cut off.
func whole(v value.Value) (int64, bool) {
	if s, ok := value.Str(v); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	}
	switch {
	case v.Type == bsoncore.TypeDateTime:
		return v.DateTime(), true
	case v.Type == bsoncore.TypeBoolean:
		return int64(v.Data[0]), true
	case isInt(v):
		return value.Int(v)
	}
	f, ok := value.Float(v)
	return int64(f), ok && !math.IsNaN(f) && f >= -1<<63 && f < 1<<63
}

func toString(v value.Value) (value.Value, error) {
	if s, ok := value.Str(v); ok {
		return value.String(s), nil
	}
	switch v.Type {
	case bsoncore.TypeObjectID:
		return value.String(bson.ObjectID(v.ObjectID()).Hex()), nil
	case bsoncore.TypeDateTime:
		return value.String(time.UnixMilli(v.DateTime()).UTC().Format("2006-01-02T15:04:05.000Z")), nil
	case bsoncore.TypeDouble:
		return value.String(strconv.FormatFloat(v.Double(), 'g', -1, 64)), nil
	case bsoncore.TypeBoolean, bsoncore.TypeInt32, bsoncore.TypeInt64, bsoncore.TypeDecimal128:
		return value.String(value.ValueText(v)), nil
	}
	return v, code.Errorf(code.ConversionFailure,
		"Unsupported conversion from %s to string in $convert with no onError value", value.TypeName(v))
}

func toDate(v value.Value) (value.Value, error) {
	if s, ok := value.Str(v); ok {
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
			if t, err := time.Parse(layout, s); err == nil {
				return value.Of(t), nil
			}
		}
		return v, code.Errorf(code.ConversionFailure, "Error parsing date string '%s'", s)
	}
	if value.IsNumber(v) && v.Type != bsoncore.TypeInt32 {
		ms, _ := value.Float(v)
		return dateTime(int64(ms)), nil
	}
	t, err := instant(v)
	return value.Of(t), err
}
