package regex

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// syntaxError is what is wrong with an expression. The texts are the C library's, capitals and all,
// because tools print them.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

const (
	errBracket     = syntaxError("Unmatched [, [^, [:, [., or [=")
	errParen       = syntaxError(`Unmatched ( or \(`)
	errCloseParen  = syntaxError(`Unmatched ) or \)`)
	errBrace       = syntaxError(`Unmatched \{`)
	errBraceInside = syntaxError(`Invalid content of \{\}`)
	errRange       = syntaxError("Invalid range end")
	errClassName   = syntaxError("Invalid character class name")
	errTrailing    = syntaxError("Trailing backslash")
	errBackRef     = syntaxError("Invalid back reference")
	errPreceding   = syntaxError("Invalid preceding regular expression")
	errTooBig      = syntaxError("Regular expression too big")
)

// What bounds the nesting, and with it the stack, and the work that an expression can make.
const (
	maxDepth   = 500      // of parentheses
	maxRepeats = 20       // in a row, as in a***
	maxLength  = 32 << 10 // bytes
)

type parser struct {
	src    string
	at     int
	syntax Syntax
	opts   Options
	fold   bool
	groups int
	open   int // groups that are not closed yet
	names  map[string]int
}

func (p *parser) parse() (*node, error) {
	n, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	if p.at < len(p.src) {
		return nil, errCloseParen
	}
	return n, nil
}

func (p *parser) looking(s string) bool { return strings.HasPrefix(p.src[p.at:], s) }

func (p *parser) skip(s string) bool {
	if p.looking(s) {
		p.at += len(s)
		return true
	}
	return false
}

// operator returns how the syntax writes one of ( ) | + ? {.
func (p *parser) operator(c string) string {
	if p.syntax == Basic {
		return `\` + c
	}
	return c
}

func (p *parser) alternatives(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, errParen
	}
	var subs []*node
	fold := p.fold
	for {
		n, err := p.sequence(depth)
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		if !p.skip(p.operator("|")) {
			break
		}
	}
	p.fold = fold // An inline flag ends with its group.
	if len(subs) == 1 {
		return subs[0], nil
	}
	return &node{kind: alternatives, subs: subs}, nil
}

func (p *parser) sequence(depth int) (*node, error) {
	seq := &node{kind: sequence}
	for p.at < len(p.src) && !p.looking(p.operator("|")) {
		if p.looking(p.operator(")")) {
			if p.open > 0 {
				break
			}
			return nil, errCloseParen
		}
		first := len(seq.subs) == 0 || p.syntax == Basic && len(seq.subs) == 1 && seq.subs[0].kind == lineStart
		n, err := p.atom(first, depth)
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if n, err = p.quantified(n); err != nil {
			return nil, err
		}
		seq.subs = append(seq.subs, n)
	}
	return seq, nil
}

// quantified wraps an atom in the repetitions that follow it.
func (p *parser) quantified(n *node) (*node, error) {
	if p.syntax == Basic && n.kind == lineStart {
		return n, nil // A star after it is itself.
	}
	for repeats := 0; ; repeats++ {
		lo, hi := 0, -1
		switch {
		case repeats > maxRepeats:
			return nil, errTooBig
		case p.skip("*"):
		case p.skip(p.operator("+")):
			lo = 1
		case p.skip(p.operator("?")):
			hi = 1
		case p.looking(p.operator("{")):
			var ok bool
			var err error
			if lo, hi, ok, err = p.interval(); err != nil {
				return nil, err
			} else if !ok {
				return n, nil
			}
		default:
			return n, nil
		}
		n = &node{kind: repeat, min: lo, max: hi, subs: []*node{n}}
		if p.syntax == Perl {
			n.lazy = p.skip("?")
			n.possessive = !n.lazy && p.skip("+")
		}
	}
}

// interval reads {2}, {2,} or {2,4}. In an extended expression a brace that begins none is itself.
func (p *parser) interval() (lo, hi int, ok bool, err error) {
	start := p.at
	p.skip(p.operator("{"))
	end := strings.Index(p.src[p.at:], p.operator("}"))
	if end < 0 {
		if p.syntax == Basic {
			return 0, 0, false, errBrace
		}
		p.at = start
		return 0, 0, false, nil
	}
	first, last, comma := strings.Cut(p.src[p.at:p.at+end], ",")
	lo, hi = 0, -1
	bad := first == "" && last == ""
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		bad = bad || err != nil || n < 0 || n > 32767 || s[0] == '+'
		return n
	}
	if first != "" {
		lo = number(first)
	}
	switch {
	case !comma:
		hi = lo
	case last != "":
		hi = number(last)
	}
	if bad || hi >= 0 && lo > hi {
		if p.syntax == Basic || !bad {
			return 0, 0, false, errBraceInside
		}
		p.at = start
		return 0, 0, false, nil
	}
	p.at += end + len(p.operator("}"))
	return lo, hi, true, nil
}

// rune takes the next character.
func (p *parser) rune() rune {
	r, n := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += n
	return r
}

func (p *parser) literal(r rune) *node { return &node{kind: char, r: r, fold: p.fold} }
