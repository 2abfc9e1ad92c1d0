package adopt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"

	"github.com/aiopslab/aiopslab/app"
)

// description is app.yaml.
type description struct {
	Name        string   `yaml:"name"`
	Title       string   `yaml:"title"`
	Namespace   string   `yaml:"namespace"`
	Description string   `yaml:"description"`
	Operations  []string `yaml:"operations"`
	Frontend    struct {
		Service string `yaml:"service"`
		Port    int    `yaml:"port"`
	} `yaml:"frontend,flow"`
	Label    string    `yaml:"label"`
	Mix      string    `yaml:"mix"`
	Services []service `yaml:"services"`
}

type service struct {
	Name  string    `yaml:"name"`
	Kind  string    `yaml:"kind"`
	Calls []string  `yaml:"calls,omitempty,flow"`
	Ask   *question `yaml:"ask,omitempty,flow"`
	Port  int       `yaml:"port,omitempty"`
}

// write writes the application and its problems to a directory, and reads them as everybody will.
func (y *system) write(o Options, dir string) (*Result, error) {
	for _, sub := range []string{"manifests", "mixes", ProblemsDir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	r := &Result{}
	for _, w := range y.workloads {
		if !w.reached {
			r.Unreached = append(r.Unreached, w.Name)
		}
		if w.reached && w.ask.weak() {
			r.Weak = append(r.Weak, w.Name)
		}
	}
	for _, u := range y.objects {
		text, err := k8syaml.Marshal(u.Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", u.where, err)
		}
		name := strings.ToLower(u.GetKind()) + "-" + u.GetName() + ".yaml"
		if err := os.WriteFile(filepath.Join(dir, "manifests", name), text, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mixes", o.Name+".yaml"), y.mixText, 0o644); err != nil {
		return nil, err
	}
	if err := y.writeDescription(o, dir); err != nil {
		return nil, err
	}
	library, err := o.Library.With(dir, "")
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(library.Apps, func(a *app.App) bool { return a.Name == o.Name })
	r.App = library.Apps[i]
	r.Images = y.lacking(o.Lacks)
	if r.Documents, err = y.writeProblems(o, library, r.App, filepath.Join(dir, ProblemsDir)); err != nil {
		return nil, err
	}
	_, err = o.Library.With(dir, filepath.Join(dir, ProblemsDir))
	return r, err
}

func (y *system) writeDescription(o Options, dir string) error {
	d := description{
		Name: o.Name, Title: y.title, Namespace: y.namespace, Description: strings.TrimSpace(y.description),
		Label: y.label, Mix: o.Name,
	}
	if d.Description == "" {
		d.Description = fmt.Sprintf("%s has %d workloads. Requests of its users go to %s.", y.title, len(y.workloads),
			y.entry.Name)
	}
	d.Frontend.Service, d.Frontend.Port = y.entry.Name, y.port
	for _, op := range y.mix.Operations {
		d.Operations = append(d.Operations, op.Name)
	}
	for _, w := range y.workloads {
		d.Services = append(d.Services, service{w.Name, w.kind, w.calls, w.ask, w.port})
	}
	var b bytes.Buffer
	b.WriteString("# What this means, and what else there can be: docs/apps.md.\n")
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(d); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "app.yaml"), b.Bytes(), 0o644)
}

// lacking are the images that the embedded cloud does not have, each with the reason.
func (y *system) lacking(lacks func(string) string) (lines []string) {
	if lacks == nil {
		return nil
	}
	for _, w := range y.workloads {
		spec := w.template.Spec
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			if why := lacks(c.Image); why != "" && !slices.Contains(lines, why) {
				lines = append(lines, why)
			}
		}
	}
	return lines
}
