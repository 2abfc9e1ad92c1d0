package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// maxWeight is the most an operation weighs: of one that is a billionth of another, no load has any.
const maxWeight = 1e6

// Mix is the set of requests that a load is made of: operations, each with a weight and templates of what it
// sends. It is a YAML document; app/hotel/mixes and app/social/mixes have complete ones.
type Mix struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description,omitempty"`
	Operations  []Operation `yaml:"operations"`
}

// Operation is something that a user does: a request, and what follows it. Its texts are templates
// (package text/template) over the variables and the functions in functions.go, which draw from the
// load's seed, or, where a text must not be foreseen, from its secret.
type Operation struct {
	Name   string  `yaml:"name"`
	Weight float64 `yaml:"weight"` // its part, relative to the sum of all weights

	// Recall is the name of something to remember. The variable .kept then has the variables that an operation of
	// this load kept under that name a moment ago, or nothing.
	Recall string `yaml:"recall,omitempty"`

	// Vars are computed first, in this order; a later one and everything below may use them.
	Vars Fields `yaml:"vars,omitempty"`

	Call `yaml:",inline"`

	// Then is what the user does next, step by step, as long as every answer is as expected: for example, reads
	// what was written. All steps are one operation, which fails as a whole. Its latency is that of the first
	// request. Cookies that were set are sent in later steps.
	Then []Then `yaml:"then,omitempty"`
}

// Call is a request and what its answer must be.
type Call struct {
	Method  string `yaml:"method,omitempty"` // default GET, POST with a form or body
	Path    string `yaml:"path"`
	Query   Fields `yaml:"query,omitempty"` // escaped and appended to the path
	Headers Fields `yaml:"headers,omitempty"`
	Form    Fields `yaml:"form,omitempty"` // a body of type application/x-www-form-urlencoded
	Body    string `yaml:"body,omitempty"`

	Expect Expect `yaml:"expect,omitempty"`

	// Capture are variables of the steps that follow: jq programs over the JSON of the answer. Each must
	// yield a value.
	Capture Fields `yaml:"capture,omitempty"`

	// Keep is a name under which others may recall the variables, once the answer is as expected.
	Keep string `yaml:"keep,omitempty"`
}

// Then is a step that follows another.
type Then struct {
	Call `yaml:",inline"`
	// Within is how long the step is repeated until its answer is as expected, for applications that work in the
	// background. 0 means that it is tried once.
	Within time.Duration `yaml:"within,omitempty"`
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
	places, err := strict.DecodePlaces(name, data, m)
	if err != nil {
		return nil, err
	}
	if err := located(name, places, m, m.problems()); err != nil {
		return nil, err
	}
	return m, nil
}

// FindMix returns the mix NAME.yaml among an application's mixes. Files may be nil if it has none.
func FindMix(files fs.FS, name string) (*Mix, error) {
	var known []string
	if files != nil {
		if data, err := fs.ReadFile(files, name+".yaml"); err == nil {
			return ParseMix(name+".yaml", data)
		}
		var err error
		if known, err = fs.Glob(files, "*.yaml"); err != nil {
			return nil, err
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("there is no mix %q: the application has no mixes", name)
	}
	for i := range known {
		known[i] = strings.TrimSuffix(known[i], ".yaml")
	}
	return nil, errors.New(strict.Unknown("mix", name, known))
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
		if !(o.Weight >= 0) || o.Weight > maxWeight {
			list = append(list, fmt.Sprintf("%s: weight must be between 0 and %g", where, maxWeight))
		}
		sum += o.Weight
		if o.Recall != "" && m.keptBy(o.Recall) == nil {
			list = append(list, fmt.Sprintf("%s: recall: no operation keeps %q", where, o.Recall))
		}
		list = append(list, o.Call.problems(where)...)
		for i, t := range o.Then {
			where := fmt.Sprintf("%s: then %d", where, i+1)
			list = append(list, t.Call.problems(where)...)
			if t.Within < 0 {
				list = append(list, where+": within must not be negative")
			}
		}
		if _, err := o.compile(m.keptBy(o.Recall)); err != nil {
			list = append(list, where+": "+err.Error())
		}
	}
	if len(m.Operations) > 0 && sum <= 0 {
		list = append(list, "give operations a weight, such as \"weight: 1\"")
	}
	return list
}

// keptBy are the variables that are kept under a name, all 0; nil if nobody keeps any.
func (m *Mix) keptBy(name string) map[string]any {
	if name == "" {
		return nil
	}
	for i := range m.Operations {
		o := &m.Operations[i]
		vars := map[string]any{"n": "0", "user": "0"}
		for _, f := range o.Vars {
			vars[f.Name] = "0"
		}
		for _, c := range o.all() {
			for _, f := range c.Capture {
				vars[f.Name] = "0"
			}
			if c.Keep == name {
				return vars
			}
		}
	}
	return nil
}

func (s *Call) problems(where string) (list []string) {
	if !strings.HasPrefix(s.Path, "/") {
		list = append(list, where+": path must begin with a slash")
	}
	if s.Form != nil && s.Body != "" {
		list = append(list, where+": give either form or body")
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
		op, err := o.compile(m.keptBy(o.Recall))
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
