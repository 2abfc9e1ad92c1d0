package app

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// The parts of an application that is a directory.
const (
	describedIn  = "app.yaml"
	manifestsDir = "manifests"
	mixesDir     = "mixes"
)

// Kinds are what the kind of a service in app.yaml can be.
var Kinds = []string{"service", "mongodb", "redis", "memcached", "infrastructure"}

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
	} `yaml:"frontend"`
	Label    string   `yaml:"label"`
	Mix      string   `yaml:"mix"`
	Heard    []string `yaml:"heard"`
	Services []struct {
		Name  string    `yaml:"name"`
		Kind  string    `yaml:"kind"`
		Calls []string  `yaml:"calls"`
		Ask   *question `yaml:"ask"`
		Port  int       `yaml:"port"`
	} `yaml:"services"`
}

// ReadDirs reads the application in a directory or, if there is none, those in its subdirectories. No two may have
// the same name or namespace, nor one of those in taken.
func ReadDirs(dir string, taken []*App) ([]*App, error) {
	if _, err := os.Stat(filepath.Join(dir, describedIn)); err == nil {
		a, err := ReadDir(dir, taken)
		return []*App{a}, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", describedIn))
	if err != nil || len(files) == 0 {
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s has no application: there is no %s in it, nor in a directory of it", dir,
			describedIn)
	}
	var list []*App
	var errs []error
	for _, f := range files {
		a, err := ReadDir(filepath.Dir(f), slices.Concat(taken, list))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, a)
	}
	return list, errors.Join(errs...)
}

// ReadDir reads an application from a directory: app.yaml says what it is, manifests/*.yaml are its Kubernetes
// objects, and mixes/*.yaml say what its users do. The error names everything that is wrong. The files are not
// needed afterwards.
func ReadDir(dir string, taken []*App) (*App, error) {
	archive, err := pack(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return Unpack(dir, archive, taken)
}

// ReadFS reads an application from files that are part of a program, in the form of [ReadDir]. The name is for errors.
func ReadFS(name string, files fs.FS) (*App, error) { return read(name, files, nil) }

// Unpack reads an application from its [App.Archive]. The name of its directory is for errors.
func Unpack(dir string, archive []byte, taken []*App) (*App, error) {
	root, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	a, err := read(dir, root, taken)
	if err != nil {
		return nil, err
	}
	a.Archive = archive
	return a, nil
}

func read(dir string, root fs.FS, taken []*App) (*App, error) {
	file := filepath.Join(dir, describedIn)
	data, err := fs.ReadFile(root, describedIn)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	c := &checker{taken: taken, wrong: &strict.Problems{File: file}}
	if c.places, err = strict.DecodePlaces(file, data, &c.d); err != nil {
		return nil, err
	}
	manifests, err := fs.Sub(root, manifestsDir)
	if err != nil {
		return nil, err
	}
	if c.objects, err = manifest.Read(manifests); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, manifestsDir), err)
	}
	c.check()
	if err := c.wrong.Err(); err != nil {
		return nil, err
	}
	mixes, err := fs.Sub(root, mixesDir)
	if err != nil {
		return nil, err
	}
	return c.d.app(manifests, mixes), nil
}

// maxFiles is how many bytes the files of an application may have, all in all.
const maxFiles = 16 << 20

