package policy

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxWidth is how wide a line of code may be, with tabs of four columns: two files fit side by side.
const (
	maxWidth = 120
	tab      = 4
)

// Code is at most 120 columns wide. Tests are not held to it: a row of a table is data, and reads best on
// one line. Neither are lines that cannot be broken: of a raw string, a directive, or with an address.
func TestWidth(t *testing.T) {
	out, err := goCommand("list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, "./...")
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(out)
	if len(files) < 100 {
		t.Fatalf("only %d files are known", len(files))
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range tooWide(src) {
			name, err := filepath.Rel(absolute(t, root), file)
			if err != nil {
				t.Fatal(err)
			}
			t.Errorf("%s:%s", name, line)
		}
	}
}

func absolute(t *testing.T, dir string) string {
	t.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// tooWide lists the lines of a file that are too wide and could be broken, with their numbers.
func tooWide(src []byte) (list []string) {
	if strings.Contains(string(src[:min(len(src), 200)]), "// Code generated ") {
		return nil
	}
	raw := rawLines(src)
	n := 0
	for line := range strings.Lines(string(src)) {
		n++
		line = strings.TrimRight(line, "\n")
		wide := len([]rune(line)) + (tab-1)*strings.Count(line, "\t")
		rigid := raw[n] || strings.Contains(line, "://") || strings.Contains(line, "//go:")
		if wide > maxWidth && !rigid {
			list = append(list, fmt.Sprintf("%d: %d columns, at most %d: %s", n, wide, maxWidth, strings.TrimSpace(line)))
		}
	}
	return list
}

// rawLines are the numbers of the lines that have a part of a raw string in them.
func rawLines(src []byte) map[int]bool {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	lines := map[int]bool{}
	for {
		pos, t, text := s.Scan()
		if t == token.EOF {
			return lines
		}
		if t == token.STRING && strings.HasPrefix(text, "`") {
			first := file.Line(pos)
			for i := range strings.Count(text, "\n") + 1 {
				lines[first+i] = true
			}
		}
	}
}

func TestTooWide(t *testing.T) {
	long := strings.Repeat("x", 110)
	for code, bad := range map[string]bool{
		"var a = " + long:                         false, // 118
		"\tvar a = " + long:                       true,  // A tab counts as four.
		"// " + long + " and more":                true,
		"//go:generate " + long:                   false,
		"// see https://example.com/" + long:      false,
		"var a = `" + long + "\n" + long + long:   false,
		"var a = `x\n" + long + long + "`":        false,
		"var a = `x`\nvar b = \"" + long + "xx\"": true,
		"// ü" + strings.Repeat("ü", 115):         false, // Columns, not bytes.
	} {
		if got := tooWide([]byte("package p\n" + code + "\n")); (len(got) > 0) != bad {
			t.Errorf("%q: %v", code, got)
		}
	}
}
