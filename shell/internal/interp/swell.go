package interp

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
)

// A word can be far larger than what it is made of: $x$x$x, {1..1000}$x, ${x//a/$y}. What an expansion
// takes is stated before the library makes it, since a text that no machine has room for ends the process.

// noRoom ends an expansion.
type noRoom struct{ err error }

// expand begins an expansion; the function that it returns ends it. An expansion that takes too much has
// an error.
func (s *Shell) expand(err *error) (done func()) {
	outer := s.expansion
	s.expansion = kit.NewHolder(s.env)
	return func() {
		s.expansion.Release()
		s.expansion = outer
		if r := recover(); r != nil {
			full, ok := r.(noRoom)
			if !ok {
				panic(r)
			}
			*err = full.err
		}
	}
}

// swell states that the words being expanded take n bytes more.
func (s *Shell) swell(n int) {
	if err := s.expansion.Add(n); err != nil {
		panic(noRoom{err})
	}
}

// swellReplaced states what ${name/pattern/text} may add.
func (s *Shell) swellReplaced(p *syntax.ParamExp) {
	if p.Repl == nil || p.Repl.With == nil || s.expansion == nil {
		return
	}
	v := environ{s}.get(p.Param.Value)
	matches := 1 + len(v.List) + len(v.Map)
	if p.Repl.All {
		matches = s.occurrences(p.Repl.Orig, append([]string{v.Str}, v.List...), sizeOf(v))
	}
	with := 0
	syntax.Walk(p.Repl.With, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			with += len(n.Value)
		case *syntax.SglQuoted:
			with += len(n.Value)
		case *syntax.ParamExp:
			if n.Param != nil {
				with += sizeOf(environ{s}.get(n.Param.Value))
			}
		}
		return true
	})
	const most = 1 << 40 // More than any machine has, and no overflow.
	s.swell(min(matches, most/(with+1)) * with)
}

// occurrences is how often a pattern can be found in texts of a size.
func (s *Shell) occurrences(pattern *syntax.Word, texts []string, size int) (n int) {
	literal := ""
	if pattern != nil {
		literal = pattern.Lit()
	}
	if literal == "" || strings.ContainsAny(literal, `*?[\`) {
		return size + 1
	}
	for _, text := range texts {
		n += strings.Count(text, literal)
	}
	return n
}
