package problem

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/workload"
)

//go:embed catalog/*.yaml
var catalog embed.FS

// Catalog is the documents of the built-in problems.
func Catalog() fs.FS {
	dir, err := fs.Sub(catalog, "catalog")
	if err != nil {
		panic(err) // The directory is embedded above.
	}
	return dir
}

// Library is the applications, the kinds of faults and the problems that users can name.
type Library struct {
	Apps     []*app.App
	Kinds    []*fault.Kind
	Problems []*Problem // those of the program in the order of their ids, then those of --problems

	mixes   sync.Map // *workload.Mix by mixName: a hundred documents are about a few
	reading bool     // not all problems are there yet that documents name
}

// mixName is a mix of an application.
type mixName struct {
	app  *app.App
	name string
}

// findMix returns a mix of an application, which nobody may change.
func (l *Library) findMix(a *app.App, name string) (*workload.Mix, error) {
	key := mixName{a, name}
	if m, ok := l.mixes.Load(key); ok {
		return m.(*workload.Mix), nil
	}
	m, err := workload.FindMix(a.Mixes, name)
	if err == nil {
		l.mixes.Store(key, m)
	}
	return m, err
}

// New returns the library of a program: its applications, its kinds of faults, and the problems of its documents, which
// may be about any of them.
func New(apps []*app.App, kinds []*fault.Kind, documents ...fs.FS) (*Library, error) {
	l := &Library{Apps: apps, Kinds: kinds, reading: true}
	for _, dir := range documents {
		list, err := l.readAll(dir)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			if _, err := l.Find(p.ID); err == nil {
				return nil, fmt.Errorf("%s: id: there is a problem %s already", p.Document.File, p.ID)
			}
			p.Document.builtIn = true
		}
		l.Problems = append(l.Problems, list...)
	}
	slices.SortFunc(l.Problems, func(a, b *Problem) int { return strings.Compare(a.ID, b.ID) })
	l.reading = false
	for _, p := range l.Problems {
		if err := l.link(p.Document, p.App); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// With returns the library with the applications and the problems of two directories added. An empty name adds
// none.
func (l *Library) With(apps, problems string) (*Library, error) {
	all := &Library{Apps: l.Apps, Kinds: l.Kinds, Problems: l.Problems}
	if apps != "" {
		more, err := app.ReadDirs(apps, l.Apps)
		if err != nil {
			return nil, err
		}
		for _, a := range more {
			if _, err := l.findMix(a, a.Mix); err != nil {
				return nil, fmt.Errorf("%s: mix: %w", a.Name, err)
			}
		}
		all.Apps = slices.Concat(l.Apps, more)
	}
	if problems == "" {
		return all, nil
	}
	if _, err := os.ReadDir(problems); err != nil {
		return nil, err
	}
	more, err := all.readAll(os.DirFS(problems))
	if err == nil && len(more) == 0 {
		err = errors.New("there is no problem: no file ends in .yaml or .yml")
	}
	if err != nil {
		return nil, inDir(problems, err)
	}
	dir := strings.TrimSuffix(problems, "/") + "/"
	for _, p := range more {
		if !strings.HasPrefix(p.Document.File, dir) { // The problems of a document share it.
			p.Document.File = dir + p.Document.File
		}
		if _, err := l.Find(p.ID); err == nil {
			return nil, fmt.Errorf("%s: id: %s is a built-in problem; take another id", p.Document.File, p.ID)
		}
	}
	all.Problems = slices.Concat(l.Problems, more)
	return all, nil
}

// inDir puts a directory before each line of an error that begins with a file.
func inDir(dir string, err error) error {
	dir = strings.TrimSuffix(dir, "/") + "/"
	return errors.New(dir + strings.ReplaceAll(err.Error(), "\n", "\n"+dir))
}

// readAll reads the documents of a directory.
func (l *Library) readAll(dir fs.FS) ([]*Problem, error) {
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		more, err := fs.Glob(dir, pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	var list []*Problem
	var errs []error
	seen := map[string]string{}
	for _, file := range files {
		data, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, err
		}
		problems, err := l.Parse(file, data)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, p := range problems {
			if other, ok := seen[p.ID]; ok {
				errs = append(errs, fmt.Errorf("%s: problem %s is in %s already", file, p.ID, other))
			}
			seen[p.ID] = file
		}
		list = append(list, problems...)
	}
	return list, errors.Join(errs...)
}

// ReadFile reads a document from a file. Its problems must have ids of their own.
func (l *Library) ReadFile(file string) ([]*Problem, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := l.Parse(file, data)
	if err != nil {
		return nil, err
	}
	wrong := &strict.Problems{File: file}
	places, _ := strict.DecodePlaces(file, data, new(Document))
	for _, p := range list {
		if q, err := l.Find(p.ID); err == nil && q.BuiltIn() {
			wrong.Add(places.Line("id"), "id: %s is a built-in problem; take another id, such as my-%s", p.ID,
				p.Document.ID)
			break
		}
	}
	return list, wrong.Err()
}

// Find returns a problem. The error for an unknown id names the nearest one.
func (l *Library) Find(id string) (*Problem, error) {
	var ids []string
	for _, p := range l.Problems {
		if p.ID == id {
			return p, nil
		}
		ids = append(ids, p.ID)
	}
	text := fmt.Sprintf("there is no problem %q", id)
	if near := strict.Nearest(id, ids); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, errors.New(text)
}

// Suite returns the problems of a suite.
func (l *Library) Suite(name string) ([]*Problem, error) {
	var names []string
	for _, s := range Suites {
		if s.Name == name {
			return slices.DeleteFunc(slices.Clone(l.Problems), func(p *Problem) bool { return !s.has(p) }), nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("there is no suite %q; there are: %s", name, strings.Join(names, ", "))
}

// Suites are named parts of a library.
var Suites = []struct {
	Name, Doc string
	has       func(*Problem) bool
}{
	{"all", "every problem", func(*Problem) bool { return true }},
	{"aiopslab", "the ids of AIOpsLab, the disabled ones too", func(p *Problem) bool { return p.Origin != Ours }},
	{"own", "problems of one's own, of --problems", func(p *Problem) bool { return !p.BuiltIn() }},
	{"hotel", "problems of hotel-reservation", func(p *Problem) bool { return p.App.Name == "hotel-reservation" }},
	{"social", "problems of social-network", func(p *Problem) bool { return p.App.Name == "social-network" }},
	{"astronomy", "problems of astronomy-shop", func(p *Problem) bool { return p.App.Name == "astronomy-shop" }},
	{"tidb", "problems of tidb-cluster", func(p *Problem) bool { return p.App.Name == "tidb-cluster" }},
	{"flower", "problems of flower", func(p *Problem) bool { return p.App.Name == "flower" }},
	{"flight", "problems of flight-ticket", func(p *Problem) bool { return p.App.Name == "flight-ticket" }},
	{"train", "problems of train-ticket", func(p *Problem) bool { return p.App.Name == "train-ticket" }},
	{"sock", "problems of sock-shop", func(p *Problem) bool { return p.App.Name == "sock-shop" }},
	{"detection", "detection problems", func(p *Problem) bool { return p.Task == Detection }},
	{"localization", "localization problems", func(p *Problem) bool { return p.Task == Localization }},
	{"analysis", "analysis problems", func(p *Problem) bool { return p.Task == Analysis }},
	{"mitigation", "mitigation problems", func(p *Problem) bool { return p.Task == Mitigation }},
	{"operation", "operations: something is asked of services", func(p *Problem) bool { return p.Task == Operation }},
	{"shift", "shifts: on call for a while", func(p *Problem) bool { return p.Task == OnCall }},
	{"incident", "incidents: all questions in one run", func(p *Problem) bool { return p.Task == Incident }},
}
