package world

import (
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/cloud"
)

// shift moves every time that an object tells by d.
func shift(o cloud.Object, d time.Duration) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		shiftJSON(u.Object, d)
		return
	}
	shiftValue(reflect.ValueOf(o), d)
}

// shiftValue moves the times in a value of an API type. These are trees.
func shiftValue(v reflect.Value, d time.Duration) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			shiftValue(v.Elem(), d)
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Struct, reflect.Pointer: // Others have no times in them.
			for i := range v.Len() {
				shiftValue(v.Index(i), d)
			}
		}
	case reflect.Struct:
		if !v.CanAddr() {
			return
		}
		switch t := v.Addr().Interface().(type) {
		case *metav1.Time:
			if !t.IsZero() {
				t.Time = t.Add(d)
			}
		case *metav1.MicroTime:
			if !t.IsZero() {
				t.Time = t.Add(d)
			}
		default:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					shiftValue(v.Field(i), d)
				}
			}
		}
	}
}

// shiftJSON moves the times in an object without a Go type: what is called a time and reads as one.
func shiftJSON(v any, d time.Duration) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			text, ok := value.(string)
			if !ok {
				shiftJSON(value, d)
				continue
			}
			name := strings.ToLower(key)
			if !strings.HasSuffix(name, "time") && !strings.HasSuffix(name, "timestamp") {
				continue
			}
			if t, err := time.Parse(time.RFC3339, text); err == nil {
				v[key] = t.Add(d).UTC().Format(time.RFC3339)
			}
		}
	case []any:
		for _, e := range v {
			shiftJSON(e, d)
		}
	}
}
