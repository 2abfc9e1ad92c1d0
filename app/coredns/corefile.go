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
	"errors": true, "health": true, "ready": true, "kubernetes": true, "prometheus": true, "forward": true, "cache": true, "loop": true,
	"reload": true, "loadbalance": true, "log": true, "hosts": true, "rewrite": true, "template": true, "bind": true, "debug": true, "minimal": true, "whoami": true,
}

// token is a word of a Corefile.
type token struct {
	text string
	line int
}

// tokens splits a Corefile into words; a brace is a word of its own.
func tokens(text string) (list []token) {
	for i, line := range strings.Split(text, "\n") {
		var word strings.Builder
		quoted, any := false, false
		flush := func() {
			if any {
				list = append(list, token{word.String(), i + 1})
			}
			word.Reset()
			any = false
		}
		for _, r := range line {
			switch {
			case r == '"':
				quoted, any = !quoted, true
			case quoted:
				word.WriteRune(r)
			case r == '#' && !any:
				goto next
			case unicode.IsSpace(r):
				flush()
			default:
				word.WriteRune(r)
				any = true
			}
		}
	next:
		flush()
	}
	return list
}

// parse reads a Corefile. Its errors are CoreDNS' own.
func parse(file, text string) ([]block, error) {
	fail := func(line int, format string, args ...any) ([]block, error) {
		return nil, fmt.Errorf("%s:%d - Error during parsing: %s", file, line, fmt.Sprintf(format, args...))
	}
	words := tokens(text)
	var blocks []block
	for i := 0; i < len(words); {
		var b block
		for ; i < len(words) && words[i].text != "{"; i++ {
			b.zones = append(b.zones, parseZone(strings.TrimSuffix(words[i].text, ",")))
		}
		if i == len(words) {
			return fail(words[i-1].line, "Unexpected end of file, expected '{'")
		}
		i++
		for i < len(words) && words[i].text != "}" {
			d := directive{name: words[i].text, line: words[i].line}
			if !known[d.name] {
				return fail(d.line, "Unknown directive '%s'", d.name)
			}
			for i++; i < len(words) && words[i].line == d.line && words[i].text != "{" && words[i].text != "}"; i++ {
				d.args = append(d.args, words[i].text)
			}
			if i < len(words) && words[i].text == "{" && words[i].line == d.line {
				depth := 1
				var line []string
				at := words[i].line
				for i++; i < len(words) && depth > 0; i++ {
					w := words[i]
					if w.line != at {
						if len(line) > 0 {
							d.body = append(d.body, line)
						}
						line, at = nil, w.line
					}
					switch w.text {
					case "{":
						depth++
					case "}":
						depth--
						continue
					}
					line = append(line, w.text)
				}
				if len(line) > 0 {
					d.body = append(d.body, line)
				}
				if depth > 0 {
					return fail(d.line, "Unexpected end of file, expected '}'")
				}
			}
			b.directives = append(b.directives, d)
		}
		if i == len(words) {
			return fail(words[i-1].line, "Unexpected end of file, expected '}'")
		}
		i++
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// parseZone reads the address of a server: zone, zone:port, dns://zone:port.
func parseZone(s string) zone {
	s = strings.TrimPrefix(s, "dns://")
	name, port, ok := strings.Cut(s, ":")
	if !ok {
		port = "53"
	}
	if name == "" {
		name = "."
	}
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	return zone{strings.ToLower(name), port}
}
