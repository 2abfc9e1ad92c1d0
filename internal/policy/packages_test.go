package policy

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/aiopslab/aiopslab"

// root is the module's directory, as tests see it.
const root = "../.."

// listed is what go list tells of a package.
type listed struct {
	ImportPath, Doc                             string
	Standard                                    bool
	GoFiles, Imports, TestImports, XTestImports []string
	Module                                      *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path string }
	}

	name string // relative to the module
}

// imports is the import graph of the module and all it links, tests aside.
type imports struct {
	own []*listed // the module's packages
	all map[string]*listed
}

// packages lists the module once for all tests. It needs no network.
func packages(t *testing.T) *imports {
	t.Helper()
	graph, err := list()
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

var list = sync.OnceValues(func() (*imports, error) {
	out, err := goCommand("list", "-e", "-deps",
		"-json=ImportPath,Doc,Standard,GoFiles,Imports,TestImports,XTestImports,Module", "./...")
	if err != nil {
		return nil, err
	}
	graph := &imports{all: map[string]*listed{}}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, err
		}
		graph.all[p.ImportPath] = p
		if p.Module != nil && p.Module.Main {
			p.name = strings.TrimPrefix(p.ImportPath, module+"/")
			graph.own = append(graph.own, p)
		}
	}
})

// goCommand runs the go command on the module and returns what it prints.
func goCommand(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOPROXY=off", "CGO_ENABLED=0") // as the product is built
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

// path returns a chain of imports that leads to one of the given directories, or nil.
func (g *imports) path(from string, to []string) []string {
	seen := map[string]bool{}
	var walk func(pkg string) []string
	walk = func(pkg string) []string {
		if withinAny(pkg, to) {
			return []string{pkg}
		}
		p := g.all[pkg]
		if seen[pkg] || p == nil || p.Standard {
			return nil
		}
		seen[pkg] = true
		for _, i := range p.Imports {
			if rest := walk(i); rest != nil {
				return slices.Insert(rest, 0, pkg)
			}
		}
		return nil
	}
	return walk(from)
}
