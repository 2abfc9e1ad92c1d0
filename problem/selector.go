package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/internal/term"
)

// Selector chooses problems. What is empty chooses all.
type Selector struct {
	Suite string // name of one of Suites
	Task  Task
	App   string // name of an application
}

// Select returns those problems of the library that a selector chooses, in their order. None is an error, and so is a
// name that is not known.
func (l *Library) Select(s Selector) ([]*Problem, error) {
	list, err := l.Suite(cmp.Or(s.Suite, "all"))
	if err != nil {
		return nil, err
	}
	if s.Task != "" && !slices.Contains(Tasks, s.Task) {
		return nil, unknownName("task", string(s.Task), term.Tasks)
	}
	var apps []string
	for _, a := range l.Apps {
		apps = append(apps, a.Name)
	}
	if s.App != "" && !slices.Contains(apps, s.App) {
		return nil, unknownName("application", s.App, apps)
	}
	list = slices.DeleteFunc(list, func(p *Problem) bool {
		return s.Task != "" && p.Task != s.Task || s.App != "" && p.App.Name != s.App
	})
	if len(list) == 0 {
		return nil, fmt.Errorf("no problem is of %s", s)
	}
	return list, nil
}

// String says what is chosen.
func (s Selector) String() string {
	var parts []string
	for _, part := range [][2]string{{"suite", s.Suite}, {"task", string(s.Task)}, {"app", s.App}} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
		}
	}
	return strings.Join(parts, ", ")
}

func unknownName(what, name string, known []string) error {
	text := fmt.Sprintf("there is no %s %q", what, name)
	if near := strict.Nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%s; there are: %s", text, strings.Join(known, ", "))
}
