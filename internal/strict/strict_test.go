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
		{"type", "weight: much", "f.yaml:1: cannot unmarshal !!str `much` into float64"},
		{"all", "nam: x\nweight: much\nfro: 1s", "f.yaml:1: unknown field \"nam\"; did you mean \"name\"?\n" +
			"f.yaml:2: cannot unmarshal !!str `much` into float64\nf.yaml:3: unknown field \"fro\"; did you mean \"for\"?"},
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
