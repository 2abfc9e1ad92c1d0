package regex

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What bounds the work on one text, and the stack. What needs more does not match.
const (
	maxSteps = 2_000_000
	maxStack = 50_000
)

// backtracker matches by trying. It tries what the expression prefers first, as Perl does.
type backtracker struct {
	root      *node
	groups    int
	multiline bool
}

// attempt is the state of one search.
type attempt struct {
	*backtracker
	s     string
	caps  []int
	keep  int // where \K was, or -1
	steps int
	depth int // of match within match
}

func (b *backtracker) find(s string, from int) []int {
	a := &attempt{backtracker: b, s: s, caps: make([]int, 2*(b.groups+1))}
	for start := from; start <= len(s); {
		for i := range a.caps {
			a.caps[i] = -1
		}
		a.keep = -1
		end := -1
		if a.match(b.root, start, func(at int) bool { end = at; return true }) {
			a.caps[0], a.caps[1] = start, end
			if a.keep >= 0 {
				a.caps[0] = a.keep
			}
			return slices.Clone(a.caps)
		}
		if a.steps > maxSteps {
			return nil
		}
		_, n := utf8.DecodeRuneInString(s[start:])
		start += max(n, 1)
	}
	return nil
}

// match tries n at a place and then what follows it, k.
func (a *attempt) match(n *node, at int, k func(int) bool) bool {
	if a.steps++; a.steps > maxSteps || a.depth > maxStack {
		return false
	}
	a.depth++
	matched := a.try(n, at, k)
	a.depth--
	return matched
}

func (a *attempt) try(n *node, at int, k func(int) bool) bool {
	switch n.kind {
	case char, anyChar, charClass:
		next, ok := a.one(n, at)
		return ok && k(next)
	case sequence:
		return a.sequence(n.subs, at, k)
	case alternatives:
		return slices.ContainsFunc(n.subs, func(s *node) bool { return a.match(s, at, k) })
	case repeat:
		return a.repeat(n, at, k)
	case group:
		return a.group(n, at, k)
	case atomic:
		return a.once(n.subs[0], at, k)
	case backReference:
		return a.reference(n, at, k)
	case look:
		return a.look(n, at) != n.negative && k(at)
	case keep:
		old := a.keep
		a.keep = at
		if k(at) {
			return true
		}
		a.keep = old
		return false
	}
	return a.assert(n.kind, at) && k(at)
}

func (a *attempt) sequence(subs []*node, at int, k func(int) bool) bool {
	if len(subs) == 0 {
		return k(at)
	}
	return a.match(subs[0], at, func(next int) bool { return a.sequence(subs[1:], next, k) })
}

// one matches a node of one character.
func (a *attempt) one(n *node, at int) (next int, ok bool) {
	if at >= len(a.s) {
		return at, false
	}
	r, size := utf8.DecodeRuneInString(a.s[at:])
	switch n.kind {
	case char:
		ok = r == n.r || n.fold && strings.EqualFold(string(r), string(n.r))
	case anyChar:
		ok = true
	case charClass:
		ok = n.class.matches(r, n.fold)
	}
	return at + size, ok
}

func (a *attempt) group(n *node, at int, k func(int) bool) bool {
	if n.index == 0 {
		return a.match(n.subs[0], at, k)
	}
	i := 2 * n.index
	from, to := a.caps[i], a.caps[i+1]
	if a.match(n.subs[0], at, func(end int) bool {
		innerFrom, innerTo := a.caps[i], a.caps[i+1]
		a.caps[i], a.caps[i+1] = at, end
		if k(end) {
			return true
		}
		a.caps[i], a.caps[i+1] = innerFrom, innerTo
		return false
	}) {
		return true
	}
	a.caps[i], a.caps[i+1] = from, to
	return false
}

func (a *attempt) repeat(n *node, at int, k func(int) bool) bool {
	sub := n.subs[0]
	if n.possessive {
		return a.once(&node{kind: repeat, min: n.min, max: n.max, subs: n.subs}, at, k)
	}
	if sub.single() && !n.lazy {
		return a.run(n, at, k)
	}
	var try func(count, at int) bool
	try = func(count, at int) bool {
		more := func() bool {
			return (n.max < 0 || count < n.max) && a.match(sub, at, func(next int) bool {
				if next == at && count >= n.min {
					return false // It would go on for ever.
				}
				return try(count+1, next)
			})
		}
		if n.lazy {
			return count >= n.min && k(at) || more()
		}
		return more() || count >= n.min && k(at)
	}
	return try(0, at)
}

// run repeats a single character without recursion, so that a long line is no deep stack.
func (a *attempt) run(n *node, at int, k func(int) bool) bool {
	ends := []int{at}
	for n.max < 0 || len(ends) <= n.max {
		next, ok := a.one(n.subs[0], ends[len(ends)-1])
		if !ok {
			break
		}
		ends = append(ends, next)
	}
	a.steps += len(ends) / 8
	for count := len(ends) - 1; count >= n.min; count-- {
		if a.steps++; a.steps > maxSteps {
			return false
		}
		if k(ends[count]) {
			return true
		}
	}
	return false
}

// once takes the first way n matches and no other.
func (a *attempt) once(n *node, at int, k func(int) bool) bool {
	end := -1
	return a.match(n, at, func(e int) bool { end = e; return true }) && k(end)
}

func (a *attempt) reference(n *node, at int, k func(int) bool) bool {
	from, to := a.caps[2*n.index], a.caps[2*n.index+1]
	if from < 0 {
		return false
	}
	text := a.s[from:to]
	end := at + len(text)
	if end > len(a.s) || a.s[at:end] != text && !(n.fold && strings.EqualFold(a.s[at:end], text)) {
		return false
	}
	return k(end)
}

func (a *attempt) look(n *node, at int) bool {
	if !n.behind {
		return a.match(n.subs[0], at, func(int) bool { return true })
	}
	for start := at; start >= 0; start-- {
		if a.match(n.subs[0], start, func(end int) bool { return end == at }) {
			return true
		}
	}
	return false
}

// assert checks what matches between characters.
func (a *attempt) assert(k kind, at int) bool {
	before := at > 0 && wordAt(a.s, at-1)
	after := at < len(a.s) && wordAt(a.s, at)
	switch k {
	case lineStart:
		return at == 0 || a.multiline && a.s[at-1] == '\n'
	case lineEnd:
		return at == len(a.s) || a.multiline && a.s[at] == '\n'
	case textStart:
		return at == 0
	case textEnd:
		return at == len(a.s)
	case wordBoundary:
		return before != after
	case noBoundary:
		return before == after
	case wordStart:
		return !before && after
	case wordEnd:
		return before && !after
	}
	return false
}

func wordAt(s string, i int) bool {
	return s[i] < unicode.MaxASCII && isWord(rune(s[i]))
}
