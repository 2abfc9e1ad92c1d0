package jaeger

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// maxValues is how many values of one key are put into the table. A key with more, such as a URL or
// an ID, has its values in the spans.
const maxValues = 64

// table numbers strings. It only grows: names, keys and frequent values are few.
type table struct {
	number map[string]uint32
	list   []string
	values map[uint32]int // how many values a key has in the table
}

func newTable() *table {
	return &table{number: map[string]uint32{}, values: map[uint32]int{}}
}

func (t *table) add(s string) uint32 {
	n, ok := t.number[s]
	if !ok {
		n = uint32(len(t.list))
		t.list = append(t.list, s)
		t.number[s] = n
	}
	return n
}

// The kinds of a packed value.
const (
	inlineString = iota
	tableString
	boolFalse
	boolTrue
	integer
	float
	binaryBytes
)

func (t *table) packTag(b []byte, key string, v *common.AnyValue) []byte {
	k := t.add(key)
	b = binary.AppendUvarint(b, uint64(k))
	switch x := v.GetValue().(type) {
	case *common.AnyValue_BoolValue:
		if x.BoolValue {
			return append(b, boolTrue)
		}
		return append(b, boolFalse)
	case *common.AnyValue_IntValue:
		return binary.AppendVarint(append(b, integer), x.IntValue)
	case *common.AnyValue_DoubleValue:
		return binary.LittleEndian.AppendUint64(append(b, float), math.Float64bits(x.DoubleValue))
	case *common.AnyValue_BytesValue:
		return packString(append(b, binaryBytes), string(x.BytesValue))
	case *common.AnyValue_ArrayValue, *common.AnyValue_KvlistValue:
		text, _ := json.Marshal(plain(v))
		return packString(append(b, inlineString), string(text))
	}
	s := v.GetStringValue()
	n, known := t.number[s]
	if !known && t.values[k] < maxValues {
		t.values[k]++
		n, known = t.add(s), true
	}
	if known {
		return binary.AppendUvarint(append(b, tableString), uint64(n))
	}
	return packString(append(b, inlineString), s)
}

// plain is a value as JSON has it.
func plain(v *common.AnyValue) any {
	switch x := v.GetValue().(type) {
	case *common.AnyValue_BoolValue:
		return x.BoolValue
	case *common.AnyValue_IntValue:
		return x.IntValue
	case *common.AnyValue_DoubleValue:
		return strconv.FormatFloat(x.DoubleValue, 'g', -1, 64) // Not a number to JSON if it is NaN.
	case *common.AnyValue_BytesValue:
		return x.BytesValue
	case *common.AnyValue_ArrayValue:
		list := []any{}
		for _, e := range x.ArrayValue.GetValues() {
			list = append(list, plain(e))
		}
		return list
	case *common.AnyValue_KvlistValue:
		m := map[string]any{}
		for _, kv := range x.KvlistValue.GetValues() {
			m[kv.Key] = plain(kv.Value)
		}
		return m
	}
	return v.GetStringValue()
}

func packString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (t *table) packTags(b []byte, list []*common.KeyValue, extra ...*common.KeyValue) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)+len(extra)))
	for _, l := range [][]*common.KeyValue{list, extra} {
		for _, kv := range l {
			b = t.packTag(b, kv.Key, kv.Value)
		}
	}
	return b
}

// packSpan appends a span: its length, the fixed part that searches look at, and the rest.
func (t *table) packSpan(b []byte, process uint32, s *tracepb.Span, extra []*common.KeyValue) []byte {
	p := make([]byte, 0, 256)
	p = binary.BigEndian.AppendUint64(p, id64(s.SpanId))
	p = binary.BigEndian.AppendUint64(p, id64(s.ParentSpanId))
	p = binary.AppendUvarint(p, s.StartTimeUnixNano)
	p = binary.AppendUvarint(p, max(s.EndTimeUnixNano, s.StartTimeUnixNano)-s.StartTimeUnixNano)
	p = binary.AppendUvarint(p, uint64(t.add(s.Name)))
	p = binary.AppendUvarint(p, uint64(process))
	p = t.packTags(p, s.Attributes, extra...)
	p = binary.AppendUvarint(p, uint64(len(s.Events)))
	for _, e := range s.Events {
		p = binary.AppendUvarint(p, e.TimeUnixNano)
		p = t.packTags(p, []*common.KeyValue{stringTag("event", e.Name)}, e.Attributes...)
	}
	p = binary.AppendUvarint(p, uint64(len(s.Links)))
	for _, l := range s.Links {
		id := traceIDOf(l.TraceId)
		p = append(p, id[:]...)
		p = binary.BigEndian.AppendUint64(p, id64(l.SpanId))
	}
	return append(binary.AppendUvarint(b, uint64(len(p))), p...)
}

func id64(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// reader unpacks. What it reads was packed here, so it cannot be short.
type reader struct {
	b []byte
	t *table
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n int) []byte {
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint64() uint64   { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) bytes() []byte    { return r.take(int(r.uvarint())) }
func (r *reader) inTable() string  { return r.t.list[r.uvarint()] }
func (r *reader) tags() (l []tag)  { return r.appendTags(make([]tag, 0, 8)) }
func (r *reader) next() (s reader) { return reader{r.bytes(), r.t} }

func (r *reader) appendTags(list []tag) []tag {
	for n := r.uvarint(); n > 0; n-- {
		list = append(list, r.tag())
	}
	return list
}

func (r *reader) tag() tag {
	key := r.inTable()
	switch kind := r.take(1)[0]; kind {
	case tableString:
		return tag{key, "string", r.inTable()}
	case boolFalse, boolTrue:
		return tag{key, "bool", kind == boolTrue}
	case integer:
		v, n := binary.Varint(r.b)
		r.b = r.b[n:]
		return tag{key, "int64", v}
	case float:
		v := math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such numbers.
			return tag{key, "string", strconv.FormatFloat(v, 'g', -1, 64)}
		}
		return tag{key, "float64", v}
	case binaryBytes:
		return tag{key, "binary", hex.EncodeToString(r.bytes())}
	}
	return tag{key, "string", string(r.bytes())}
}

// header is the fixed part of a span.
type header struct {
	id, parent uint64
	start      uint64 // ns since the epoch
	duration   uint64 // ns
	name       uint32
	process    uint32
}

func (r *reader) header() header {
	return header{r.uint64(), r.uint64(), r.uvarint(), r.uvarint(), uint32(r.uvarint()), uint32(r.uvarint())}
}

func stringTag(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}
