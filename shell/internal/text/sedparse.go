package text

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/regex"
)

// sedCommand is a command of a sed script.
type sedCommand struct {
	first, second *sedAddress
	negate        bool
	name          byte
	text          string // of a, i and c; the label of b, t, T and :; the file of r, R, w and W
	number        int    // of q, Q and l
	target        int    // where b, t and T go, and where { ends
	sub           *substitution
	table         map[rune]rune // of y
}

type addressKind int

const (
	atLine addressKind = iota
	atLast             // $
	atRegex
	atStep     // first~step
	linesAfter // addr,+N
	multipleOf // addr,~N
)

type sedAddress struct {
	kind       addressKind
	line, step int
	re         *regex.Regexp // nil is the last one that was used
}

// sedParser reads a script.
type sedParser struct {
	src      string
	at       int
	extended bool
	commands []*sedCommand
	blocks   []int // the { that are open
	labels   map[string]int
}

func parseSed(script string, extended bool) ([]*sedCommand, error) {
	p := &sedParser{src: script, extended: extended, labels: map[string]int{}}
	for {
		p.skip(" \t\n;")
		if p.at >= len(p.src) {
			break
		}
		if p.src[p.at] == '#' {
			p.untilNewline()
			continue
		}
		if err := p.command(); err != nil {
			return nil, err
		}
	}
	if len(p.blocks) > 0 {
		return nil, errors.New("unmatched '{'")
	}
	for _, c := range p.commands {
		if strings.IndexByte("btT", c.name) < 0 {
			continue
		}
		c.target = len(p.commands)
		if c.text != "" {
			at, ok := p.labels[c.text]
			if !ok {
				return nil, fmt.Errorf("can't find label for jump to '%s'", c.text)
			}
			c.target = at
		}
	}
	return p.commands, nil
}

