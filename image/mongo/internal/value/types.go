package value

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// typeNames are the aliases that $type takes and errors use.
var typeNames = map[bsoncore.Type]string{
	bsoncore.TypeDouble: "double", bsoncore.TypeString: "string", bsoncore.TypeEmbeddedDocument: "object",
	bsoncore.TypeArray: "array", bsoncore.TypeBinary: "binData", bsoncore.TypeUndefined: "undefined",
	bsoncore.TypeObjectID: "objectId", bsoncore.TypeBoolean: "bool", bsoncore.TypeDateTime: "date",
	bsoncore.TypeNull: "null", bsoncore.TypeRegex: "regex", bsoncore.TypeDBPointer: "dbPointer",
	bsoncore.TypeJavaScript: "javascript", bsoncore.TypeSymbol: "symbol",
	bsoncore.TypeCodeWithScope: "javascriptWithScope", bsoncore.TypeInt32: "int",
	bsoncore.TypeTimestamp: "timestamp", bsoncore.TypeInt64: "long", bsoncore.TypeDecimal128: "decimal",
	bsoncore.TypeMinKey: "minKey", bsoncore.TypeMaxKey: "maxKey",
}

// TypeName is the alias of a value's type.
func TypeName(v Value) string {
	if Missing(v) {
		return "missing"
	}
	return typeNames[v.Type]
}

// TypeNamed finds a type by its alias.
func TypeNamed(name string) (bsoncore.Type, bool) {
	for t, n := range typeNames {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

// TypeNumbered finds a type by its number.
func TypeNumbered(n int64) (bsoncore.Type, bool) {
	if n == -1 {
		return bsoncore.TypeMinKey, true
	}
	if n < 1 || n > 255 {
		return 0, false
	}
	t := bsoncore.Type(n)
	_, ok := typeNames[t]
	return t, ok
}
