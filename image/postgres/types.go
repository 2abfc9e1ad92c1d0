package postgres

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// typeOf is what a name of a type stands for. Names are matched by their beginnings, in this order.
var typeOf = []struct {
	name string
	oid  uint32
	sql  string // what the engine is told
	said string // what people are told
}{
	{"bigserial", pgtype.Int8OID, "INTEGER", "bigint"},
	{"smallserial", pgtype.Int2OID, "INTEGER", "smallint"},
	{"serial", pgtype.Int4OID, "INTEGER", "integer"},
	{"bigint", pgtype.Int8OID, "BIGINT", "bigint"},
	{"int8", pgtype.Int8OID, "BIGINT", "bigint"},
	{"smallint", pgtype.Int2OID, "SMALLINT", "smallint"},
	{"int2", pgtype.Int2OID, "SMALLINT", "smallint"},
	{"int4", pgtype.Int4OID, "INTEGER", "integer"},
	{"integer", pgtype.Int4OID, "INTEGER", "integer"},
	{"int", pgtype.Int4OID, "INTEGER", "integer"},
	{"varchar", pgtype.VarcharOID, "VARCHAR", "character varying"},
	{"character varying", pgtype.VarcharOID, "VARCHAR", "character varying"},
	{"character", pgtype.BPCharOID, "CHAR", "character"},
	{"char", pgtype.BPCharOID, "CHAR", "character"},
	{"text", pgtype.TextOID, "TEXT", "text"},
	{"boolean", pgtype.BoolOID, "BOOLEAN", "boolean"},
	{"bool", pgtype.BoolOID, "BOOLEAN", "boolean"},
	{"double precision", pgtype.Float8OID, "DOUBLE PRECISION", "double precision"},
	{"float8", pgtype.Float8OID, "DOUBLE PRECISION", "double precision"},
	{"float4", pgtype.Float4OID, "REAL", "real"},
	{"float", pgtype.Float8OID, "DOUBLE PRECISION", "double precision"},
	{"real", pgtype.Float4OID, "REAL", "real"},
	{"numeric", pgtype.NumericOID, "NUMERIC", "numeric"},
	{"decimal", pgtype.NumericOID, "NUMERIC", "numeric"},
	{"timestamptz", pgtype.TimestamptzOID, "TIMESTAMPTZ", "timestamp with time zone"},
	{"timestamp with time zone", pgtype.TimestamptzOID, "TIMESTAMPTZ", "timestamp with time zone"},
	{"timestamp", pgtype.TimestampOID, "TIMESTAMP", "timestamp without time zone"},
	{"date", pgtype.DateOID, "DATE", "date"},
	{"uuid", pgtype.UUIDOID, "UUID", "uuid"},
	{"jsonb", pgtype.JSONBOID, "JSONB", "jsonb"},
	{"json", pgtype.JSONOID, "JSON", "json"},
	{"bytea", pgtype.ByteaOID, "BLOB", "bytea"},
	{"blob", pgtype.ByteaOID, "BLOB", "bytea"},
}

// oidOf is the type of a column by its declaration; 0 if nothing is known.
func oidOf(declared string) uint32 {
	declared = strings.ToLower(declared)
	for _, t := range typeOf {
		if strings.HasPrefix(declared, t.name) {
			return t.oid
		}
	}
	return 0
}

// saidOf is how people are told the type of a column.
func saidOf(declared string) string {
	lower := strings.ToLower(declared)
	for _, t := range typeOf {
		if strings.HasPrefix(lower, t.name) {
			if i := strings.IndexByte(lower, '('); i >= 0 {
				return t.said + lower[i:]
			}
			return t.said
		}
	}
	return lower
}

// How times are kept.
const (
	timeFormat      = "2006-01-02 15:04:05.000000-07:00"
	plainTimeFormat = "2006-01-02 15:04:05.000000"
)