func (p *sedParser) skip(set string) {
	for p.at < len(p.src) && strings.IndexByte(set, p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *sedParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *sedParser) untilNewline() string {
	rest := p.src[p.at:]
	line, _, _ := strings.Cut(rest, "\n")
	p.at += len(line)
	return line
}

func (p *sedParser) number() (int, bool) {
	start := p.at
	for p.at < len(p.src) && p.src[p.at] >= '0' && p.src[p.at] <= '9' {
		p.at++
	}
	n, err := strconv.Atoi(p.src[start:p.at])
	return n, err == nil
}

func (p *sedParser) address() (*sedAddress, error) {
	switch b := p.peek(); {
	case b == '$':
		p.at++
		return &sedAddress{kind: atLast}, nil
	case b >= '0' && b <= '9':
		n, ok := p.number()
		if !ok {
			return nil, errors.New("bad line number")
		}
		if p.peek() == '~' {
			p.at++
			step, _ := p.number()
			return &sedAddress{kind: atStep, line: n, step: step}, nil
		}
		return &sedAddress{kind: atLine, line: n}, nil
	case b == '/' || b == '\\':
		if b == '\\' {
			p.at++
		}
		if p.at >= len(p.src) {
			return nil, errors.New("no address after '\\'")
		}
		re, err := p.regexUpTo()
		if err != nil {
			return nil, err
		}
		flags := regex.Options{Escapes: true}
		for p.peek() == 'I' || p.peek() == 'M' {
			flags.IgnoreCase = flags.IgnoreCase || p.peek() == 'I'
			flags.Multiline = flags.Multiline || p.peek() == 'M'
			p.at++
		}
		a := &sedAddress{kind: atRegex}
		if re != "" {
			a.re, err = p.compile(re, flags)
		}
		return a, err
	}
	return nil, nil
}

func (p *sedParser) compile(expr string, opts regex.Options) (*regex.Regexp, error) {
	syntax := regex.Basic
	if p.extended {
		syntax = regex.Extended
	}
	re, err := regex.Compile(expr, syntax, opts)
	if err != nil {
		return nil, fmt.Errorf("bad regex '%s': %w", expr, err)
	}
	return re, nil
}

// regexUpTo reads an expression between delimiters, of which the first is at hand. In brackets the
// delimiter is an ordinary character.
func (p *sedParser) regexUpTo() (string, error) {
	delim := p.src[p.at]
	p.at++
	var b strings.Builder
	for ; p.at < len(p.src); p.at++ {
		c := p.src[p.at]
		switch {
		case c == delim:
			p.at++
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.src):
			p.at++
			switch next := p.src[p.at]; {
			case next == delim && strings.IndexByte(`.*[]^$+?(){}|`, delim) < 0, next == '\n':
				b.WriteByte(next)
			default:
				b.WriteByte('\\')
				b.WriteByte(next)
			}
		case c == '[':
			end := bracketEnd(p.src, p.at)
			b.WriteString(p.src[p.at:end])
			p.at = end - 1
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("unmatched '%c'", delim)
}

// bracketEnd returns where the bracket expression that begins at i ends. One that does not end is a
// bracket, and nothing more.
func bracketEnd(s string, i int) int {
	start := i
	i++
	if i < len(s) && s[i] == '^' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	for i < len(s) {
		switch {
		case s[i] == ']':
			return i + 1
		case s[i] == '\n':
			return start + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			if end := strings.Index(s[i+2:], s[i+1:i+2]+"]"); end >= 0 {
				i += end + 3
			}
		}
		i++
	}
	return start + 1
}

func (p *sedParser) command() error {
	c := &sedCommand{}
	var err error
	if c.first, err = p.address(); err != nil {
		return err
	}
	p.skip(" \t")
	if c.first != nil && p.peek() == ',' {
		p.at++
		p.skip(" \t")
		if c.second, err = p.secondAddress(); err != nil {
			return err
		}
		p.skip(" \t")
	}
	for p.peek() == '!' || p.peek() == ' ' {
		c.negate = c.negate || p.peek() == '!'
		p.at++
	}
	if p.at >= len(p.src) {
		return errors.New("missing command")
	}
	c.name = p.src[p.at]
	p.at++
	p.commands = append(p.commands, c)
	return p.arguments(c)
}

func (p *sedParser) secondAddress() (*sedAddress, error) {
	if b := p.peek(); b == '+' || b == '~' {
		p.at++
		n, ok := p.number()
		if !ok {
			return nil, errors.New("unexpected ','")
		}
		if b == '+' {
			return &sedAddress{kind: linesAfter, line: n}, nil
		}
		return &sedAddress{kind: multipleOf, line: n}, nil
	}
	a, err := p.address()
	if err == nil && a == nil {
		err = errors.New("unexpected ','")
	}
	return a, err
}

// arguments reads what follows the letter of a command.
func (p *sedParser) arguments(c *sedCommand) error {
	switch c.name {
	case '{':
		p.blocks = append(p.blocks, len(p.commands)-1)
		return nil
	case '}':
		if len(p.blocks) == 0 || c.first != nil {
			return errors.New("unexpected '}'")
		}
		p.commands[p.blocks[len(p.blocks)-1]].target = len(p.commands) - 1
		p.blocks = p.blocks[:len(p.blocks)-1]
	case 'a', 'i', 'c':
		return p.textArgument(c)
	case ':', 'b', 't', 'T':
		p.skip(" \t")
		end := strings.IndexAny(p.src[p.at:], "\n;}")
		if c.name == ':' {
			end = strings.IndexAny(p.src[p.at:], "\n;")
		}
		if end < 0 {
			end = len(p.src) - p.at
		}
		c.text = strings.TrimSpace(p.src[p.at : p.at+end])
		p.at += end
		if c.name == ':' {
			if c.text == "" {
				return errors.New("':' lacks a label")
			}
			p.labels[c.text] = len(p.commands)
		}
		return nil
	case 'r', 'R', 'w', 'W':
		p.skip(" \t")
		if c.text = p.untilNewline(); c.text == "" {
			return errors.New("empty filename")
		}
		return nil
	case 's':
		return p.substitution(c)
	case 'y':
		return p.transliteration(c)
	case 'q', 'Q', 'l', 'L':
		p.skip(" \t")
		c.number, _ = p.number()
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
	default:
		return fmt.Errorf("unsupported command %c", c.name)
	}
	return p.end()
}

// end checks that a command is followed by another one properly.
func (p *sedParser) end() error {
	p.skip(" \t")
	if p.at >= len(p.src) || strings.IndexByte("\n;}#", p.src[p.at]) >= 0 {
		return nil
	}
	return errors.New("extra characters after command")
}

// textArgument reads the text of a, i and c: the rest of the line, and the lines after it as long as
// they end in a backslash.
func (p *sedParser) textArgument(c *sedCommand) error {
	p.skip(" \t")
	if p.peek() == '\\' {
		p.at++
		save := p.at
		p.skip(" \t")
		if p.peek() == '\n' {
			p.at++
		} else {
			p.at = save // a\text keeps its blanks.
		}
	}
	var b strings.Builder
	for p.at < len(p.src) && p.src[p.at] != '\n' {
		if p.src[p.at] == '\\' {
			if p.at++; p.at == len(p.src) {
				break
			}
		}
		b.WriteByte(p.src[p.at])
		p.at++
	}
	if b.Len() == 0 && p.at >= len(p.src) && !strings.HasSuffix(p.src, "\n") {
		return fmt.Errorf("expected \\ after 'a', 'c' or 'i'")
	}
	c.text = b.String()
	return nil
}
