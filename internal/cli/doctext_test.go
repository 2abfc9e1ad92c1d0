package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// docText is a document for users.
type docText struct {
	file     string // from the root of the repository
	text     string
	commands []docCommand
	blocks   []docBlock
}

// docCommand is a command that a document tells its reader to type.
type docCommand struct {
	where  string
	text   string
	input  []string // what is typed to it: lines with > in front
	output []string // what it prints
	inline bool     // in backticks within a text, maybe with words to be replaced
}

// docBlock is a fenced block.
type docBlock struct {
	where, language, text string
}

// notCommands are the first words of the indented blocks that show something else.
var notCommands = []string{"frontend:5000", "nginx-thrift:8080", "frontend-proxy:8080", "my-app/app.yaml", "cmd"}

// readDocs reads all documents for users. A block that is indented, or fenced as a shell's, has commands: lines with a
// dollar in front, or all lines if there is none. In backticks, what begins with a program that we know is one.
func readDocs(t *testing.T) []docText {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../README.md", "../../[^R]*.md", "../../docs/*.md"} { // as one reads them
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, more...)
	}
	var docs []docText
	used := map[string]bool{}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := docText{file: strings.TrimPrefix(filepath.ToSlash(path), "../../"), text: string(b)}
		d.read(used)
		docs = append(docs, d)
	}
	for _, word := range notCommands {
		if !used[word] {
			t.Errorf("no block begins with %s any more", word)
		}
	}
	return docs
}

func (d *docText) read(used map[string]bool) {
	lines := strings.Split(d.text, "\n")
	for i := 0; i < len(lines); i++ {
		where := fmt.Sprintf("%s:%d", d.file, i+1)
		indented := strings.HasPrefix(lines[i], "    ") && (i == 0 || lines[i-1] == "")
		language, fenced := strings.CutPrefix(lines[i], "```")
		var block []string
		switch {
		case fenced:
			for i++; i < len(lines) && lines[i] != "```"; i++ {
				block = append(block, lines[i])
			}
			d.blocks = append(d.blocks, docBlock{where, language, strings.Join(block, "\n") + "\n"})
			if language != "sh" && language != "console" && language != "bash" {
				continue
			}
		case indented:
			for ; i < len(lines) && strings.HasPrefix(lines[i], "    "); i++ {
				block = append(block, lines[i][4:])
			}
			i--
		default:
			d.inline(where, lines[i])
			continue
		}
		d.session(where, block, used)
	}
}

// session reads the commands of a block.
func (d *docText) session(where string, block []string, used map[string]bool) {
	first, _, _ := strings.Cut(block[0], " ")
	for _, word := range notCommands {
		if word == first {
			used[word] = true
			return
		}
	}
	prompt := strings.HasPrefix(block[0], "$ ")
	for i := 0; i < len(block); i++ {
		text, typed := strings.CutPrefix(block[i], "$ ")
		if prompt && !typed {
			c := &d.commands[len(d.commands)-1]
			if answer, ok := strings.CutPrefix(block[i], "> "); ok {
				c.input = append(c.input, answer)
			} else if block[i] != "..." {
				c.output = append(c.output, block[i])
			}
			continue
		}
		for incomplete(text) && i+1 < len(block) {
			i++
			text += "\n" + block[i]
		}
		d.commands = append(d.commands, docCommand{where: where, text: text})
	}
}

// incomplete reports whether a command goes on in the next line.
func incomplete(text string) bool {
	_, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	return syntax.IsIncomplete(err)
}

// choice is how a text says that one of some words is meant.
var choice = regexp.MustCompile(`\w\|\w`)

// inline reads the commands in the backticks of a line.
func (d *docText) inline(where, line string) {
	for i, span := range strings.Split(line, "`") {
		program, rest, _ := strings.Cut(span, " ")
		if i%2 == 1 && rest != "" && docPrograms[program] != nil && !choice.MatchString(rest) {
			d.commands = append(d.commands, docCommand{where: where, text: span, inline: true})
		}
	}
}
