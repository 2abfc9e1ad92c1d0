package regex

import (
	"fmt"
	"regexp"
	"strings"
)

// translate writes an expression in the syntax of package regexp, if it can.
func translate(n *node) (string, bool) {
	var b strings.Builder
	ok := render(&b, n)
	return b.String(), ok
}

func render(b *strings.Builder, n *node) bool {
	switch n.kind {
	case char:
		b.WriteString(regexp.QuoteMeta(string(n.r)))
	case anyChar:
		b.WriteByte('.')
	case charClass:
		b.WriteByte('[')
		if n.class.negative {
			b.WriteByte('^')
		}
		for i := 0; i < len(n.class.ranges); i += 2 {
			fmt.Fprintf(b, `\x{%x}-\x{%x}`, n.class.ranges[i], n.class.ranges[i+1])
		}
		b.WriteByte(']')
	case lineStart:
		b.WriteByte('^')
	case lineEnd:
		b.WriteByte('$')
	case textStart:
		b.WriteString(`\A`)
	case textEnd:
		b.WriteString(`\z`)
	case wordBoundary:
		b.WriteString(`\b`)
	case noBoundary:
		b.WriteString(`\B`)
	case group:
		b.WriteByte('(')
		if n.index == 0 {
			b.WriteString("?:")
		}
		ok := render(b, n.subs[0])
		b.WriteByte(')')
		return ok
	case alternatives:
		for i, s := range n.subs {
			if i > 0 {
				b.WriteByte('|')
			}
			if !render(b, s) {
				return false
			}
		}
	case sequence:
		return renderSequence(b, n.subs)
	case repeat:
		return renderRepeat(b, n)
	default:
		return false
	}
	return true
}

// renderSequence also decides whether \< and \> may become \b, which they may where the character
// inside the word is certain to be a word's.
func renderSequence(b *strings.Builder, subs []*node) bool {
	for i, s := range subs {
		switch {
		case s.kind == wordStart && i+1 < len(subs) && subs[i+1].edge(false),
			s.kind == wordEnd && i > 0 && subs[i-1].edge(true):
			b.WriteString(`\b`)
		case !render(b, s):
			return false
		}
	}
	return true
}

func renderRepeat(b *strings.Builder, n *node) bool {
	if n.possessive {
		return false
	}
	b.WriteString("(?:")
	if !render(b, n.subs[0]) {
		return false
	}
	b.WriteByte(')')
	switch {
	case n.min == 0 && n.max < 0:
		b.WriteByte('*')
	case n.min == 1 && n.max < 0:
		b.WriteByte('+')
	case n.min == 0 && n.max == 1:
		b.WriteByte('?')
	case n.max < 0:
		fmt.Fprintf(b, "{%d,}", n.min)
	default:
		fmt.Fprintf(b, "{%d,%d}", n.min, n.max)
	}
	if n.lazy {
		b.WriteByte('?')
	}
	return true
}
