package text

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/shell/internal/regex"
)

// substitution is an s command.
type substitution struct {
	full bool // the last line had more matches than there is room for

	re     *regex.Regexp // nil is the last one that was used
	parts  []replacement
	global bool
	nth    int // the first match that is replaced
	print  bool
	file   string // of the w flag
}

// replacement is a part of what a match is replaced by: a text, a group, or a change of case.
type replacement struct {
	text  string
	group int  // -1 if it is a text
	shift byte // U, L, u, l or E; 0 if it is none
}

func (p *sedParser) substitution(c *sedCommand) error {
	if p.at >= len(p.src) || p.src[p.at] == '\n' || p.src[p.at] == '\\' {
		return errors.New("bad substitution")
	}
	delim := p.src[p.at]
	expr, err := p.regexUpTo()
	if err != nil {
		return err
	}
	s := &substitution{nth: 1}
	c.sub = s
	if s.parts, err = p.replacement(delim); err != nil {
		return err
	}
	opts := regex.Options{Escapes: true}
	for p.at < len(p.src) && strings.IndexByte("\n;}# \t", p.src[p.at]) < 0 {
		switch b := p.src[p.at]; {
		case b == 'g':
			s.global = true
		case b == 'p':
			s.print = true
		case b == 'i' || b == 'I':
			opts.IgnoreCase = true
		case b == 'm' || b == 'M':
			opts.Multiline = true
		case b >= '1' && b <= '9':
			s.nth, _ = p.number()
			continue
		case b == 'w':
			p.at++
			p.skip(" \t")
			s.file = p.untilNewline()
			continue
		default:
			return errors.New("bad option in substitution expression")
		}
		p.at++
	}
	groups := 9
	if expr != "" {
		if s.re, err = p.compile(expr, opts); err != nil {
			return err
		}
		groups = s.re.Groups()
	}
	for _, part := range s.parts {
		if part.group > groups {
			return fmt.Errorf("invalid reference \\%d on s command's RHS", part.group)
		}
	}
	return p.end()
}

// replacement reads the second part of an s command.
func (p *sedParser) replacement(delim byte) (parts []replacement, err error) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, replacement{text: text.String(), group: -1})
			text.Reset()
		}
	}
	for ; p.at < len(p.src); p.at++ {
		c := p.src[p.at]
		switch {
		case c == delim:
			p.at++
			flush()
			return parts, nil
		case c == '&':
			flush()
			parts = append(parts, replacement{group: 0})
		case c == '\\' && p.at+1 < len(p.src):
			p.at++
			switch n := p.src[p.at]; {
			case n == delim && !(n >= '0' && n <= '9'), n == '&', n == '\\', n == '\n':
				text.WriteByte(n)
			case n >= '0' && n <= '9':
				flush()
				parts = append(parts, replacement{group: int(n - '0')})
			case strings.IndexByte("ULulE", n) >= 0:
				flush()
				parts = append(parts, replacement{group: -1, shift: n})
			case strings.IndexByte("abfnrtv", n) >= 0:
				text.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", n)])
			case n == 'x' && p.at+2 < len(p.src) && isHex(p.src[p.at+1]) && isHex(p.src[p.at+2]):
				var b byte
				fmt.Sscanf(p.src[p.at+1:p.at+3], "%02x", &b)
				text.WriteByte(b)
				p.at += 2
			default:
				text.WriteByte(n)
			}
		default:
			text.WriteByte(c)
		}
	}
	return nil, fmt.Errorf("unmatched '%c'", delim)
}

func isHex(b byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", b) >= 0 }

// apply performs the substitution on a text. done tells whether anything was replaced.
func (s *substitution) apply(re *regex.Regexp, text string) (result string, done bool) {
	limit := s.nth
	if s.global {
		limit = -1
	}
	matches := re.FindAll(text, limit)
	if len(matches) < s.nth {
		return text, false
	}
	s.full = limit < 0 && len(matches) == regex.MaxMatches
	var b strings.Builder
	at := 0
	for _, m := range matches[s.nth-1:] {
		if b.Len() > maxSedSpace {
			break
		}
		b.WriteString(text[at:m[0]])
		s.expand(&b, text, m)
		at = m[1]
	}
	b.WriteString(text[at:])
	return b.String(), true
}

// expand writes what a match is replaced by.
func (s *substitution) expand(b *strings.Builder, text string, m []int) {
	whole, next := byte(0), byte(0) // case of everything, and of the next character
	for _, part := range s.parts {
		if b.Len() > maxSedSpace {
			return
		}
		switch part.shift {
		case 'U', 'L', 'E':
			whole, next = part.shift, 0
			continue
		case 'u', 'l':
			next = part.shift
			continue
		}
		t := part.text
		if i := 2 * part.group; part.group >= 0 && i < len(m) && m[i] >= 0 {
			t = text[m[i]:m[i+1]]
		}
		switch whole {
		case 'U':
			t = strings.ToUpper(t)
		case 'L':
			t = strings.ToLower(t)
		}
		if r, n := utf8.DecodeRuneInString(t); next != 0 && n > 0 {
			if next == 'u' {
				r = unicode.ToUpper(r)
			} else {
				r = unicode.ToLower(r)
			}
			t = string(r) + t[n:]
			next = 0
		}
		b.WriteString(t)
	}
}

// transliteration reads a y command.
func (p *sedParser) transliteration(c *sedCommand) error {
	if p.at >= len(p.src) {
		return errors.New("missing command")
	}
	delim := p.src[p.at]
	p.at++
	part := func() ([]rune, error) {
		var b strings.Builder
		for ; p.at < len(p.src); p.at++ {
			switch ch := p.src[p.at]; {
			case ch == delim:
				p.at++
				return []rune(b.String()), nil
			case ch == '\\' && p.at+1 < len(p.src):
				p.at++
				switch n := p.src[p.at]; n {
				case 'n':
					b.WriteByte('\n')
				case 't':
					b.WriteByte('\t')
				case '\\', delim:
					b.WriteByte(n)
				default:
					b.WriteByte('\\')
					b.WriteByte(n)
				}
			default:
				b.WriteByte(ch)
			}
		}
		return nil, fmt.Errorf("unmatched '%c'", delim)
	}
	from, err := part()
	if err != nil {
		return err
	}
	to, err := part()
	if err != nil {
		return err
	}
	if len(from) != len(to) {
		return errors.New("strings for 'y' command are different lengths")
	}
	c.table = map[rune]rune{}
	for i, r := range from {
		if _, ok := c.table[r]; !ok {
			c.table[r] = to[i]
		}
	}
	return p.end()
}
