package regex

import "strings"

// bracket reads a bracket expression after its opening bracket. A backslash in it is an ordinary
// character to POSIX, an escape to Perl, and to sed an escape where a control character follows.
func (p *parser) bracket() (*node, error) {
	c := &class{negative: p.skip("^")}
	for first := true; ; first = false {
		switch {
		case p.at >= len(p.src):
			return nil, errBracket
		case p.looking("]") && !first:
			p.at++
			return &node{kind: charClass, class: c, fold: p.fold}, nil
		case p.looking("[:"):
			name, err := p.delimited(":]")
			if err != nil {
				return nil, err
			}
			ranges, ok := named[name]
			if !ok {
				return nil, errClassName
			}
			c.ranges = append(c.ranges, ranges...)
			continue
		}
		if p.syntax == Perl && p.skip("\\") {
			if err := p.perlInBracket(c); err != nil {
				return nil, err
			}
			continue
		}
		lo, err := p.member()
		if err != nil {
			return nil, err
		}
		if err := p.rangeFrom(c, lo); err != nil {
			return nil, err
		}
	}
}

// rangeFrom adds lo, or the range that begins with it.
func (p *parser) rangeFrom(c *class, lo rune) error {
	if !p.looking("-") || strings.HasPrefix(p.src[p.at:], "-]") {
		c.add(lo, lo)
		return nil
	}
	p.at++
	if p.at >= len(p.src) {
		return errBracket
	}
	hi, err := p.member()
	if err != nil {
		return err
	}
	if hi < lo {
		return errRange
	}
	c.add(lo, hi)
	return nil
}

// member reads one character of a bracket expression.
func (p *parser) member() (rune, error) {
	for _, open := range []string{".", "="} {
		if p.looking("[" + open) {
			name, err := p.delimited(open + "]")
			if err != nil {
				return 0, err
			}
			r := []rune(name)
			if len(r) != 1 {
				return 0, errClassName
			}
			return r[0], nil
		}
	}
	r := p.rune()
	if r == '\\' && (p.opts.Escapes || p.syntax == Perl) && p.at < len(p.src) {
		save := p.at
		next := p.rune()
		if c, ok := p.control(next); ok {
			return c, nil
		}
		if p.syntax == Perl {
			return next, nil
		}
		p.at = save
	}
	return r, nil
}

// delimited reads the inside of [:name:] and its likes.
func (p *parser) delimited(end string) (string, error) {
	p.at += 2
	name, _, ok := strings.Cut(p.src[p.at:], end)
	if !ok {
		return "", errBracket
	}
	p.at += len(name) + 2
	return name, nil
}

// perlInBracket reads an escape in a bracket expression, after its backslash.
func (p *parser) perlInBracket(c *class) error {
	if p.at >= len(p.src) {
		return errBracket
	}
	r := p.rune()
	var sub *node
	switch r {
	case 'w', 'W':
		sub = namedClass("word", r == 'W')
	case 's', 'S':
		sub = namedClass("space", r == 'S')
	case 'd', 'D':
		sub = namedClass("digit", r == 'D')
	case 'h', 'H':
		sub = namedClass("blank", r == 'H')
	default:
		lo := r
		if code, ok := p.control(r); ok {
			lo = code
		}
		return p.rangeFrom(c, lo)
	}
	if !sub.class.negative {
		c.ranges = append(c.ranges, sub.class.ranges...)
		return nil
	}
	// The complement, which sorted ranges make easy.
	next := rune(0)
	for i := 0; i < len(sub.class.ranges); i += 2 {
		if sub.class.ranges[i] > next {
			c.add(next, sub.class.ranges[i]-1)
		}
		next = sub.class.ranges[i+1] + 1
	}
	c.add(next, 0x10ffff)
	return nil
}
