package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

// The variables that stand for the flags of one's own applications and problems.
const (
	appsVariable     = "AIOPSLAB_APPS"
	problemsVariable = "AIOPSLAB_PROBLEMS"
)

// ownFlags say where applications and problems of one's own are.
type ownFlags struct {
	apps, problems string
	once           sync.Once
	library        *problem.Library
	err            error
}

// The commands that name problems, and those that name applications alone.
var (
	problemCommands = []string{"run", "play", "shell", "mcp", "describe", "problems", "verify", "bench", "serve"}
	appCommands     = []string{"up", "apps", "faults", "doctor"}
)

func (f *ownFlags) add(c *cobra.Command, s *State) {
	if !slices.Contains(problemCommands, c.Name()) && !slices.Contains(appCommands, c.Name()) {
		return
	}
	f.addTo(c.Flags(), s, slices.Contains(problemCommands, c.Name()))
}

// addTo adds the flags, those of problems if a command names them.
func (f *ownFlags) addTo(flags *pflag.FlagSet, s *State, problems bool) {
	flags.StringVar(&f.apps, "apps", s.Env(appsVariable),
		"`directory` of applications of your own; by default $"+appsVariable)
	if problems {
		flags.StringVar(&f.problems, "problems", s.Env(problemsVariable),
			"`directory` of problems of your own; by default $"+problemsVariable)
	}
}

// base is the applications and the faults that commands can name, and the program's problems. What is wrong with the
// problems of one's own is nothing to those who name none.
func (s *State) base() (*problem.Library, error) {
	l, err := s.Parts.LibraryFrom(s.registry)
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("the problems that this program adds: %w", err),
			"docs/problems.md has the format.")
	}
	l, err = l.With(s.dirs.apps, "")
	return l, fail(ExitUsage, err, "docs/apps.md has the format.")
}

// apps are the applications that commands can name.
func (s *State) apps() ([]*app.App, error) {
	l, err := s.base()
	if err != nil {
		return nil, err
	}
	return l.Apps, nil
}

// library is all that commands can name.
func (s *State) library() (*problem.Library, error) {
	f := &s.dirs
	f.once.Do(func() {
		if f.library, f.err = s.base(); f.err == nil {
			f.library, f.err = f.library.With("", f.problems)
			f.err = fail(ExitUsage, f.err, "docs/problems.md has the format.")
		}
	})
	return f.library, f.err
}

// name is what to write behind a command to mean a problem.
func (f *ownFlags) name(p *problem.Problem) []string {
	if p.BuiltIn() {
		return []string{p.ID}
	}
	task := string(p.Task)
	if p.Healthy { // Its faulty twin has the same task, and is found first.
		task = p.ID
	}
	words := []string{p.Document.File, "--task", task}
	if p.App.Archive != nil {
		words = append(words, "--apps", f.apps)
	}
	return words
}

// args are the flags for a process of this program that works on the same.
func (f *ownFlags) args() (args []string) {
	for _, a := range []struct{ flag, dir string }{{"--apps", f.apps}, {"--problems", f.problems}} {
		if a.dir == "" {
			continue
		}
		if abs, err := filepath.Abs(a.dir); err == nil {
			a.dir = abs
		}
		args = append(args, a.flag, a.dir)
	}
	return args
}
