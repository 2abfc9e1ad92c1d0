package nesting

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		text string
		want error
	}{
		{"", nil},
		{"sum(rate(x[5m])) by (a)", nil},
		{strings.Repeat("(a)", 10_000), nil},
		{strings.Repeat(")", 10_000), nil},
		{strings.Repeat("(", 501), ErrDepth},
		{strings.Repeat("[{(", 167), ErrDepth},
		{strings.Repeat("-", 501), ErrDepth},
		{strings.Repeat("- ", 501), ErrDepth},
		{strings.Repeat("-(", 251), ErrDepth},
		{strings.Repeat(`")(`, 300) + strings.Repeat("(", 501), ErrDepth}, // Quotes hide nothing.
		{strings.Repeat("x", 128<<10+1), ErrSize},
	} {
		if err := Check(tt.text, Query); !errors.Is(err, tt.want) {
			t.Errorf("Check(%.20q, %d bytes) = %v, want %v", tt.text, len(tt.text), err, tt.want)
		}
	}
}

// descend calls itself for each parenthesis, as a parser does.
func descend(r io.Reader) error {
	b := make([]byte, 512)
	n, err := r.Read(b)
	if err != nil {
		return err
	}
	return inside(b[:n], r)
}

func inside(b []byte, r io.Reader) error {
	switch {
	case len(b) == 0:
		return descend(r)
	case b[0] != '(':
		return nil
	}
	return inside(b[1:], r)
}

func TestReader(t *testing.T) {
	if err := descend(NewReader(strings.NewReader(strings.Repeat("(", 1000) + "x"))); err != nil {
		t.Errorf("a thousand levels: %v", err)
	}
	if err := descend(NewReader(strings.NewReader(strings.Repeat("(", 100_000) + "x"))); !errors.Is(err, ErrDepth) {
		t.Errorf("a hundred thousand levels: %v, want %v", err, ErrDepth)
	}
}

func FuzzDepth(f *testing.F) {
	for _, s := range []string{"", "((", "a(-b[c{", "!!!", ")))(", "- - (-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d := Depth(s); d < 0 || d > len(s) {
			t.Errorf("Depth(%q) = %d", s, d)
		}
		if d, more := Depth(s), Depth(s+"("); more < d {
			t.Errorf("Depth(%q) = %d, less with one more: %d", s, d, more)
		}
	})
}
