package value

import (
	"bytes"
	"encoding/binary"
	"errors"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// MaxDepth is how deep documents may nest.
const MaxDepth = 180

// MaxSize is how large a document may be, in bytes.
const MaxSize = 16 << 20

var (
	errInvalid = errors.New("invalid BSON")
	errDepth   = errors.New("BSONObj exceeds maximum nested object depth")
)

// Validate checks that a document is well formed.
func Validate(d Doc) error { return validate(d, MaxDepth) }

func validate(d []byte, depth int) error {
	if depth == 0 {
		return errDepth
	}
	if len(d) < 5 || int64(int32(binary.LittleEndian.Uint32(d))) != int64(len(d)) || d[len(d)-1] != 0 {
		return errInvalid
	}
	for rest := []byte(d[4:]); ; {
		if len(rest) == 1 {
			return nil // Its own end.
		}
		_, v, tail, ok := next(rest)
		if !ok || len(tail) == 0 {
			return errInvalid
		}
		if err := validateValue(v, depth); err != nil {
			return err
		}
		rest = tail
	}
}

func validateValue(v Value, depth int) error {
	switch v.Type {
	case bsoncore.TypeEmbeddedDocument, bsoncore.TypeArray:
		return validate(v.Data, depth-1)
	case bsoncore.TypeString, bsoncore.TypeSymbol, bsoncore.TypeJavaScript:
		return validateString(v.Data)
	case bsoncore.TypeDBPointer:
		return validateString(v.Data[:max(0, len(v.Data)-12)])
	case bsoncore.TypeBoolean:
		if v.Data[0] > 1 {
			return errInvalid
		}
	case bsoncore.TypeBinary:
		return validateBinary(v.Data)
	case bsoncore.TypeRegex:
		if bytes.Count(v.Data, []byte{0}) != 2 || v.Data[len(v.Data)-1] != 0 {
			return errInvalid
		}
	case bsoncore.TypeCodeWithScope:
		return validateCode(v.Data, depth)
	}
	return nil
}

// oldBinary is a subtype whose content begins with its length once more.
const oldBinary = 2

func validateBinary(b []byte) error {
	if len(b) < 5 || int64(binary.LittleEndian.Uint32(b))+5 != int64(len(b)) {
		return errInvalid
	}
	if inner := b[5:]; b[4] == oldBinary &&
		(len(inner) < 4 || int64(binary.LittleEndian.Uint32(inner))+4 != int64(len(inner))) {
		return errInvalid
	}
	return nil
}

func validateString(b []byte) error {
	if len(b) < 5 || int64(binary.LittleEndian.Uint32(b))+4 != int64(len(b)) || b[len(b)-1] != 0 {
		return errInvalid
	}
	return nil
}

// validateCode checks code with its scope: a length, a string and a document.
func validateCode(b []byte, depth int) error {
	if len(b) < 14 {
		return errInvalid
	}
	n := int64(binary.LittleEndian.Uint32(b[4:])) + 4
	if n > int64(len(b)-4) {
		return errInvalid
	}
	if err := validateString(b[4 : 4+n]); err != nil {
		return err
	}
	return validate(b[4+n:], depth-1)
}
