package shell

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dop251/goja"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

// toDoc encodes a JavaScript object.
func (s *session) toDoc(v goja.Value) (value.Doc, error) {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil, fmt.Errorf("expected an object, but got %v", v)
	}
	return s.encodeObject(o, 0)
}

func (s *session) encodeObject(o *goja.Object, depth int) (value.Doc, error) {
	var b value.Builder
	for _, key := range o.Keys() {
		v, err := s.toBSON(o.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		b.Add(key, v)
	}
	return b.Doc(), nil
}

// toBSON encodes a JavaScript value. What is undefined is missing.
func (s *session) toBSON(v goja.Value, depth int) (value.Value, error) {
	if depth > value.MaxDepth {
		return value.Value{}, errors.New("the object nests too deeply")
	}
	if v == nil || goja.IsUndefined(v) {
		return value.Value{}, nil
	}
	if goja.IsNull(v) {
		return value.Null(), nil
	}
	o, isObject := v.(*goja.Object)
	if !isObject {
		switch x := v.Export().(type) {
		case int64:
			if int64(int32(x)) == x {
				return value.Int32(int32(x)), nil
			}
			return value.Double(float64(x)), nil
		case float64:
			return value.Double(x), nil
		case bool:
			return value.Bool(x), nil
		case string:
			return value.String(x), nil
		}
		return value.String(v.String()), nil
	}
	if kind := o.Get("_bsontype"); kind != nil && !goja.IsUndefined(kind) {
		return special(kind.String(), o)
	}
	switch o.ClassName() {
	case "Date":
		if t, ok := o.Export().(time.Time); ok {
			return value.Of(t), nil
		}
	case "RegExp":
		return value.Of(bson.Regex{Pattern: o.Get("source").String(), Options: o.Get("flags").String()}), nil
	case "Function":
		return value.Of(bson.JavaScript(o.String())), nil
	case "Array":
		var list []value.Value
		for i := range o.Get("length").ToInteger() {
			item, err := s.toBSON(o.Get(strconv.FormatInt(i, 10)), depth+1)
			if err != nil {
				return item, err
			}
			list = append(list, item)
		}
		return value.Array(list...), nil
	}
	d, err := s.encodeObject(o, depth)
	return value.OfDoc(d), err
}

// special encodes one of the types of types.js.
func special(kind string, o *goja.Object) (value.Value, error) {
	text := func(name string) string { return o.Get(name).String() }
	switch kind {
	case "ObjectId":
		id, err := bson.ObjectIDFromHex(text("hex"))
		return value.Of(id), err
	case "Long":
		n, err := strconv.ParseInt(text("value"), 10, 64)
		if err != nil {
			f, ferr := strconv.ParseFloat(text("value"), 64)
			if ferr != nil {
				return value.Value{}, fmt.Errorf("%q is not a number", text("value"))
			}
			n = int64(f)
		}
		return value.Int64(n), nil
	case "Int32":
		return value.Int32(int32(o.Get("value").ToInteger())), nil
	case "Double":
		return value.Double(o.Get("value").ToFloat()), nil
	case "Decimal128":
		d, err := bson.ParseDecimal128(text("value"))
		return value.Of(d), err
	case "Timestamp":
		return value.Of(bson.Timestamp{T: uint32(o.Get("t").ToInteger()), I: uint32(o.Get("i").ToInteger())}), nil
	case "Binary":
		data, err := base64.StdEncoding.DecodeString(text("base64"))
		return value.Of(bson.Binary{Subtype: byte(o.Get("subtype").ToInteger()), Data: data}), err
	case "MinKey":
		return value.Of(bson.MinKey{}), nil
	case "MaxKey":
		return value.Of(bson.MaxKey{}), nil
	}
	return value.Value{}, fmt.Errorf("unknown BSON type %q", kind)
}

// toJS turns a document into a JavaScript object.
func (s *session) toJS(d value.Doc) *goja.Object {
	o := s.vm.NewObject()
	for name, v := range value.Fields(d) {
		o.Set(name, s.valueToJS(v))
	}
	return o
}

func (s *session) valueToJS(v value.Value) goja.Value {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument:
		return s.toJS(v.Data)
	case bsoncore.TypeArray:
		var list []any
		for _, item := range value.Items(v.Data) {
			list = append(list, s.valueToJS(item))
		}
		return s.vm.NewArray(list...)
	case bsoncore.TypeString, bsoncore.TypeSymbol:
		text, _ := value.Str(v)
		return s.vm.ToValue(text)
	case bsoncore.TypeInt32:
		return s.vm.ToValue(v.Int32())
	case bsoncore.TypeDouble:
		if f := v.Double(); f == math.Trunc(f) && math.Abs(f) < 1<<53 && !(f == 0 && math.Signbit(f)) {
			return s.vm.ToValue(int64(f))
		}
		return s.vm.ToValue(v.Double())
	case bsoncore.TypeBoolean:
		return s.vm.ToValue(v.Boolean())
	case bsoncore.TypeNull:
		return goja.Null()
	case bsoncore.TypeDateTime:
		return s.make("Date", v.DateTime())
	case bsoncore.TypeRegex:
		pattern, flags := v.Regex()
		return s.make("RegExp", pattern, flags)
	case bsoncore.TypeObjectID:
		return s.make("ObjectId", bson.ObjectID(v.ObjectID()).Hex())
	case bsoncore.TypeInt64:
		return s.make("Long", strconv.FormatInt(v.Int64(), 10))
	case bsoncore.TypeDecimal128:
		return s.make("Decimal128", value.ValueText(v))
	case bsoncore.TypeTimestamp:
		t, i := v.Timestamp()
		return s.make("Timestamp", t, i)
	case bsoncore.TypeBinary:
		subtype, data := v.Binary()
		return s.make("BinData", subtype, base64.StdEncoding.EncodeToString(data))
	case bsoncore.TypeMinKey:
		return s.make("MinKey")
	case bsoncore.TypeMaxKey:
		return s.make("MaxKey")
	case bsoncore.TypeUndefined:
		return goja.Undefined()
	}
	return s.vm.ToValue(value.ValueText(v))
}

// make calls a constructor.
func (s *session) make(class string, args ...any) goja.Value {
	list := make([]goja.Value, len(args))
	for i, a := range args {
		list[i] = s.vm.ToValue(a)
	}
	o, err := s.vm.New(s.vm.Get(class), list...)
	if err != nil {
		return s.vm.ToValue(fmt.Sprint(args...))
	}
	return o
}
