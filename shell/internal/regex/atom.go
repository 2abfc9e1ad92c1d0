package regex

import (
	"strconv"
	"strings"
)

// atom reads the smallest part of an expression. first says that nothing precedes it in its branch.
// The result is nil if it was a flag.
func (p *parser) atom(first bool, depth int) (*node, error) {
	switch {
	case p.skip(p.operator("(")):
		return p.group(depth)
	case p.skip("\\"):
		return p.escape()
	case p.skip("["):
		return p.bracket()
	case p.skip("."):
		return &node{kind: anyChar}, nil
	case p.looking("^") && (first || p.syntax != Basic):
		p.at++
		return &node{kind: lineStart}, nil
	case p.looking("$") && (p.syntax != Basic || p.ends(p.at+1)):
		p.at++
		return &node{kind: lineEnd}, nil
	case p.syntax == Perl && (p.looking("*") || p.looking("+") || p.looking("?")):
		return nil, errPreceding
	}
	return p.literal(p.rune()), nil
}

// ends reports whether a branch of a basic expression ends at i.
func (p *parser) ends(i int) bool {
	rest := p.src[i:]
	return rest == "" || strings.HasPrefix(rest, `\)`) || strings.HasPrefix(rest, `\|`)
}

func (p *parser) group(depth int) (*node, error) {
	n := &node{kind: group}
	fold := p.fold
	if p.syntax == Perl && p.skip("?") {
		if flags, err := p.perlGroup(n); err != nil || flags {
			return nil, err
		}
	} else {
		p.groups++
		n.index = p.groups
	}
	p.open++
	sub, err := p.alternatives(depth + 1)
	if err != nil {
		return nil, err
	}
	p.open--
	p.fold = fold
	if !p.skip(p.operator(")")) {
		return nil, errParen
	}
	n.subs = []*node{sub}
	return n, nil
}

// perlGroup reads what follows (? and reports whether that was only flags.
func (p *parser) perlGroup(n *node) (flags bool, err error) {
	switch {
	case p.skip(":"):
		return false, nil
	case p.skip("="):
		n.kind = look
		return false, nil
	case p.skip("!"):
		n.kind, n.negative = look, true
		return false, nil
	case p.skip("<="):
		n.kind, n.behind = look, true
		return false, nil
	case p.skip("<!"):
		n.kind, n.behind, n.negative = look, true, true
		return false, nil
	case p.skip(">"):
		n.kind = atomic
		return false, nil
	case p.skip("P<"), p.skip("<"), p.skip("'"):
		end := strings.IndexAny(p.src[p.at:], ">'")
		if end < 0 {
			return false, errParen
		}
		p.groups++
		n.index = p.groups
		p.names[p.src[p.at:p.at+end]] = p.groups
		p.at += end + 1
		return false, nil
	case p.skip("#"):
		end := strings.IndexByte(p.src[p.at:], ')')
		if end < 0 {
			return false, errParen
		}
		p.at += end + 1
		return true, nil
	}
	on := true
	for p.at < len(p.src) {
		switch c := p.src[p.at]; c {
		case 'i':
			p.fold = on
		case '-':
			on = false
		case 's', 'm', 'x', 'U', 'u':
		case ':':
			p.at++
			return false, nil
		case ')':
			p.at++
			return true, nil
		default:
			return false, errPreceding
		}
		p.at++
	}
	return false, errParen
}

// escape reads what follows a backslash.
func (p *parser) escape() (*node, error) {
	if p.at == len(p.src) {
		return nil, errTrailing
	}
	r := p.rune()
	switch r {
	case 'w', 'W':
		return namedClass("word", r == 'W'), nil
	case 's', 'S':
		return namedClass("space", r == 'S'), nil
	case 'b':
		return &node{kind: wordBoundary}, nil
	case 'B':
		return &node{kind: noBoundary}, nil
	case '<':
		return &node{kind: wordStart}, nil
	case '>':
		return &node{kind: wordEnd}, nil
	case '`':
		return &node{kind: textStart}, nil
	case '\'':
		return &node{kind: textEnd}, nil
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.reference(int(r - '0'))
	}
	if p.syntax == Perl {
		if n, err := p.perlEscape(r); n != nil || err != nil {
			return n, err
		}
	}
	if p.opts.Escapes || p.syntax == Perl {
		if c, ok := p.control(r); ok {
			return p.literal(c), nil
		}
	}
	return p.literal(r), nil
}

func (p *parser) reference(index int) (*node, error) {
	if index == 0 || index > p.groups {
		return nil, errBackRef
	}
	return &node{kind: backReference, index: index, fold: p.fold}, nil
}

// control returns the character that \n, \t, \xHH and the like stand for, r being what follows the
// backslash.
func (p *parser) control(r rune) (rune, bool) {
	if i := strings.IndexRune("antfrve", r); i >= 0 {
		return rune("\a\n\t\f\r\v\x1b"[i]), true
	}
	if r != 'x' {
		return 0, false
	}
	digits := ""
	if rest, ok := strings.CutPrefix(p.src[p.at:], "{"); ok && p.syntax == Perl {
		if digits, _, ok = strings.Cut(rest, "}"); !ok {
			return 0, false
		}
		p.at += 2
	} else {
		for _, c := range p.src[p.at:min(p.at+2, len(p.src))] {
			if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
				break
			}
			digits += string(c)
		}
	}
	code, err := strconv.ParseUint(digits, 16, 21)
	if err != nil {
		return 0, false
	}
	p.at += len(digits)
	return rune(code), true
}

// perlEscape reads the escapes that only Perl has; nil if it is none of them.
func (p *parser) perlEscape(r rune) (*node, error) {
	switch r {
	case 'd', 'D':
		return namedClass("digit", r == 'D'), nil
	case 'h', 'H':
		return namedClass("blank", r == 'H'), nil
	case 'R':
		return &node{kind: charClass, class: &class{ranges: []rune{'\n', '\r'}}}, nil
	case 'N':
		return &node{kind: charClass, class: &class{negative: true, ranges: []rune{'\n', '\n'}}}, nil
	case 'A':
		return &node{kind: textStart}, nil
	case 'z', 'Z':
		return &node{kind: textEnd}, nil
	case 'K':
		return &node{kind: keep}, nil
	case 'Q':
		text, _, _ := strings.Cut(p.src[p.at:], `\E`)
		p.at = min(p.at+len(text)+2, len(p.src))
		seq := &node{kind: sequence}
		for _, c := range text {
			seq.subs = append(seq.subs, p.literal(c))
		}
		return seq, nil
	case 'g', 'k':
		rest := p.src[p.at:]
		end := strings.IndexAny(rest, "}>'")
		if end < 1 || !strings.ContainsAny(rest[:1], "{<'") {
			if r == 'g' && rest != "" && rest[0] >= '1' && rest[0] <= '9' {
				p.at++
				return p.reference(int(rest[0] - '0'))
			}
			return nil, errBackRef
		}
		p.at += end + 1
		name := rest[1:end]
		if i, ok := p.names[name]; ok {
			return p.reference(i)
		}
		i, err := strconv.Atoi(name)
		if err != nil {
			return nil, errBackRef
		}
		if i < 0 {
			i += p.groups + 1
		}
		return p.reference(i)
	}
	return nil, nil
}
