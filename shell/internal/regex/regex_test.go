package regex

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFind(t *testing.T) {
	fold := Options{IgnoreCase: true}
	for _, tt := range []struct {
		name   string
		syntax Syntax
		opts   Options
		expr   string
		text   string
		want   string // the match with its groups, "-" if there is none
	}{
		{name: "plain", expr: "b*c", text: "abbcd", want: "bbc"},
		{name: "leading star is a character", expr: "*a", text: "x*a", want: "*a"},
		{name: "star after anchor", expr: "^*a", text: "*a", want: "*a"},
		{name: "star after open paren", expr: `\(*a\)`, text: "x*a", want: "*a *a"},
		{name: "plus is a character in a basic expression", expr: "a+", text: "aa+", want: "a+"},
		{name: "escaped plus is not", expr: `a\+`, text: "baab", want: "aa"},
		{name: "basic groups", expr: `\([a-z]*\) \([0-9]\{2,3\}\)`, text: "ab 1234", want: "ab 123 ab 123"},
		{name: "basic alternatives", expr: `cat\|dog`, text: "hotdog", want: "dog"},
		{name: "dollar in the middle", expr: "a$b", text: "a$b", want: "a$b"},
		{name: "caret in the middle", expr: "a^b", text: "a^b", want: "a^b"},
		{name: "braces are characters in a basic expression", expr: "a{2}", text: "a{2}", want: "a{2}"},
		{name: "back-reference", expr: `\(.\)\1`, text: "hello", want: "ll l"},
		{name: "longest, not first", syntax: Extended, expr: "a|ab|abc", text: "abcd", want: "abc"},
		{name: "extended", syntax: Extended, expr: "(foo|bar)+", text: "xfoobar", want: "foobar bar"},
		{name: "extended interval", syntax: Extended, expr: "a{2,3}", text: "aaaa", want: "aaa"},
		// People look for JSON with grep -E.
		{name: "brace that is no interval", syntax: Extended, expr: `{"level"`, text: `{"level":1}`, want: `{"level"`},
		{name: "brace after text", syntax: Extended, expr: `x{y}`, text: `x{y}`, want: `x{y}`},
		{name: "escaped operators", syntax: Extended, expr: `\(a\)\+\.`, text: "(a)+.", want: "(a)+."},
		{name: "extended back-reference", syntax: Extended, expr: `([a-z])\1`, text: "abccd", want: "cc c"},
		{name: "bracket with bracket", expr: "[]x]*", text: "]x]y", want: "]x]"},
		{name: "negated bracket", expr: "[^]a]", text: "a]b", want: "b"},
		{name: "backslash in bracket", expr: `[\.]`, text: `a\b`, want: `\`},
		{name: "dash at the end", expr: "[a-]*", text: "a-b", want: "a-"},
		{name: "named class", expr: "[[:digit:][:upper:]]*", text: "1A2b", want: "1A2"},
		{name: "equivalence class", expr: "[[=a=]b]*", text: "ab", want: "ab"},
		{name: "word", expr: `\<foo\>`, text: "a foo.", want: "foo"},
		{name: "not a word", expr: `\<foo\>`, text: "afoo", want: "-"},
		{name: "word start before anything", expr: `\<.`, text: "  ab", want: "a"},
		{name: "classes", syntax: Extended, expr: `\w+\s\W`, text: "ab !", want: "ab !"},
		{name: "ignore case", opts: fold, expr: "ERROR", text: "an error", want: "error"},
		{name: "ignore case in back-reference", opts: fold, expr: `\(a\)\1`, text: "aA", want: "aA a"},
		{name: "d is no digit to POSIX", syntax: Extended, expr: `\d`, text: "1d", want: "d"},
		{name: "escapes", opts: Options{Escapes: true}, expr: `a\tb[\n]`, text: "a\tb\n", want: "a\tb\n"},
		{name: "multiline", opts: Options{Multiline: true}, expr: "^b$", text: "a\nb\nc", want: "b"},
		{name: "not multiline", expr: "^b$", text: "a\nb\nc", want: "-"},
		{name: "dot takes newlines", expr: "a.b", text: "a\nb", want: "a\nb"},
		{name: "unicode", expr: "é.", text: "caféß", want: "éß"},
		{name: "perl digits", syntax: Perl, expr: `\d+(?=ms)`, text: "took 12s 34ms", want: "34"},
		{name: "perl look-behind", syntax: Perl, expr: `(?<=id=)\w+`, text: "a id=x1 b", want: "x1"},
		{name: "perl negative look-behind", syntax: Perl, expr: `(?<!a)b`, text: "abcb", want: "b"},
		{name: "perl keep", syntax: Perl, expr: `level=\K[a-z]+`, text: "level=warn x", want: "warn"},
		{name: "perl lazy", syntax: Perl, expr: `".*?"`, text: `"a" "b"`, want: `"a"`},
		{name: "perl lazy with look-ahead", syntax: Perl, expr: `".*?"(?=$)`, text: `"a" "b"`, want: `"a" "b"`},
		{name: "perl flags", syntax: Perl, expr: `(?i)ab(?!c)`, text: "abc ABd", want: "AB"},
		{name: "perl names", syntax: Perl, expr: `(?<q>['"]).*\k<q>`, text: `a "b" c`, want: `"b" "`},
		{name: "perl possessive", syntax: Perl, expr: `a*+a`, text: "aaa", want: "-"},
		{name: "perl quoting", syntax: Perl, expr: `\Qa.b\E(?=c)`, text: "axbc a.bc", want: "a.b"},
		{name: "perl class", syntax: Perl, expr: `[\w\-.]+(?=:)`, text: "my-host.x:80", want: "my-host.x"},
		{name: "perl negated class", syntax: Perl, expr: `[\D]+(?=4)`, text: "12ab4", want: "ab"},
		{name: "large interval", syntax: Extended, expr: "a{1200}", text: strings.Repeat("a", 1200), want: strings.Repeat("a", 1200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			re, err := Compile(tt.expr, tt.syntax, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			got := "-"
			if m := re.Find(tt.text); m != nil {
				var parts []string
				for i := 0; i < len(m); i += 2 {
					if m[i] < 0 {
						parts = append(parts, "<none>")
					} else {
						parts = append(parts, tt.text[m[i]:m[i+1]])
					}
				}
				got = strings.Join(parts, " ")
			}
			if got != tt.want {
				t.Errorf("matches %q, want %q", got, tt.want)
			}
			if re.Match(tt.text) != (tt.want != "-") {
				t.Error("Match disagrees with Find")
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct {
		syntax Syntax
		expr   string
		want   error
	}{
		{Basic, "[", errBracket},
		{Basic, "[[:digit", errBracket},
		{Basic, "[z-a]", errRange},
		{Basic, "[[:foo:]]", errClassName},
		{Basic, `\(a`, errParen},
		{Basic, `a\)`, errCloseParen},
		{Basic, `a\{1`, errBrace},
		{Basic, `a\{x\}`, errBraceInside},
		{Basic, `\1`, errBackRef},
		{Basic, `a\`, errTrailing},
		{Extended, "(a", errParen},
		{Extended, "a)", errCloseParen},
		{Extended, "a{3,2}", errBraceInside},
		{Perl, "(?=a", errParen},
	} {
		if _, err := Compile(tt.expr, tt.syntax, Options{}); err != tt.want {
			t.Errorf("%q: %v, want %v", tt.expr, err, tt.want)
		}
	}
}

func TestFindAllAgreesWithTheStandardLibrary(t *testing.T) {
	for _, expr := range []string{"a*", "x*", "b", "", "ab|a", "(a)(b)?"} {
		for _, text := range []string{"", "a", "baaac", "abab", "xyz"} {
			re := &Regexp{back: mustBacktrack(t, expr)}
			want := regexp.MustCompile(expr).FindAllStringSubmatchIndex(text, -1)
			if diff := cmp.Diff(want, re.FindAll(text, -1)); diff != "" {
				t.Errorf("%q in %q: %s", expr, text, diff)
			}
		}
	}
}

func mustBacktrack(t *testing.T, expr string) *backtracker {
	p := &parser{src: expr, syntax: Extended, names: map[string]int{}}
	root, err := p.parse()
	if err != nil {
		t.Fatal(err)
	}
	return &backtracker{root: root, groups: p.groups}
}

// TestWorkIsBounded feeds an expression that takes exponential time.
func TestWorkIsBounded(t *testing.T) {
	re, err := Compile(`(a|a)*(a|a)*b\1`, Extended, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if re.Match(strings.Repeat("a", 40)) {
		t.Error("it matches")
	}
}

func TestLiteral(t *testing.T) {
	re := Literal("a.b[", Options{IgnoreCase: true})
	if !re.Match("xA.B[") || re.Match("axb[") {
		t.Error("a literal is not taken literally")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`\(a*\)\1`, "a{2,3}", "[[:alpha:]-z]", `(?<=a)b`, `\<a\>`, `[^]]`, `\Qa\E`, `(?i)x`, "a**", `\x{41}`} {
		f.Add(s, "abcABC")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		for _, syntax := range []Syntax{Basic, Extended, Perl} {
			re, err := Compile(expr, syntax, Options{Escapes: len(text)%2 == 0})
			if err != nil {
				continue
			}
			if len(text) > 200 {
				text = text[:200]
			}
			for _, m := range re.FindAll(text, 5) {
				if len(m) != 2*(re.Groups()+1) || m[0] > m[1] || m[1] > len(text) {
					t.Fatalf("%q in %q: %v", expr, text, m)
				}
			}
		}
	})
}
