package otelcollector

import (
	"fmt"
	"strconv"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// anyValue is a value of a configuration as OTLP has it.
func anyValue(v any) *commonpb.AnyValue {
	switch x := v.(type) {
	case nil:
		return nil
	case bool:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: x}}
	case int:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(x)}}
	case float64:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: x}}
	}
	return text(fmt.Sprint(v))
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func attribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: text(value)}
}

// maxText is how long a label gets.
const maxText = 256

// asText is a value as a label has it.
func asText(v *commonpb.AnyValue) string {
	s := ""
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		s = x.StringValue
	case *commonpb.AnyValue_BoolValue:
		s = strconv.FormatBool(x.BoolValue)
	case *commonpb.AnyValue_IntValue:
		s = strconv.FormatInt(x.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		s = strconv.FormatFloat(x.DoubleValue, 'g', -1, 64)
	}
	if len(s) > maxText {
		s = s[:maxText]
	}
	return s
}

// find is the value of an attribute, or nil.
func find(list []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, kv := range list {
		if kv.GetKey() == key {
			return kv.GetValue()
		}
	}
	return nil
}
