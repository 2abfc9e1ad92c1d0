package regex

import (
	"slices"
	"unicode"
)

type kind int

const (
	char         kind = iota
	anyChar           // .
	charClass         // [...]
	lineStart         // ^
	lineEnd           // $
	textStart         // \`
	textEnd           // \'
	wordBoundary      // \b
	noBoundary        // \B
	wordStart         // \<
	wordEnd           // \>
	group             // (...); index is 0 if it does not capture
	sequence
	alternatives
	repeat
	backReference // \1
	look          // (?=...) and the like
	atomic        // (?>...)
	keep          // \K
)

// node is a part of a parsed expression.
type node struct {
	kind  kind
	r     rune
	fold  bool // letters match in either case
	class *class
	subs  []*node
	index int // of a group or back-reference

	min, max   int // of a repeat; max is -1 if there is none
	lazy       bool
	possessive bool

	behind, negative bool // of a look
}

// class is a set of characters: pairs of first and last.
type class struct {
	negative bool
	ranges   []rune
}

func (c *class) add(lo, hi rune) { c.ranges = append(c.ranges, lo, hi) }

func (c *class) has(r rune) bool {
	for i := 0; i < len(c.ranges); i += 2 {
		if c.ranges[i] <= r && r <= c.ranges[i+1] {
			return true
		}
	}
	return false
}

// matches is has with negation and, if fold, either case.
func (c *class) matches(r rune, fold bool) bool {
	found := c.has(r)
	if fold && !found {
		for f := unicode.SimpleFold(r); f != r && !found; f = unicode.SimpleFold(f) {
			found = c.has(f)
		}
	}
	return found != c.negative
}

// named are the classes of POSIX, in the C locale.
var named = map[string][]rune{
	"alpha":  {'A', 'Z', 'a', 'z'},
	"digit":  {'0', '9'},
	"alnum":  {'0', '9', 'A', 'Z', 'a', 'z'},
	"upper":  {'A', 'Z'},
	"lower":  {'a', 'z'},
	"space":  {'\t', '\r', ' ', ' '},
	"blank":  {'\t', '\t', ' ', ' '},
	"punct":  {'!', '/', ':', '@', '[', '`', '{', '~'},
	"print":  {' ', '~'},
	"graph":  {'!', '~'},
	"cntrl":  {0, 0x1f, 0x7f, 0x7f},
	"xdigit": {'0', '9', 'A', 'F', 'a', 'f'},
	"word":   {'0', '9', 'A', 'Z', '_', '_', 'a', 'z'},
}

func namedClass(name string, negative bool) *node {
	return &node{kind: charClass, class: &class{negative: negative, ranges: slices.Clone(named[name])}}
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// single reports whether a node matches exactly one character.
func (n *node) single() bool {
	return n.kind == char || n.kind == anyChar || n.kind == charClass
}

// edge reports whether all that n matches begins, or ends, in a word character.
func (n *node) edge(end bool) bool {
	all := func(subs []*node) bool {
		return !slices.ContainsFunc(subs, func(s *node) bool { return !s.edge(end) })
	}
	switch n.kind {
	case char:
		return isWord(n.r)
	case charClass:
		if n.class.negative {
			return false
		}
		for i := 0; i < len(n.class.ranges); i += 2 {
			for r := n.class.ranges[i]; r <= n.class.ranges[i+1]; r++ {
				if !isWord(r) {
					return false
				}
			}
		}
		return true
	case group, alternatives:
		return all(n.subs)
	case sequence:
		if len(n.subs) == 0 {
			return false
		}
		if end {
			return n.subs[len(n.subs)-1].edge(end)
		}
		return n.subs[0].edge(end)
	case repeat:
		return n.min > 0 && n.subs[0].edge(end)
	}
	return false
}
