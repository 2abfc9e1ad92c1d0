package policy

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// starter is the only file of the command line that knows which cluster is started where none is there. All the others
// know a cloud, and treat it as one that somebody has.
const starter = "newcluster.go"

func TestCommandLineKnowsNoCluster(t *testing.T) {
	known := false
	cli := func(name string) bool { return within(name, "internal/cli") }
	inspect(t, cli, func(set *token.FileSet, f *ast.File) {
		file := filepath.Base(set.Position(f.Pos()).Filename)
		for _, i := range f.Imports {
			switch path := strings.Trim(i.Path.Value, `"`); {
			case !within(path, module+"/cloud/embedded"):
			case file == starter:
				known = true
			default:
				t.Errorf("%s imports %s: use what %s has", file, path, starter)
			}
		}
	})
	if !known {
		t.Errorf("%s starts no cluster", starter)
	}
}
