package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadme looks for a test that runs each command by which the README says that an agent is run, or that two are
// compared: a line with the same words in the same order, and maybe more.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for _, title := range []string{"Run your agent", "Compare two agents"} {
		_, text, ok := strings.Cut(string(b), "\n## "+title+"\n")
		if !ok {
			t.Fatalf("the README has no section %q", title)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		section += text
	}
	var lines [][]string // of the tests
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, "mcp_test.go") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			lines = append(lines, words(line))
		}
	}
	commands := 0
	for line := range strings.Lines(section) {
		command, ok := strings.CutPrefix(line, "    ")
		if !ok || strings.HasPrefix(command, "export ") {
			continue
		}
		commands++
		switch _, body, _ := strings.Cut(command, "/simulate -d "); {
		case body != "":
			command = body // Another client sends the same.
		case strings.Contains(command, " mcp add "):
			_, command, _ = strings.Cut(command, " -- ") // The client runs this.
		}
		found := false
		for _, l := range lines {
			found = found || contains(l, words(command))
		}
		if !found {
			t.Errorf("no test runs %s", command)
		}
	}
	if commands < 10 {
		t.Errorf("the README has %d commands", commands)
	}
}

// words are the words of a line, of a script or of Go, without what quotes them.
func words(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n'\",()", r) })
}

// contains reports whether a line has these words in their order.
func contains(line, words []string) bool {
	for _, w := range line {
		if len(words) > 0 && w == words[0] {
			words = words[1:]
		}
	}
	return len(words) == 0
}
