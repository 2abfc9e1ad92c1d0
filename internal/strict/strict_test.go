package strict

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type form struct {
	Name   string
	Weight float64       `yaml:"weight"`
	For    time.Duration `yaml:"for"`
	Parts  []part
	ByName map[string]part `yaml:"by_name"`
	Either either
	Common `yaml:",inline"`
}

type Common struct{ Note string }

type part struct{ Path string }

// either is a number or a part.
type either struct {
	n int
	part
}

func (e *either) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if n.Value == "bad" {
			return Errorf(n, "neither a number nor a part")
		}
		return n.Decode(&e.n)
	}
	return Node(n, &e.part)
}

func TestDecode(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"valid", "name: x\nweight: 0.5\nfor: 10s\nparts: [{path: /}]\nby_name: {a: {path: /}}\neither: {path: /}\nnote: n", ""},
		{"near", "wieght: 1", `f.yaml:1: unknown field "wieght"; did you mean "weight"?`},
		{"far", "name: x\ncolour: red", `f.yaml:2: unknown field "colour"; known are by_name, either, for, name, note, parts, weight`},
		{"in a list", "parts:\n- path: /\n- pathh: /", `f.yaml:3: unknown field "pathh"; did you mean "path"?`},
		{"in a map", "by_name:\n  a:\n    pat: /", `f.yaml:3: unknown field "pat"; did you mean "path"?`},
		{"in a union", "either:\n  pat: /", `f.yaml:2: unknown field "pat"; did you mean "path"?`},
		{"by a union", "name: x\neither: bad", `f.yaml:2: neither a number nor a part`},
		{"type", "weight: much", `f.yaml:1: "weight": want a number, not "much"`},
		{"a list for a text", "name: [a]", `f.yaml:1: "name": want a text, not a list`},
		{"a text for a list", "parts: x", `f.yaml:1: "parts": want a list, as in [a, b], not "x"`},
		{"a text for a part", "parts:\n- x", `f.yaml:2: "parts": want names and values, as in {name: value}, not "x"`},
		{"no unit", "for: 10", `f.yaml:1: "for": want a time with its unit, such as 10s or 500ms, not "10"`},
		{"a unit there is none of", "for: 10 parsecs", `f.yaml:1: "for": want a time with its unit, such as 10s or 500ms, not "10 parsecs"`},
		{"no time", "for: 0", `f.yaml:1: "for": want a time with its unit, such as 10s or 500ms, not "0"`},
		{"no time at all", "for: 0s", ""},
		{"nothing", "name:\nparts:\nfor:", ""},
		{"twice", "name: x\nweight: 1\nname: y", `f.yaml:3: "name" is there twice, on line 1 already`},
		{"a tab", "name: x\nparts:\n\t- path: /", "f.yaml:3: a tab indents this line; YAML takes spaces only"},
		{"a tab behind spaces", "parts:\n  - path: /\n  \tname: x", "f.yaml:3: a tab indents this line; YAML takes spaces only"},
		{"a tab in a value", "name: \"a\tb\"", ""},
		{"all", "nam: x\nweight: much\nfro: 1s", "f.yaml:1: unknown field \"nam\"; did you mean \"name\"?\n" +
			"f.yaml:2: \"weight\": want a number, not \"much\"\nf.yaml:3: unknown field \"fro\"; did you mean \"for\"?"},
		{"syntax", "name: [", "f.yaml:1: did not find expected node content"},
		{"empty", "", "f.yaml: the document is empty"},
		{"two", "name: x\n---\nname: y", "f.yaml: one document is expected, there are more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			if err := Decode("f.yaml", []byte(tt.doc), new(form)); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: x\nparts: [{path: /}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) { _ = Decode("f", data, new(form)) })
}

// A part whose type is known only later takes anything.
func TestNodeTakesAnything(t *testing.T) {
	var doc struct {
		Kind   string    `yaml:"kind"`
		Params yaml.Node `yaml:"params"`
	}
	if err := Decode("x.yaml", []byte("kind: a\nparams: {rate: 3, names: [b]}\n"), &doc); err != nil {
		t.Fatal(err)
	}
	if got := len(doc.Params.Content); got != 4 {
		t.Errorf("the node has %d parts, want 4", got)
	}
}

func TestPlaces(t *testing.T) {
	places, err := DecodePlaces("f.yaml", []byte("name: x\nparts:\n  - path: /a\n  -\n    path: /b\nby_name: {a: {path: /}}\n"), new(form))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		want int
		path []any
	}{
		{1, []any{"name"}},
		{2, []any{"parts"}},
		{3, []any{"parts", 0, "path"}},
		{5, []any{"parts", 1, "path"}},
		{5, []any{"parts", 1, "weight"}}, // What is missing is looked for where it belongs.
		{2, []any{"parts", 7}},
		{6, []any{"by_name", "a", "path"}},
		{0, []any{"weight"}},
	} {
		if got := places.Line(tt.path...); got != tt.want {
			t.Errorf("%v is on line %d, want %d", tt.path, got, tt.want)
		}
	}
	if (Places{}).Line("name") != 0 {
		t.Error("nowhere is somewhere")
	}
}
