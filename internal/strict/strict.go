// Package strict decodes YAML documents that people write by hand. What a document says that the
// type does not know is an error, not ignored; an error names the file and the line, and for a
// misspelt field the nearest one there is. All problems are reported, not only the first.
//
//	var mix workload.Mix
//	err := strict.Decode("mix.yaml", data, &mix)
//	// mix.yaml:3: unknown field "wieght"; did you mean "weight"?
//
// A type that implements yaml.Unmarshaler, because it has more than one form, decodes its parts with
// [Node].
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Problem is one thing that is wrong with a document.
type Problem struct {
	Line int // 0 if unknown
	Text string
}

// Problems is the error of Decode and Node.
type Problems struct {
	File string
	List []Problem
}

func (p *Problems) Error() string {
	var lines []string
	for _, x := range p.List {
		where := p.File
		if x.Line > 0 {
			where = fmt.Sprintf("%s:%d", p.File, x.Line)
		}
		lines = append(lines, strings.TrimPrefix(where+": ", ": ")+x.Text)
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) add(line int, format string, args ...any) {
	p.List = append(p.List, Problem{line, fmt.Sprintf(format, args...)})
}

func (p *Problems) err() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int { return a.Line - b.Line })
	return p
}

// Errorf is a problem at a node, for types that decode themselves.
func Errorf(n *yaml.Node, format string, args ...any) error {
	p := &Problems{}
	p.add(n.Line, format, args...)
	return p
}

// Decode decodes the only document in data. The name is for errors.
func Decode(name string, data []byte, into any) error {
	p := &Problems{File: name}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the document is empty")
		}
		p.absorb(err)
		return p.err()
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.add(0, "one document is expected, there are more")
		return p.err()
	}
	p.node(doc.Content[0], into)
	return p.err()
}

// Node decodes a part of a document.
func Node(n *yaml.Node, into any) error {
	p := &Problems{}
	p.node(n, into)
	return p.err()
}

func (p *Problems) node(n *yaml.Node, into any) {
	p.check(n, reflect.TypeOf(into).Elem(), true)
	p.absorb(n.Decode(into))
}

var typeError = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// absorb adds the problems of another error.
func (p *Problems) absorb(err error) {
	var list *Problems
	var types *yaml.TypeError
	switch {
	case err == nil:
	case errors.As(err, &list):
		p.List = append(p.List, list.List...)
	case errors.As(err, &types):
		for _, text := range types.Errors {
			p.text(text)
		}
	default:
		p.text(err.Error())
	}
}

func (p *Problems) text(text string) {
	var line int
	if m := typeError.FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1], &line)
		text = m[2]
	}
	p.add(line, "%s", strings.TrimPrefix(text, "yaml: "))
}

var unmarshaler = reflect.TypeFor[yaml.Unmarshaler]()

// check looks for fields that the type does not have.
func (p *Problems) check(n *yaml.Node, t reflect.Type, top bool) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[yaml.Node]() {
		return // It is decoded later, by who knows the type.
	}
	if !top && reflect.PointerTo(t).Implements(unmarshaler) {
		return // It checks itself.
	}
	switch {
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		fields := fieldsOf(t)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			f, ok := fields[key.Value]
			if !ok {
				p.add(key.Line, "unknown field %q%s", key.Value, suggestion(key.Value, fields))
				continue
			}
			p.check(n.Content[i+1], f, false)
		}
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			p.check(item, t.Elem(), false)
		}
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			p.check(n.Content[i], t.Elem(), false)
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in YAML.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(options, "inline"):
			for n, inner := range fieldsOf(f.Type) {
				fields[n] = inner
			}
		case name == "-" || !f.IsExported():
		case name == "":
			fields[strings.ToLower(f.Name)] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

func suggestion(name string, fields map[string]reflect.Type) string {
	names := make([]string, 0, len(fields))
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; known are " + strings.Join(names, ", ")
}

// Nearest returns the name that was probably meant, or "".
func Nearest(name string, known []string) string {
	best, distance := "", len(name)/3+2
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) >= distance {
			continue // It takes that many edits at least; a name may be as long as a model likes.
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			last, row[j+1] = row[j+1], min(last+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
