package coredns

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stock is the Corefile of a kubeadm cluster.
const stock = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`

func TestParse(t *testing.T) {
	opts := cmp.AllowUnexported(block{}, zone{}, directive{})
	tests := []struct {
		name, text string
		want       []block
	}{
		{"empty", "# nothing\n\n", nil},
		{
			"zones", "Example.com:1053, dns://cluster.local. :54 {\n}\n. {\n}",
			[]block{
				{zones: []zone{{"example.com.", "1053"}, {"cluster.local.", "53"}, {".", "54"}}},
				{zones: []zone{{".", "53"}}},
			},
		},
		{
			"words", ".{ # no: a brace is a word of its own\n}", nil,
		},
		{
			"quotes and comments", ". { # the root\n template IN A {\n  answer \"{{ .Name }} 60 IN A # 1\"\n }\n cache 30#5 # seconds\n log \"\" }",
			[]block{{
				zones: []zone{{".", "53"}},
				directives: []directive{
					{name: "template", args: []string{"IN", "A"}, body: [][]string{{"answer", "{{ .Name }} 60 IN A # 1"}}, line: 2},
					{name: "cache", args: []string{"30#5"}, line: 5},
					{name: "log", args: []string{""}, line: 6},
				},
			}},
		},
		{
			"nested", ". {\n forward . 10.0.0.1 {\n  a {\n   b c\n  }\n  d\n }\n}",
			[]block{{
				zones:      []zone{{".", "53"}},
				directives: []directive{{name: "forward", args: []string{".", "10.0.0.1"}, line: 2, body: [][]string{{"a", "{"}, {"b", "c"}, {"}"}, {"d"}}}},
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse("Corefile", tt.text)
			if tt.name == "words" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if diff := cmp.Diff(tt.want, got, opts); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	blocks, err := parse("Corefile", stock)
	if err != nil || len(blocks) != 1 || len(blocks[0].directives) != 10 {
		t.Errorf("the stock Corefile: %v, %v", blocks, err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		".":                              "Corefile:1 - Error during parsing: Unexpected end of file, expected '{'",
		". {":                            "Corefile:1 - Error during parsing: Unexpected end of file, expected '}'",
		". {\n log\n":                    "Corefile:2 - Error during parsing: Unexpected end of file, expected '}'",
		". {\n health {\n lameduck 5s\n": "Corefile:3 - Error during parsing: Unexpected end of file, expected '}'",
		". {\n health {":                 "Corefile:2 - Error during parsing: Unexpected end of file, expected '}'",
		". {\n kubernets\n}":             "Corefile:2 - Error during parsing: Unknown directive 'kubernets'",
		"{\n log\n}":                     "Corefile:1 - Error during parsing: a server block needs the zones it is for before its '{'",
		". {\n log\n}\n}":                "Corefile:4 - Error during parsing: Unexpected end of file, expected '{'",
	} {
		if _, err := parse("Corefile", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{stock, ". {", "{", "}", ". {\n log {\n} }", "\"", "a b:1 {\n hosts {\n 1.2.3.4 x\n }\n}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := parse("Corefile", text)
		if err != nil && blocks != nil {
			t.Error("blocks beside an error")
		}
		for _, b := range blocks {
			if len(b.zones) == 0 {
				t.Error("a block without a zone")
			}
			for _, d := range b.directives {
				if !known[d.name] {
					t.Errorf("directive %q", d.name)
				}
				for _, line := range d.body {
					if len(line) == 0 {
						t.Error("an empty line") // Plug-ins read its first word.
					}
				}
			}
		}
		for _, w := range tokens(text) {
			if w.line < 1 || w.line > strings.Count(text, "\n")+1 {
				t.Errorf("word %q on line %d", w.text, w.line)
			}
		}
	})
}
