// Package builtin lists what the program has: its applications, images, faults, problems and agents. It is the only
// place that names them, and it joins them with those that a user's program brings.
package builtin

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/blunt"
	"github.com/aiopslab/aiopslab/agent/classic"
	"github.com/aiopslab/aiopslab/agent/exploit"
	"github.com/aiopslab/aiopslab/agent/flash"
	"github.com/aiopslab/aiopslab/agent/hierarchy"
	"github.com/aiopslab/aiopslab/agent/noop"
	"github.com/aiopslab/aiopslab/agent/oracle"
	"github.com/aiopslab/aiopslab/agent/react"
	"github.com/aiopslab/aiopslab/agent/runbook"
	shellagent "github.com/aiopslab/aiopslab/agent/shell"
	"github.com/aiopslab/aiopslab/agent/stratus"
	"github.com/aiopslab/aiopslab/agent/tools"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/builtin/apps"
	"github.com/aiopslab/aiopslab/internal/builtin/images"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/shell"
)

// Parts are what a program has of its own beside what is built in. The zero value has nothing.
type Parts struct {
	Agents   []agent.Entry
	Images   []kit.Image
	Apps     []*app.App
	Faults   []*fault.Kind
	Problems fs.FS // documents, *.yaml
}

// AllAgents are the agents that --agent can name, the program's own first. Those whom others join say on out how.
func (p Parts) AllAgents(out io.Writer) []agent.Entry {
	alone := slices.Concat(p.Agents,
		[]agent.Entry{runbook.Entry, shellagent.Entry, react.Entry, flash.Entry, tools.Entry})
	return slices.Concat(alone, hierarchy.Entries(alone, out), stratus.Entries(), classic.Entries(),
		[]agent.Entry{oracle.Entry, noop.Entry}, blunt.Entries(), []agent.Entry{exploit.Snoop})
}

// AllImages are the images that an environment can run.
func (p Parts) AllImages() *kit.Registry {
	return kit.NewRegistry(slices.Concat(images.All(), p.Images)...)
}

// Commands are what the nodes of an environment have of their own.
func Commands() map[string]kit.Program { return shell.Node() }

// AllApps are the applications that can be named.
func (p Parts) AllApps() []*app.App { return slices.Concat(apps.All(), p.Apps) }

// Library is the applications, the faults and the problems that can be named.
func (p Parts) Library() (*problem.Library, error) { return p.LibraryFrom("") }

// LibraryFrom is the library with images of the built-in applications that come from a prefix of a registry; none
// leaves them where their names say.
func (p Parts) LibraryFrom(prefix string) (*problem.Library, error) {
	all := p.AllApps()
	for i := range all {
		if prefix == "" || i >= len(all)-len(p.Apps) {
			break
		}
		var err error
		if all[i], err = all[i].From(prefix); err != nil {
			return nil, err
		}
	}
	kinds := slices.Concat(fault.Kinds(), p.Faults)
	slices.SortFunc(kinds, func(a, b *fault.Kind) int { return strings.Compare(a.Name, b.Name) })
	documents := []fs.FS{problem.Catalog()}
	if p.Problems != nil {
		documents = append(documents, p.Problems)
	}
	return problem.New(all, kinds, documents...)
}

// Check returns an error that lists the program's own parts without a name, or with one that is taken.
func (p Parts) Check() error {
	if len(p.Images) > 0 {
		r := kit.NewRegistry(images.All()...)
		for _, i := range p.Images {
			if err := r.Register(i); err != nil {
				return err
			}
		}
	}
	return cmp.Or(
		free("an agent", Parts{}.AllAgents(nil), p.Agents, func(e agent.Entry) string { return e.Name }),
		free("an application", apps.All(), p.Apps, func(a *app.App) string { return a.Name }),
		free("a fault", fault.Kinds(), p.Faults, func(k *fault.Kind) string { return k.Name }),
	)
}

// free says which of a program's own things has no name, or one that is taken.
func free[T any](one string, builtin, own []T, name func(T) string) error {
	taken := map[string]bool{}
	for _, x := range builtin {
		taken[name(x)] = true
	}
	for _, x := range own {
		switch n := name(x); {
		case n == "":
			return fmt.Errorf("%s has no name", one)
		case taken[n]:
			return fmt.Errorf("there is %s %q already", one, n)
		default:
			taken[n] = true
		}
	}
	return nil
}