// pack makes an archive of the files of an application.
func pack(dir fs.FS) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	size := 0
	for _, pattern := range []string{describedIn, manifestsDir + "/*.yaml", mixesDir + "/*.yaml"} {
		files, err := fs.Glob(dir, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			data, err := fs.ReadFile(dir, name)
			if err != nil {
				return nil, err
			}
			if size += len(data); size > maxFiles {
				return nil, fmt.Errorf("its files are larger than %d MB", maxFiles>>20)
			}
			f, err := w.Create(name)
			if err == nil {
				_, err = f.Write(data)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// app makes the application.
func (d *description) app(manifests, mixes fs.FS) *App {
	a := &App{
		Name: d.Name, Title: d.Title, Namespace: d.Namespace, Description: d.Description, Operations: d.Operations,
		Manifests: manifests, Frontend: Endpoint{Service: d.Frontend.Service, Port: d.Frontend.Port},
		Label: d.Label, Mix: d.Mix, Mixes: mixes, Heard: d.Heard,
	}
	for _, s := range d.Services {
		a.Services = append(a.Services, Service{
			Name: s.Name, Kind: s.Kind, Calls: s.Calls, Ask: s.Ask.question(),
			Port: s.Port,
		})
	}
	return a
}

// checker looks for what is wrong with a description.
type checker struct {
	d       description
	taken   []*App
	objects []*unstructured.Unstructured
	places  strict.Places
	wrong   *strict.Problems
}

func (c *checker) add(path []any, format string, args ...any) {
	c.wrong.Add(c.places.Line(path...), format, args...)
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// reserved are namespaces that are somebody else's.
var reserved = regexp.MustCompile(`^(default|observe|kube-.*)$`)

func (c *checker) check() {
	d := &c.d
	for _, f := range []struct{ name, value string }{
		{"name", d.Name},
		{"title", d.Title},
		{"namespace", d.Namespace},
		{"description", d.Description},
		{"label", d.Label},
		{"mix", d.Mix},
	} {
		if f.value == "" {
			c.add([]any{f.name}, "%s is missing", f.name)
		}
	}
	for _, f := range []struct{ name, value string }{{"name", d.Name}, {"namespace", d.Namespace}} {
		if f.value != "" && !dnsLabel.MatchString(f.value) {
			c.add([]any{f.name}, "%s %q: want small letters, digits and '-'", f.name, f.value)
		}
	}
	if reserved.MatchString(d.Namespace) {
		c.add([]any{"namespace"}, "namespace %s is the cluster's; take one of the application's own, such as test-%s",
			d.Namespace, d.Name)
	}
	for _, a := range c.taken {
		if a.Name == d.Name {
			c.add([]any{"name"}, "name: there is an application %q already; take another name", a.Name)
		}
		if a.Namespace == d.Namespace {
			c.add([]any{"namespace"}, "namespace: %s is that of the application %s; take another", a.Namespace, a.Name)
		}
	}
	if len(d.Operations) == 0 {
		c.add([]any{"operations"}, "operations is missing: what users can do, for the agent to read")
	}
	for i, request := range d.Heard {
		if !strings.HasPrefix(request, "/") || !strings.Contains(request, "{words}") {
			c.add([]any{"heard", i}, "heard: %q: want a path with {words} for what a user says, as /search?q={words}",
				request)
		}
	}
	c.checkServices()
	c.checkFrontend()
	c.checkObjects()
}

// named returns the names of the objects of some kinds.
func (c *checker) named(kinds ...string) (names []string) {
	for _, o := range c.objects {
		if slices.Contains(kinds, o.GetKind()) {
			names = append(names, o.GetName())
		}
	}
	return names
}

// workloadKinds are the kinds whose pods can be a service. Every Deployment is one; of the others, those that are
// named.
var workloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

func (c *checker) checkServices() {
	if len(c.d.Services) == 0 {
		c.add([]any{"services"}, "services is missing: the deployments, what each is and whom it calls")
	}
	var names []string
	for _, s := range c.d.Services {
		names = append(names, s.Name)
	}
	workloads := c.named(workloadKinds...)
	for i, s := range c.d.Services {
		switch {
		case !slices.Contains(workloads, s.Name):
			c.add([]any{"services", i, "name"}, "services: in %s %s", manifestsDir,
				strict.Unknown("Deployment", s.Name, workloads))
		case slices.Index(names, s.Name) < i:
			c.add([]any{"services", i, "name"}, "services: %s is there twice", s.Name)
		}
		if !slices.Contains(Kinds, s.Kind) {
			c.add([]any{"services", i, "kind"}, "services: %s: %s", s.Name, strict.Unknown("kind", s.Kind, Kinds))
		}
		c.checkQuestion(i)
		for j, callee := range s.Calls {
			if !slices.Contains(names, callee) {
				c.add([]any{"services", i, "calls", j}, "services: %s calls: %s", s.Name,
					strict.Unknown("service", callee, names))
			}
		}
	}
	for _, name := range c.named("Deployment") {
		if !slices.Contains(names, name) {
			c.add([]any{"services"}, "services: the Deployment %s is not among them", name)
		}
	}
}

// checkFrontend checks that requests can go where they are to go.
func (c *checker) checkFrontend() {
	f := c.d.Frontend
	services := c.named("Service")
	if !slices.Contains(services, f.Service) {
		c.add([]any{"frontend", "service"}, "frontend: in %s %s", manifestsDir,
			strict.Unknown("Service", f.Service, services))
		return
	}
	ports := c.ports(f.Service)
	if !slices.Contains(ports, fmt.Sprint(f.Port)) {
		c.add([]any{"frontend", "port"}, "frontend: the Service %s has no port %d; it has %s", f.Service, f.Port,
			strings.Join(ports, ", "))
	}
}

// ports are those of a Kubernetes Service.
func (c *checker) ports(service string) (ports []string) {
	for _, o := range c.objects {
		if o.GetKind() != "Service" || o.GetName() != service {
			continue
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		for _, p := range list {
			if m, ok := p.(map[string]any); ok {
				ports = append(ports, fmt.Sprint(m["port"]))
			}
		}
	}
	return ports
}

// isService reports whether an object makes the pods of a service.
func (c *checker) isService(o *unstructured.Unstructured) bool {
	named := false
	for _, s := range c.d.Services {
		named = named || s.Name == o.GetName()
	}
	return o.GetKind() == "Deployment" || named && slices.Contains(workloadKinds, o.GetKind())
}

// checkObjects checks that each pod can be told by its label, and that nothing is of another namespace.
func (c *checker) checkObjects() {
	for _, o := range c.objects {
		if ns := o.GetNamespace(); ns != "" {
			c.add(nil, "%s: %s %s: leave out its namespace: it is the application's", manifestsDir, o.GetKind(),
				o.GetName())
		}
		if !c.isService(o) || c.d.Label == "" {
			continue
		}
		if v, _, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "labels",
			c.d.Label); v != o.GetName() {
			c.add([]any{"label"}, "label: the pods of %s have %s=%q; want %s=%s", o.GetName(), c.d.Label, v, c.d.Label,
				o.GetName())
		}
	}
}
