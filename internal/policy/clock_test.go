package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// dated are the packages whose programs run in containers. A container's time zone is UTC, wherever the lab runs, and
// what moves their logs in time reads them so.
var dated = []string{"image", "app"}

// TestProgramsTellUTC holds that no program in a container writes time.Now() as it is: it finds what is written in the
// expression that asks for the time, as time.Now().Format("15:04") does. A time that is kept before it is written, it
// does not follow. kit.Env.Since returns UTC.
func TestProgramsTellUTC(t *testing.T) {
	inspect(t, func(name string) bool { return withinAny(name, dated) }, func(set *token.FileSet, f *ast.File) {
		for _, at := range localTimes(f) {
			t.Errorf("%s: time.Now() is written in the zone of this machine: use time.Now().UTC()", set.Position(at))
		}
	})
}

// localTimes are where a file writes time.Now() as it is.
func localTimes(f *ast.File) (found []token.Pos) {
	selected := func(n ast.Node, names ...string) (ast.Expr, bool) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return nil, false
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil, false
		}
		for _, name := range names {
			if s.Sel.Name == name {
				return s.X, true
			}
		}
		return nil, false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if of, ok := selected(n, "Format", "AppendFormat", "String"); ok {
			if pkg, ok := selected(of, "Now"); ok {
				if x, ok := pkg.(*ast.Ident); ok && x.Name == "time" {
					found = append(found, n.Pos())
				}
			}
		}
		return true
	})
	return found
}

func TestLocalTimes(t *testing.T) {
	const head = "package p\nimport \"time\"\nvar x = "
	for text, want := range map[string]int{
		`time.Now().Format("15:04")`:       1,
		`time.Now().String()`:              1,
		`time.Now().UTC().Format("15:04")`: 0,
		`clock.Now().Format("15:04")`:      0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", head+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := localTimes(f); len(got) != want {
			t.Errorf("%s: found %d times, want %d", text, len(got), want)
		}
	}
}
