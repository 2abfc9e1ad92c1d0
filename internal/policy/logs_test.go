package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// speakers are the packages that may write to this process' own standard error: what is a program by
// itself, or runs as one.
var speakers = []string{
	"cmd", "internal/cli", "internal/bench", "internal/dist", "test", "examples", "kit", "aci/tool", "aci/internal/box",
}

// Everything that is linked into the lab is handed a logger, and uses no global one: what it says has the id
// of its run, and goes where whoever runs the lab wants it.
func TestLogsAreHandedDown(t *testing.T) {
	silent := func(name string) bool { return !withinAny(name, speakers) && !support(name) }
	inspect(t, silent, func(set *token.FileSet, f *ast.File) {
		for _, s := range globalLogs(f) {
			t.Errorf("%s: %s.%s: take a *slog.Logger instead", set.Position(s.Pos()), s.X, s.Sel.Name)
		}
	})
}

// inspect looks at every file of some of our packages, tests left out.
func inspect(t *testing.T, some func(name string) bool, look func(set *token.FileSet, f *ast.File)) {
	t.Helper()
	for _, p := range packages(t).own {
		if !some(p.name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, p.name, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			look(set, f)
		}
	}
}

// globalLogs are the uses of the process' loggers, and of its standard error, in a file.
func globalLogs(f *ast.File) (found []*ast.SelectorExpr) {
	known := map[string]bool{}
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); i.Name == nil && (path == "log" || path == "log/slog" || path == "os") {
			known[filepath.Base(path)] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		if ok && known[x.Name] && isGlobalLog(x.Name, s.Sel.Name) {
			found = append(found, s)
		}
		return true
	})
	return found
}

func isGlobalLog(pkg, name string) bool {
	switch pkg {
	case "os":
		return name == "Stderr"
	case "slog":
		for _, level := range []string{"Debug", "Info", "Warn", "Error"} {
			if name == level || name == level+"Context" {
				return true
			}
		}
		return name == "Default" || name == "SetDefault" || name == "Log" || name == "LogAttrs"
	}
	for _, verb := range []string{"Print", "Fatal", "Panic", "SetOutput", "Default"} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}

func TestGlobalLogs(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
import ("fmt"; "log"; "log/slog"; "os")
func f(l *slog.Logger) {
	log.Printf("x")
	slog.Info("x")
	fmt.Fprintln(os.Stderr, "x")
	l.Info("x")
	slog.String("a", "b")
	_ = log.New(nil, "", 0)
	_ = os.Stdin
}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := globalLogs(f); len(got) != 3 {
		t.Errorf("found %d", len(got))
	}
}
