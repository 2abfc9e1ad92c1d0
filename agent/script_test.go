package agent

import (
	"reflect"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
)

// What Call writes is what the parser reads.
func TestCall(t *testing.T) {
	for _, args := range [][]any{
		{},
		{"ls && echo \"a'b\" <x >y | tail -n 1\n# é \\ $(date)"},
		{int64(3), "x"},
		{[]any{"geo", "rate"}},
		{nil},
		{true},
		{[]any{}},
		{map[string]any{"system_level": "Application"}},
	} {
		name := "get_logs"
		if len(args) == 1 {
			if _, ok := args[0].(string); ok {
				name = "exec_shell"
			}
		}
		text := Call(name, args...)
		c, err := aci.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if c.Name != name || !reflect.DeepEqual(append([]any{}, c.Args...), append([]any{}, args...)) || len(c.Kwargs) > 0 {
			t.Errorf("%s is read as %q %#v %v", text, c.Name, c.Args, c.Kwargs)
		}
	}
}
