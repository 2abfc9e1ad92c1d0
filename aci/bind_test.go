package aci

import (
	"strings"
	"testing"
)

// Actions that somebody else carries out are checked as all others are.
func TestCheckWithoutStruct(t *testing.T) {
	a := &Action{Name: "report_result", Params: []Param{
		{Name: "message", Type: "str", Required: true},
		{Name: "kind", Type: "str", Enum: []string{"RESPONSE", "ISSUE"}, Default: "RESPONSE"},
		{Name: "wait", Type: "int", Default: 45},
		{Name: "list", Type: "list[str]"},
		{Name: "soon", Type: "bool", Default: false},
	}}
	for _, tt := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"message": "well"}, ""},
		{map[string]any{"message": "well", "kind": "issue", "wait": 3.0, "list": []any{"a"}, "soon": true}, ""},
		{nil, "1 argument missing: message"},
		{map[string]any{"message": "well", "kind": "odd"}, "kind must be one of RESPONSE, ISSUE"},
		{map[string]any{"message": 7}, "message must be"},
		{map[string]any{"message": "well", "wait": "soon"}, "wait must be"},
		{map[string]any{"message": "well", "kinds": "x"}, "no argument kinds. Did you mean kind?"},
	} {
		err := a.Check(tt.args)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}
