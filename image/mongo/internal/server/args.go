package server

import (
	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func (k *call) wrongType(name string, v value.Value, want string) error {
	return code.Errorf(code.TypeMismatch, "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", k.name, name,
		value.TypeName(v), want)
}

// str returns a field that must be a string.
func (k *call) str(name string) (string, error) {
	v := value.Get(k.body, name)
	s, ok := value.Str(v)
	if !ok {
		if value.Missing(v) {
			return "", code.Errorf(40414, "BSON field '%s.%s' is missing but a required field", k.name, name)
		}
		return "", k.wrongType(name, v, "string")
	}
	return s, nil
}

// coll returns the collection the command is for.
func (k *call) coll() (string, error) {
	v := value.Get(k.body, k.name)
	s, ok := value.Str(v)
	if !ok {
		return "", code.Errorf(code.BadValue, "collection name has invalid type %s", value.TypeName(v))
	}
	if s == "" {
		return "", code.Errorf(code.InvalidNamespace, "Invalid namespace specified '%s.'", k.db)
	}
	return s, nil
}

// doc returns a field that must be a document, if it is there.
func (k *call) doc(name string) (value.Doc, error) {
	v := value.Get(k.body, name)
	if value.Missing(v) || value.IsNull(v) {
		return nil, nil
	}
	if !value.IsDoc(v) {
		return nil, k.wrongType(name, v, "object")
	}
	return v.Data, nil
}

// list returns a field that must be an array of documents.
func (k *call) list(name string) ([]value.Doc, error) {
	v := value.Get(k.body, name)
	if !value.IsArray(v) {
		if value.Missing(v) {
			return nil, code.Errorf(40414, "BSON field '%s.%s' is missing but a required field", k.name, name)
		}
		return nil, k.wrongType(name, v, "array")
	}
	var docs []value.Doc
	for _, item := range value.Items(v.Data) {
		if !value.IsDoc(item) {
			return nil, k.wrongType(name, item, "object")
		}
		docs = append(docs, item.Data)
	}
	return docs, nil
}

// count returns a field that must be a number that is not negative.
func (k *call) count(name string, otherwise int64) (int64, error) {
	v := value.Get(k.body, name)
	if value.Missing(v) || value.IsNull(v) {
		return otherwise, nil
	}
	f, ok := value.Float(v)
	if !ok {
		return 0, k.wrongType(name, v, "number")
	}
	if f < 0 {
		return 0, code.Errorf(51024, "BSON field '%s' value must be >= 0, actual value '%d'", name, int64(f))
	}
	return int64(f), nil
}

func (k *call) flag(name string) bool { return value.Truthy(value.Get(k.body, name)) }

// checkCollation refuses any collation but the simple one.
func checkCollation(d value.Doc) error {
	locale, ok := value.Str(value.At(d, "collation.locale"))
	if ok && locale != "simple" {
		return code.Errorf(code.CommandNotSupported, "collation '%s' is not supported; only 'simple' is", locale)
	}
	return nil
}
