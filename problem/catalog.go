package problem

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/internal/strict"
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
func Find(id string) (*Problem, error) {
	list := Catalog()
	if i := slices.IndexFunc(list, func(p *Problem) bool { return p.ID == id }); i >= 0 {
		return list[i], nil
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	text := fmt.Sprintf("there is no problem %q", id)
	if near := strict.Nearest(id, ids); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, fmt.Errorf("%s", text)
}

// Suites are named parts of the catalog.
var Suites = []struct {
	Name, Doc string
	has       func(*Problem) bool
}{
	{"all", "every problem", func(*Problem) bool { return true }},
	{"aiopslab", "the ids of AIOpsLab, the disabled ones too", func(p *Problem) bool { return p.Origin != Ours }},
	{"hotel", "problems of hotel-reservation", func(p *Problem) bool { return p.App.Name == "hotel-reservation" }},
	{"social", "problems of social-network", func(p *Problem) bool { return p.App.Name == "social-network" }},
	{"detection", "detection problems", func(p *Problem) bool { return p.Task == Detection }},
	{"localization", "localization problems", func(p *Problem) bool { return p.Task == Localization }},
	{"analysis", "analysis problems", func(p *Problem) bool { return p.Task == Analysis }},
	{"mitigation", "mitigation problems", func(p *Problem) bool { return p.Task == Mitigation }},
}

// Suite returns the problems of a suite.
func Suite(name string) ([]*Problem, error) {
	var names []string
	for _, s := range Suites {
		if s.Name == name {
			return slices.DeleteFunc(slices.Clone(Catalog()), func(p *Problem) bool { return !s.has(p) }), nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("there is no suite %q; there are: %s", name, strings.Join(names, ", "))
}
