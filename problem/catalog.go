package problem

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

//go:embed catalog/*.yaml
var documents embed.FS

// Catalog returns the built-in problems, in the order of their ids.
var Catalog = sync.OnceValue(func() []*Problem {
	dir, err := fs.Sub(documents, "catalog")
	if err != nil {
		panic(err)
	}
	list, err := readAll(dir)
	if err != nil {
		panic(fmt.Sprintf("the built-in catalog is broken: %v", err)) // A test reads it.
	}
	for _, p := range list {
		p.Document.builtIn = true
	}
	slices.SortFunc(list, func(a, b *Problem) int { return strings.Compare(a.ID, b.ID) })
	return list
})

// Find returns a built-in problem. The error for an unknown id names the nearest one.
func Find(id string) (*Problem, error) { return Builtin().Find(id) }

// Suites are named parts of the catalog.
var Suites = []struct {
	Name, Doc string
	has       func(*Problem) bool
}{
	{"all", "every problem", func(*Problem) bool { return true }},
	{"aiopslab", "the ids of AIOpsLab, the disabled ones too", func(p *Problem) bool { return p.Origin != Ours }},
	{"own", "problems of one's own, of --problems", func(p *Problem) bool { return !p.BuiltIn() }},
	{"hotel", "problems of hotel-reservation", func(p *Problem) bool { return p.App.Name == "hotel-reservation" }},
	{"social", "problems of social-network", func(p *Problem) bool { return p.App.Name == "social-network" }},
	{"detection", "detection problems", func(p *Problem) bool { return p.Task == Detection }},
	{"localization", "localization problems", func(p *Problem) bool { return p.Task == Localization }},
	{"analysis", "analysis problems", func(p *Problem) bool { return p.Task == Analysis }},
	{"mitigation", "mitigation problems", func(p *Problem) bool { return p.Task == Mitigation }},
}

// Suite returns the built-in problems of a suite.
func Suite(name string) ([]*Problem, error) { return Builtin().Suite(name) }
