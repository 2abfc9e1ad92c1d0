package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// What docs/cli.md says of commands, flags, exit statuses and limits is what the code says.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	root := newRoot(Process())
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()

	var commands []string
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		commands = append(commands, fmt.Sprintf("| `aiopslab %s` | %s |", c.Use, c.Short))
	}
	slices.Sort(commands)
	if d := cmp.Diff(commands, table(doc, "| command |")); d != "" {
		t.Errorf("commands (-code +docs):\n%s", d)
	}

	up, _, err := root.Find([]string{"up"})
	if err != nil {
		t.Fatal(err)
	}
	var flags []string
	up.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	var documented []string
	for _, row := range table(doc, "| flag |") {
		documented = append(documented, regexp.MustCompile(`--[\w-]+`).FindString(row))
	}
	slices.Sort(documented)
	if d := cmp.Diff(flags, documented); d != "" {
		t.Errorf("flags of up (-code +docs):\n%s", d)
	}

	if d := cmp.Diff(exitCodes(t), table(doc, "| status |")); d != "" {
		t.Errorf("exit statuses (-code +docs):\n%s", d)
	}
	for _, limit := range []string{fmt.Sprintf("%d MB must be free", minFree>>20), fmt.Sprintf("at most %d characters", maxTempLen)} {
		if !strings.Contains(doc, limit) {
			t.Errorf("the docs do not say %q", limit)
		}
	}
}

// table returns the rows of the table that starts with a header.
func table(doc, header string) []string {
	_, rest, _ := strings.Cut(doc, "\n"+header)
	var rows []string
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		rows = append(rows, line)
	}
	return rows
}

// exitCodes returns what errors.go says of its constants, as rows of a table.
func exitCodes(t *testing.T) []string {
	f, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			rows = append(rows, fmt.Sprintf("| %s | %s |", v.Values[0].(*ast.BasicLit).Value, strings.TrimSpace(v.Comment.Text())))
		}
	}
	return rows
}
