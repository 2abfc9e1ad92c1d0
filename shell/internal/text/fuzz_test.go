package text

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzSed runs scripts, most of which are nonsense, and wants no panic.
func FuzzSed(f *testing.F) {
	for _, s := range []string{
		"s/a/b/g", "2,3d", "/x/,/y/{p;d}", ":a;N;$!ba;s/\\n/ /g", "y/abc/xyz/", "1~2p", "$!N;P;D", "a\\\ntext", "s/\\(.\\)\\1/[&]/2p",
		"/a/I!s,b,\\U&\\E,w /dev/stdout", "0,/x/c\\foo", "x;G;1!h;s/^/\\t/M", "b end;:end", "r /dev/null", "s/[/]/x/;s/a//", "\\,a,{=;l;n}",
	} {
		f.Add(s, "abc\nxyz\n\naa")
	}
	f.Fuzz(func(t *testing.T, script, input string) {
		if _, err := parseSed(script, len(input)%2 == 0); err != nil {
			return
		}
		// A loop such as :a;ba never ends by itself.
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		var out limitedBuffer
		env := &kit.Env{Args: []string{"sed", "-e", script}, Stdin: strings.NewReader(input), Stdout: &out, Stderr: &out, Dir: "/", FS: noFiles{}}
		if code := kit.Run(ctx, Tools()["sed"], env); code == kit.ExitPanic && strings.Contains(out.String(), "panic:") {
			t.Fatalf("%q: %s", script, out.String())
		}
	})
}

// FuzzAwkRewrite wants what GoAWK accepts to be accepted after it was rewritten, too.
func FuzzAwkRewrite(f *testing.F) {
	for _, s := range []string{
		`{ print $1 > "f" }`, `BEGIN { while (("cmd" | getline x) > 0) print x | "sort" }`, `{ if (a) print > "x"; else print > "y" }`,
		`{ getline; getline y; getline < "f"; getline z < ("a" "b") }`, `/re[/]x/ { gsub(/a\/b/, "c"); close("x"); nextfile }`,
		`function f(a) { return a / 2 } { printf "%s", f($1) / 3 >> "o" # comment
		}`, `{ x = y ~ /z/ ? 1 : a["k"]++ } END { print FILENAME }`, `BEGIN { print 1, 2 > "/dev/stderr"; fflush() }`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		a := &awkRun{}
		// The names of the rewriting are its own.
		if strings.Contains(source, "__") {
			return
		}
		if _, err := a.parse(source); err != nil {
			// parse reads the program twice; the first time it must have failed.
			if _, first := parseAwkOnly(a, source); first == nil {
				t.Fatalf("%q is accepted, but not when rewritten: %v", source, err)
			}
		}
	})
}
