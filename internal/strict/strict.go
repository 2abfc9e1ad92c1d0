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
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

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

// Softly is for types that decode themselves. It turns an error into one after which the decoder goes on, so that
// problems in the rest of the document are found too.
func Softly(err error) error {
	all := &Problems{}
	all.absorb(err)
	if len(all.List) == 0 {
		return nil
	}
	soft := &yaml.TypeError{}
	for _, x := range all.List {
		soft.Errors = append(soft.Errors, fmt.Sprintf("line %d: %s", x.Line, x.Text))
	}
	return soft
}

// Decode decodes the only document in data. The name is for errors.
func Decode(name string, data []byte, into any) error {
	_, err := DecodePlaces(name, data, into)
	return err
}

// DecodePlaces decodes as [Decode] does, and returns where things stand in the document, for whoever
// checks what they mean. The places are there with an error too, unless it is no YAML at all.
func DecodePlaces(name string, data []byte, into any) (Places, error) {
	p := &Problems{File: name}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		line := tabbed(data)
		switch {
		case errors.Is(err, io.EOF):
			p.add(0, "the document is empty")
		case line > 0:
			p.add(line, "a tab indents this line; YAML takes spaces only")
		default:
			p.absorb(err)
		}
		return Places{}, p.err()
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		p.add(0, "one document is expected, there are more")
		return Places{}, p.err()
	}
	p.node(doc.Content[0], into)
	return Places{doc.Content[0]}, p.err()
}

// indent is white space at the beginning of a line, with a tab in it.
var indent = regexp.MustCompile(`(?m)^ *\t`)

// tabbed returns the first line that a tab indents, or 0.
func tabbed(data []byte) int {
	at := indent.FindIndex(data)
	if at == nil {
		return 0
	}
	return 1 + bytes.Count(data[:at[0]], []byte("\n"))
}

// Node decodes a part of a document.
func Node(n *yaml.Node, into any) error {
	p := &Problems{}
	p.node(n, into)
	return p.err()
}

func (p *Problems) node(n *yaml.Node, into any) {
	before := len(p.List)
	p.check(n, reflect.TypeOf(into).Elem(), "", true)
	wrong := map[int]bool{}
	for _, x := range p.List[before:] {
		wrong[x.Line] = true
	}
	rest := &Problems{}
	rest.absorb(n.Decode(into))
	for _, x := range rest.List {
		if !wrong[x.Line] || !mismatch.MatchString(x.Text) { // What was said better already.
			p.List = append(p.List, x)
		}
	}
}

// mismatch is how the decoder says that a value has not the type of its field, and again is how it says
// that a name is there twice.
var (
	mismatch = regexp.MustCompile("^cannot unmarshal ")
	again    = regexp.MustCompile(`^mapping key (".*") already defined at line (\d+)$`)
)

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
	text = strings.TrimPrefix(text, "yaml: ")
	if m := again.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("%s is there twice, on line %s already", m[1], m[2])
	}
	p.add(line, "%s", text)
}

var unmarshaler = reflect.TypeFor[yaml.Unmarshaler]()

// check looks for fields that the type does not have, and for values that are of another type. The name
// is that of the field.
func (p *Problems) check(n *yaml.Node, t reflect.Type, name string, top bool) {
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
			p.check(n.Content[i+1], f, key.Value, false)
		}
	case t.Kind() == reflect.Slice && n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			p.check(item, t.Elem(), name, false)
		}
	case t.Kind() == reflect.Map && n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			p.check(n.Content[i], t.Elem(), n.Content[i-1].Value, false)
		}
	case !reflect.PointerTo(t).Implements(unmarshaler):
		p.value(n, t, name)
	}
}

// value looks at a value whose form is not that of its field.
func (p *Problems) value(n *yaml.Node, t reflect.Type, name string) {
	want := ""
	tag := n.ShortTag()
	if n.Kind == yaml.ScalarNode && tag == "!!null" || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return
	}
	switch k := t.Kind(); {
	case t == reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(n.Value); err == nil && tag == "!!str" {
			return
		}
		want = "a time with its unit, such as 10s or 500ms"
	case k == reflect.Struct || k == reflect.Map:
		want = "names and values, as in {name: value}"
	case k == reflect.Slice:
		want = "a list, as in [a, b]"
	case k == reflect.String && n.Kind != yaml.ScalarNode:
		want = "a text"
	case k >= reflect.Int && k <= reflect.Uint64 && tag != "!!int":
		want = "a whole number"
	case (k == reflect.Float64 || k == reflect.Float32) && tag != "!!int" && tag != "!!float":
		want = "a number"
	case k == reflect.Bool && tag != "!!bool":
		want = "true or false"
	default:
		return
	}
	got := map[yaml.Kind]string{yaml.SequenceNode: "a list", yaml.MappingNode: "names and values"}[n.Kind]
	if got == "" {
		got = fmt.Sprintf("%q", n.Value)
	}
	if name != "" {
		name = fmt.Sprintf("%q: ", name)
	}
	p.add(n.Line, "%swant %s, not %s", name, want, got)
}

var textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

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

// Unknown says that there is nothing of a name. It suggests the name that was probably meant, or else lists what
// there is.
func Unknown(what, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("there is no %s %q; did you mean %q?", what, name, near)
	}
	return fmt.Sprintf("there is no %s %q; known are %s", what, name, strings.Join(known, ", "))
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
