package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    string
	}{
		{"short", 20, "short"},
		{"one two three four", 9, "one two|three|four"},
		{"a averyveryverylongword b", 8, "a|averyveryverylongword|b"},
		{"first\nsecond line here", 11, "first|second line|here"},
		{"ünï cödé wörds", 8, "ünï cödé|wörds"},
		{"", 5, ""},
	} {
		if got := strings.Join(wrap(tt.text, tt.columns), "|"); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := clip("abcdef", 4); got != "abc…" {
		t.Error(got)
	}
	if got := clip("äöü", 3); got != "äöü" {
		t.Error(got)
	}
}

func TestCollapse(t *testing.T) {
	lines := strings.Split("NAME READY\na 1/1\nb 1/1\nc 0/1 CrashLoopBackOff\nd 1/1\ne 1/1\nf 1/1\nlast", "\n")
	want := []string{"NAME READY", "a 1/1", "… 1 more line", "c 0/1 CrashLoopBackOff", "… 3 more lines", "last"}
	if d := cmp.Diff(want, collapse(lines, 4)); d != "" {
		t.Error(d)
	}
	if got := collapse(lines, 8); len(got) != 8 {
		t.Errorf("%q", got)
	}
}

func TestScreen(t *testing.T) {
	env := map[string]string{}
	s := &State{Env: func(name string) string { return env[name] }}
	if c := screenOf(s, nil, true); !c.colour {
		t.Error("a terminal has colours")
	}
	if c := screenOf(s, nil, false); c.colour {
		t.Error("a file has none")
	}
	env["TERM"] = "dumb"
	if c := screenOf(s, nil, true); c.colour {
		t.Error("a dumb terminal has none")
	}
	env["TERM"], env["NO_COLOR"] = "xterm", "1"
	if c := screenOf(s, nil, true); c.colour {
		t.Error("NO_COLOR is not heeded")
	}
	if got := (screen{}).paint(red, "x"); got != "x" {
		t.Error(got)
	}
}
