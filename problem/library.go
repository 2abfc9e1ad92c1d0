package problem

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/workload"
)

// Library is the applications and the problems that can be named.
type Library struct {
	Apps     []*app.App
	Problems []*Problem // the built-in ones in the order of their ids, then those of one's own
}

// Builtin returns the built-in library.
func Builtin() *Library { return &Library{Apps(), Catalog()} }

// Open returns the built-in library with the applications and the problems of two directories. Either may
// be empty for none.
func Open(apps, problems string) (*Library, error) {
	l := Builtin()
	if apps != "" {
		more, err := app.ReadDirs(apps, l.Apps)
		if err != nil {
			return nil, err
		}
		for _, a := range more {
			if _, err := workload.FindMix(a.Mixes, a.Mix); err != nil {
				return nil, fmt.Errorf("%s: mix: %w", a.Name, err)
			}
		}
		l.Apps = append(l.Apps, more...)
	}
	if problems == "" {
		return l, nil
	}
	if _, err := os.ReadDir(problems); err != nil {
		return nil, err
	}
	more, err := readAll(os.DirFS(problems), l.ownApps()...)
	if err == nil && len(more) == 0 {
		err = errors.New("there is no problem: no file ends in .yaml or .yml")
	}
	if err != nil {
		return nil, inDir(problems, err)
	}
	for _, p := range more {
		if _, err := Builtin().Find(p.ID); err == nil {
			return nil, fmt.Errorf("%s/%s: id: %s is a built-in problem; take another id", problems, p.Document.File, p.ID)
		}
	}
	for _, p := range more {
		p.Document.File = strings.TrimSuffix(problems, "/") + "/" + strings.TrimPrefix(p.Document.File, problems+"/")
	}
	l.Problems = append(slices.Clone(l.Problems), more...)
	return l, nil
}

// inDir puts a directory before each line of an error that begins with a file.
func inDir(dir string, err error) error {
	dir = strings.TrimSuffix(dir, "/") + "/"
	return errors.New(dir + strings.ReplaceAll(err.Error(), "\n", "\n"+dir))
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

// ReadFile reads a document from a file, which may be about any application of the library.
func (l *Library) ReadFile(file string) ([]*Problem, error) {
	return ReadFile(file, l.ownApps()...)
}

// Parse reads a document, which may be about any application of the library.
func (l *Library) Parse(name string, data []byte) ([]*Problem, error) {
	return Parse(name, data, l.ownApps()...)
}

func (l *Library) ownApps() []*app.App { return l.Apps[len(Apps()):] }
