package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// object is a Kubernetes object and where it was read.
type object struct {
	*unstructured.Unstructured
	where string // file:line
}

// source is what was read, as far as it can be part of an application.
type source struct {
	title, description string // of a chart
	objects            []object
	notes              []string
}

func (s *source) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// isChart reports whether a path is a chart.
func isChart(path string) bool {
	_, err := os.Stat(filepath.Join(path, "Chart.yaml"))
	return err == nil || strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz")
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf is the name of the application.
func nameOf(o Options) (string, error) {
	name := o.Name
	if name == "" {
		path, err := filepath.Abs(o.Source)
		if err != nil {
			return "", err
		}
		name = filepath.Base(path)
		for _, end := range []string{".tgz", ".tar.gz", ".yaml", ".yml", ".json"} {
			name = strings.TrimSuffix(name, end)
		}
		name = strings.Trim(notName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	}
	if !dnsLabel.MatchString(name) {
		return "", fmt.Errorf("--name %q: want small letters, digits and '-'", name)
	}
	return name, nil
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?$`)

// load reads the chart or the manifests.
func load(o Options) (*source, error) {
	s := &source{}
	info, err := os.Stat(o.Source)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no chart and no manifest %s: a chart of a repository is fetched first, "+
			"with 'helm pull CHART'", o.Source)
	case err != nil:
		return nil, err
	case isChart(o.Source):
		err = s.render(o)
	case len(o.Values) > 0:
		return nil, fmt.Errorf("--values is for charts: %s has no Chart.yaml", o.Source)
	case info.IsDir():
		err = s.readDir(o.Source)
	default:
		err = s.readFile(o.Source)
	}
	if err != nil {
		return nil, err
	}
	if len(s.objects) == 0 {
		return nil, fmt.Errorf("%s has no objects of Kubernetes: no file ends in .yaml, .yml or .json", o.Source)
	}
	return s, s.choose()
}

// readDir reads all manifests below a directory.
func (s *source) readDir(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.Name() == "kustomization.yaml" || d.Name() == "kustomization.yml":
			return fmt.Errorf("%s: adopt what it makes: 'kubectl kustomize %s > all.yaml'", path, filepath.Dir(path))
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		return s.readFile(path)
	})
}

// maxFile is how large a file of manifests may be.
const maxFile = 16 << 20

func (s *source) readFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxFile {
		return fmt.Errorf("%s is larger than %d MB", path, maxFile>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return s.parse(path, data)
}

// parse adds the objects of YAML documents.
func (s *source) parse(file string, data []byte) error {
	for _, doc := range documents(data) {
		if err := syntax(file, doc); err != nil {
			return err
		}
		where := fmt.Sprintf("%s:%d", file, doc.line)
		list, err := manifest.Parse(doc.text)
		if err != nil {
			return fmt.Errorf("%s: it is no object of Kubernetes: %w", where, err)
		}
		for _, u := range list {
			if err := s.add(u, where); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds an object, or those of a list.
func (s *source) add(u *unstructured.Unstructured, where string) error {
	switch {
	case u.IsList():
		return u.EachListItem(func(item runtimeObject) error {
			return s.add(item.(*unstructured.Unstructured), where)
		})
	case u.GetKind() == "" || u.GetAPIVersion() == "":
		return fmt.Errorf("%s: it is no object of Kubernetes: it has no kind or no apiVersion", where)
	case u.GetName() == "":
		return fmt.Errorf("%s: %s has no metadata.name", where, u.GetKind())
	}
	s.objects = append(s.objects, object{u, where})
	return nil
}

// document is one of several in a file.
type document struct {
	line int // of its first line
	text []byte
}

// documents are the parts of a file between lines that begin with "---".
func documents(data []byte) (list []document) {
	doc := document{line: 1}
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if text := string(bytes.TrimRight(line, " \r\n")); text == "---" || strings.HasPrefix(text, "--- #") {
			list = append(list, doc)
			doc = document{line: i + 2}
			continue
		}
		doc.text = append(doc.text, line...)
	}
	list = append(list, doc)
	return slices.DeleteFunc(list, func(d document) bool { return len(bytes.TrimSpace(d.text)) == 0 })
}

// syntax says what is wrong with the YAML of a document, with its line.
func syntax(file string, doc document) error {
	var n yaml.Node
	if err := yaml.Unmarshal(doc.text, &n); err != nil {
		wrong := &strict.Problems{}
		wrong.Absorb(0, "", err)
		for i := range wrong.List {
			if wrong.List[i].Line > 0 {
				wrong.List[i].Line += doc.line - 1
			}
		}
		wrong.File = file
		return wrong
	}
	return nil
}
