package guard

import (
	"encoding/json"
	"testing"
)

// FuzzFields compares the splitting of objects and arrays with the standard decoder's.
func FuzzFields(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":1}`, ` { "a" : [1, {"b":"}"}] , "c\"d" : "\\" } `, `[1,"a,b",{"x":[]},null,true]`,
		`{"a":1,}`, `[,]`, `{"a"}`, `[`, `"`, `{"a":"\`, `{1:2}`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, ferr := fields(b)
		items, eerr := elements(b)
		if !json.Valid(b) {
			return // It must not panic, and that is all.
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) == nil && m != nil {
			if ferr != nil {
				t.Fatalf("%s: %v", b, ferr)
			}
			again := join(all)
			var m2 map[string]json.RawMessage
			if err := json.Unmarshal(again, &m2); err != nil || len(m2) != len(m) {
				t.Fatalf("%s became %s: %v", b, again, err)
			}
			last := map[string]string{}
			for _, f := range all {
				last[f.name] = string(f.value)
			}
			for k, v := range m {
				if last[k] != string(v) {
					t.Errorf("%s: %q is %s, want %s", b, k, last[k], v)
				}
			}
		}
		var a []json.RawMessage
		if json.Unmarshal(b, &a) == nil {
			if eerr != nil || len(a) != len(items) {
				t.Fatalf("%s: %d elements, want %d: %v", b, len(items), len(a), eerr)
			}
			for i := range a {
				if string(a[i]) != string(items[i]) {
					t.Errorf("%s: element %d is %s, want %s", b, i, items[i], a[i])
				}
			}
		}
	})
}

func TestManagersInConflicts(t *testing.T) {
	for in, want := range map[string]string{
		`Apply failed with 1 conflict: conflict with "aiopslab" using apps/v1 at 2026-01-02T03:04:05Z: .spec.replicas`: `Apply failed with 1 conflict: conflict with "unknown" using apps/v1: .spec.replicas`,
		`conflict with "a\"b" with subresource "scale" using v1`:                                                       `conflict with "unknown" with subresource "scale" using v1`,
		"Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.x\nconflicts with \"b\" using v1:\n- .spec.y":   "Apply failed with 2 conflicts: conflicts with \"unknown\":\n- .spec.x\nconflicts with \"unknown\" using v1:\n- .spec.y",
		`the object has been modified`: `the object has been modified`,
	} {
		doc, err := json.Marshal(map[string]any{"kind": "Status", "message": in, "details": map[string]any{"causes": []any{map[string]any{"message": in, "field": ".spec"}}}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := withoutManagers(doc)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Message string
			Details struct {
				Causes []struct{ Message, Field string }
			}
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if got.Message != want || got.Details.Causes[0].Message != want || got.Details.Causes[0].Field != ".spec" {
			t.Errorf("%s:\n got %+v\nwant %s", in, got, want)
		}
	}
}
