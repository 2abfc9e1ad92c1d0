package coredns

import (
	"fmt"
	"strings"
	"unicode"
)

// block is one server of a Corefile.
type block struct {
	zones      []zone
	directives []directive
}

// zone is where a server listens and what it answers for.
type zone struct {
	name string // fully qualified, lower case
	port string
}

// directive is a plug-in and its configuration.
type directive struct {
	name string
	args []string
	body [][]string // the lines of its block
	line int
}

// known are the plug-ins of CoreDNS that clusters use. Others are refused, as by a CoreDNS that was
// built without them.
var known = map[string]bool{
	"errors": true, "health": true, "ready": true, "kubernetes": true, "prometheus": true, "forward": true,
	"cache": true, "loop": true, "reload": true, "loadbalance": true, "log": true, "hosts": true, "rewrite": true,
	"template": true, "bind": true, "debug": true, "minimal": true, "whoami": true,
}

// token is a word of a Corefile.
type token struct {
	text string
	line int
}

// tokens splits a Corefile into words; a brace is a word of its own.
func tokens(text string) (list []token) {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		for _, word := range words(line) {
			list = append(list, token{word, n})
		}
	}
	return list
}

// words splits a line at white space. Quotes keep words together; a word that starts with # starts
// a comment.
func words(line string) (list []string) {
	var word strings.Builder
	quoted, started := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, started = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == '#' && !started:
			return list
		case !unicode.IsSpace(r):
			word.WriteRune(r)
			started = true
		case started:
			list = append(list, word.String())
			word.Reset()
			started = false
		}
	}
	if started {
		list = append(list, word.String())
	}
	return list
}

// parser reads a Corefile word by word.
type parser struct {
	file  string
	words []token
	next  int
}

// parse reads a Corefile. Its errors are CoreDNS' own.
func parse(file, text string) (blocks []block, err error) {
	p := &parser{file: file, words: tokens(text)}
	for p.next < len(p.words) {
		b, err := p.block()
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func (p *parser) fail(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d - Error during parsing: %s", p.file, line, fmt.Sprintf(format, args...))
}

// at reports whether the next word is the given one.
func (p *parser) at(text string) bool { return p.next < len(p.words) && p.words[p.next].text == text }

// expect passes over a word.
func (p *parser) expect(text string) error {
	if !p.at(text) {
		return p.fail(p.words[p.next-1].line, "Unexpected end of file, expected '%s'", text)
	}
	p.next++
	return nil
}

// block reads ZONE... { DIRECTIVE... }.
func (p *parser) block() (b block, err error) {
	for ; p.next < len(p.words) && !p.at("{"); p.next++ {
		b.zones = append(b.zones, parseZone(strings.TrimSuffix(p.words[p.next].text, ",")))
	}
	if len(b.zones) == 0 {
		return b, p.fail(p.words[p.next].line, "a server block needs the zones it is for before its '{'")
	}
	if err := p.expect("{"); err != nil {
		return b, err
	}
	for p.next < len(p.words) && !p.at("}") {
		d, err := p.directive()
		if err != nil {
			return b, err
		}
		b.directives = append(b.directives, d)
	}
	return b, p.expect("}")
}

// directive reads NAME ARG... and a block, if one starts on the same line.
func (p *parser) directive() (d directive, err error) {
	d.name, d.line = p.words[p.next].text, p.words[p.next].line
	if !known[d.name] {
		return d, p.fail(d.line, "Unknown directive '%s'", d.name)
	}
	sameLine := func() bool { return p.next < len(p.words) && p.words[p.next].line == d.line }
	for p.next++; sameLine() && !p.at("{") && !p.at("}"); p.next++ {
		d.args = append(d.args, p.words[p.next].text)
	}
	if sameLine() && p.at("{") {
		p.next++
		d.body, err = p.body()
	}
	return d, err
}

// body reads the lines of a block to its closing brace. Braces within must match.
func (p *parser) body() (lines [][]string, err error) {
	last := 0
	for depth := 1; p.next < len(p.words); p.next++ {
		w := p.words[p.next]
		switch w.text {
		case "{":
			depth++
		case "}":
			depth--
		}
		if depth == 0 {
			break
		}
		if w.line != last {
			lines, last = append(lines, nil), w.line
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], w.text)
	}
	return lines, p.expect("}")
}

// parseZone reads the address of a server: zone, zone:port, dns://zone:port.
func parseZone(s string) zone {
	s = strings.TrimPrefix(s, "dns://")
	name, port, ok := strings.Cut(s, ":")
	if !ok {
		port = "53"
	}
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	return zone{strings.ToLower(name), port}
}
