package strict

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Places are where things stand in a document. The zero value knows of none.
type Places struct{ root *yaml.Node }

// Line returns the line of the value at a path, which has names of fields and numbers of items, from 0. If there
// is no such value, it returns the line of the nearest thing around it, or 0 if that is unknown.
func (p Places) Line(path ...any) int {
	n := p.root
	if n == nil {
		return 0
	}
	line := n.Line
	if len(path) > 0 && n.Kind == yaml.MappingNode {
		line = 0 // A missing part of the whole is on no line.
	}
	for _, step := range path {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		next := (*yaml.Node)(nil)
		switch s := step.(type) {
		case int:
			if n.Kind == yaml.SequenceNode && s < len(n.Content) {
				next = n.Content[s]
			}
		case string:
			for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == s {
					next = n.Content[i+1]
					line = n.Content[i].Line
				}
			}
		}
		if next == nil {
			return line
		}
		if n = next; n.Kind == yaml.ScalarNode {
			line = n.Line
		}
		if _, item := step.(int); item {
			line = n.Line
		}
	}
	return line
}

// Add adds a problem at a line, which may be 0.
func (p *Problems) Add(line int, format string, args ...any) { p.add(line, format, args...) }

// Absorb adds the problems of another error, at a line unless they have their own.
func (p *Problems) Absorb(line int, prefix string, err error) {
	if err == nil {
		return
	}
	all := &Problems{}
	all.absorb(err)
	for _, x := range all.List {
		if x.Line == 0 {
			x.Line = line
		}
		for _, text := range strings.Split(x.Text, "\n") {
			p.add(x.Line, "%s", fmt.Sprint(prefix, text))
		}
	}
}

// Err returns the problems in the order of their lines, or nil if there are none.
func (p *Problems) Err() error { return p.err() }
