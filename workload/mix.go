package workload

import (
	"embed"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/strict"
)

//go:embed mixes/*.yaml
var mixFiles embed.FS

// Mix is the requests a load is made of: operations, each with a weight and templates of what it
// sends. It is a YAML document; see the directory mixes for complete ones.
type Mix struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description,omitempty"`
	Operations  []Operation `yaml:"operations"`
}

// Operation is a kind of request. Its texts are templates (package text/template) over the variables
// and the functions in template.go, which draw from the load's seed.
type Operation struct {
	Name   string  `yaml:"name"`
	Weight float64 `yaml:"weight"` // its part, relative to the sum of all weights

	// Vars are computed first, in this order; a later one and everything below may use them.
	Vars Fields `yaml:"vars,omitempty"`

	Method  string `yaml:"method,omitempty"` // default GET, POST with a form or body
	Path    string `yaml:"path"`
	Query   Fields `yaml:"query,omitempty"` // escaped and appended to the path
	Headers Fields `yaml:"headers,omitempty"`
	Form    Fields `yaml:"form,omitempty"` // a body of type application/x-www-form-urlencoded
	Body    string `yaml:"body,omitempty"`

	Expect Expect `yaml:"expect,omitempty"`
}

// Expect is what a successful response is like.
type Expect struct {
	// Status are the codes of success. Default: any of 2xx and 3xx.
	Status []int `yaml:"status,omitempty"`
	// Body is a regular expression that the body must match.
	Body string `yaml:"body,omitempty"`
}

// Fields are names and values in the order of the document.
type Fields []Field

// Field is a name and a template of its value.
type Field struct{ Name, Value string }

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *Fields) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return strict.Errorf(n, "names and values are expected, as in \"{name: value}\"")
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind != yaml.ScalarNode {
			return strict.Errorf(value, "the value of %q must be a text or a number", key.Value)
		}
		*f = append(*f, Field{key.Value, value.Value})
	}
	return nil
}

// ParseMix reads a mix. The name is for errors.
func ParseMix(name string, data []byte) (*Mix, error) {
	m := new(Mix)
	if err := strict.Decode(name, data, m); err != nil {
		return nil, err
	}
	if problems := m.problems(); len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s", name, strings.Join(problems, "\n"+name+": "))
	}
	return m, nil
}

// Mixes returns the names of the built-in mixes.
func Mixes() (names []string) {
	files, err := fs.Glob(mixFiles, "mixes/*.yaml")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "mixes/"), ".yaml"))
	}
	return names
}

// BuiltinMix returns a built-in mix.
func BuiltinMix(name string) (*Mix, error) {
	file := "mixes/" + name + ".yaml"
	data, err := mixFiles.ReadFile(file)
	if err != nil {
		if near := strict.Nearest(name, Mixes()); near != "" {
			return nil, fmt.Errorf("there is no mix %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("there is no mix %q; known are %s", name, strings.Join(Mixes(), ", "))
	}
	return ParseMix(file, data)
}

// MixRef is a mix in a document: the name of a built-in one, or the mix itself.
type MixRef struct{ *Mix }

// UnmarshalYAML implements yaml.Unmarshaler.
func (r *MixRef) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		m, err := BuiltinMix(n.Value)
		if err != nil {
			return strict.Errorf(n, "%v", err)
		}
		r.Mix = m
		return nil
	}
	r.Mix = new(Mix)
	return strict.Node(n, r.Mix)
}

// problems returns everything that is wrong with the mix.
func (m *Mix) problems() (list []string) {
	if m.Name == "" {
		list = append(list, "a mix needs a name")
	}
	if len(m.Operations) == 0 {
		list = append(list, "a mix needs operations")
	}
	sum := 0.0
	seen := map[string]bool{}
	for i := range m.Operations {
		o := &m.Operations[i]
		where := fmt.Sprintf("operation %q", o.Name)
		if o.Name == "" {
			where = fmt.Sprintf("operation %d", i+1)
			list = append(list, where+" needs a name")
		}
		if seen[o.Name] {
			list = append(list, where+" is there twice")
		}
		seen[o.Name] = true
		if o.Weight < 0 {
			list = append(list, where+": weight must not be negative")
		}
		sum += o.Weight
		if !strings.HasPrefix(o.Path, "/") {
			list = append(list, where+": path must begin with a slash")
		}
		if o.Form != nil && o.Body != "" {
			list = append(list, where+": give either form or body")
		}
		if _, err := o.compile(); err != nil {
			list = append(list, where+": "+err.Error())
		}
	}
	if len(m.Operations) > 0 && sum <= 0 {
		list = append(list, "give operations a weight, such as \"weight: 1\"")
	}
	return list
}

// chooser draws operations by weight.
type chooser struct {
	operations []*compiled
	byName     map[string]int
	upTo       []float64 // sums of weights
}

func (m *Mix) chooser() (*chooser, error) {
	c := &chooser{byName: map[string]int{}}
	sum := 0.0
	for i := range m.Operations {
		o := &m.Operations[i]
		op, err := o.compile()
		if err != nil {
			return nil, fmt.Errorf("operation %q: %w", o.Name, err)
		}
		op.index = i
		sum += o.Weight
		c.operations = append(c.operations, op)
		c.upTo = append(c.upTo, sum)
		c.byName[o.Name] = i
	}
	return c, nil
}

// pick returns the operation of the n-th request: the named one, or one drawn by weight.
func (c *chooser) pick(seed, n uint64, name string) *compiled {
	if i, ok := c.byName[name]; ok {
		return c.operations[i]
	}
	rng := rand.New(rand.NewPCG(seed, mix64(choiceStream|n)))
	x := rng.Float64() * c.upTo[len(c.upTo)-1]
	i, _ := slices.BinarySearchFunc(c.upTo, x, func(sum, x float64) int {
		if sum > x {
			return 1
		}
		return -1
	})
	return c.operations[i]
}

func (e Expect) compile() (*regexp.Regexp, error) {
	for _, s := range e.Status {
		if s < 100 || s > 599 {
			return nil, fmt.Errorf("expect: %d is no HTTP status", s)
		}
	}
	if e.Body == "" {
		return nil, nil
	}
	re, err := regexp.Compile(e.Body)
	if err != nil {
		return nil, fmt.Errorf("expect: body: %w", err)
	}
	return re, nil
}