func parseTime(s string) (time.Time, error) {
	for _, f := range []string{
		timeFormat, "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999-07:00", time.RFC3339Nano,
		"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02", "2006-01-02 15:04",
	} {
		if t, err := time.Parse(f, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, failf(codeBadText, "invalid input syntax for type timestamp: %q", s)
}

// asText is a value as the text format has it.
func asText(oid uint32, v any) []byte {
	switch x := v.(type) {
	case nil:
		return nil
	case int64:
		if oid == pgtype.BoolOID {
			return []byte(map[bool]string{true: "t", false: "f"}[x != 0])
		}
		return strconv.AppendInt(nil, x, 10)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1e15 {
			return strconv.AppendFloat(nil, x, 'f', -1, 64)
		}
		return strconv.AppendFloat(nil, x, 'g', -1, 64)
	case bool:
		return []byte(map[bool]string{true: "t", false: "f"}[x])
	case []byte:
		if oid == pgtype.ByteaOID {
			return append([]byte(`\x`), hex.EncodeToString(x)...)
		}
		return x
	case time.Time:
		return []byte(timeText(oid, x))
	case string:
		switch oid {
		case pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID:
			if t, err := parseTime(x); err == nil {
				return []byte(timeText(oid, t))
			}
		}
		return []byte(x)
	}
	return fmt.Append(nil, v)
}

func timeText(oid uint32, t time.Time) string {
	switch oid {
	case pgtype.DateOID:
		return t.Format("2006-01-02")
	case pgtype.TimestampOID:
		return t.UTC().Format("2006-01-02 15:04:05.999999")
	}
	return t.UTC().Format("2006-01-02 15:04:05.999999-07")
}

// asBinary is a value as the binary format has it.
func asBinary(m *pgtype.Map, oid uint32, v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	plain := string(asText(oid, v))
	var value any = plain
	switch oid {
	case pgtype.BoolOID:
		value = plain == "t" || plain == "1" || plain == "true"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		n, err := strconv.ParseInt(plain, 10, 64)
		if err != nil {
			return nil, failf(codeBadText, "invalid input syntax for type integer: %q", plain)
		}
		value = n
	case pgtype.Float4OID, pgtype.Float8OID:
		x, err := strconv.ParseFloat(plain, 64)
		if err != nil {
			return nil, failf(codeBadText, "invalid input syntax for type double precision: %q", plain)
		}
		value = x
	case pgtype.NumericOID:
		var n pgtype.Numeric
		if err := n.Scan(plain); err != nil {
			return nil, failf(codeBadText, "invalid input syntax for type numeric: %q", plain)
		}
		value = n
	case pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID:
		t, err := parseTime(plain)
		if err != nil {
			return nil, err
		}
		value = t
	case pgtype.ByteaOID:
		if b, ok := v.([]byte); ok {
			return b, nil
		}
		return []byte(plain), nil
	case pgtype.UUIDOID:
		var u pgtype.UUID
		if err := u.Scan(plain); err != nil {
			return nil, failf(codeBadText, "invalid input syntax for type uuid: %q", plain)
		}
		value = u
	}
	b, err := m.Encode(oid, pgtype.BinaryFormatCode, value, nil)
	if err != nil {
		return nil, failf("22003", "a value cannot be sent as its type: %v", err)
	}
	return b, nil
}

// decode reads a parameter of a client.
func decode(m *pgtype.Map, oid uint32, format int16, data []byte) (any, error) {
	if data == nil {
		return nil, nil
	}
	if oid == 0 || format == pgtype.TextFormatCode && (oid == pgtype.TextOID || oid == pgtype.VarcharOID) {
		return string(data), nil
	}
	bad := func(err error) error { return failf(codeBadText, "invalid input for a parameter: %v", err) }
	switch oid {
	case pgtype.BoolOID:
		var v pgtype.Bool
		err := m.Scan(oid, format, data, &v)
		if err != nil {
			return nil, bad(err)
		}
		return v.Bool, nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		var v pgtype.Int8
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v.Int64, nil
	case pgtype.Float4OID, pgtype.Float8OID:
		var v pgtype.Float8
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v.Float64, nil
	case pgtype.NumericOID:
		var v pgtype.Numeric
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		if v.Exp > 1000 || v.Exp < -1000 {
			return nil, failf("22003", "value overflows numeric format")
		}
		x, err := v.Float64Value()
		if err != nil {
			return nil, bad(err)
		}
		return x.Float64, nil
	case pgtype.TimestamptzOID:
		var v pgtype.Timestamptz
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v.Time.UTC().Format(timeFormat), nil
	case pgtype.TimestampOID:
		var v pgtype.Timestamp
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v.Time.Format(plainTimeFormat), nil
	case pgtype.DateOID:
		var v pgtype.Date
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v.Time.Format("2006-01-02"), nil
	case pgtype.ByteaOID:
		var v []byte
		if err := m.Scan(oid, format, data, &v); err != nil {
			return nil, bad(err)
		}
		return v, nil
	}
	var v string
	if err := m.Scan(oid, format, data, &v); err != nil {
		return nil, bad(err)
	}
	return v, nil
}
