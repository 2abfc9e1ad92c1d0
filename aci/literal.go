package aci

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep lists and dicts may be nested.
const maxDepth = 32

// A reader reads Python's literals.
type reader struct {
	s     string
	at    int
	depth int
}

// space skips blanks, line ends, comments and line continuations.
func (r *reader) space() {
	for r.at < len(r.s) {
		switch c := r.s[r.at]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			r.at++
		case c == '\\' && strings.HasPrefix(r.s[r.at+1:], "\n"):
			r.at += 2
		case c == '#':
			if i := strings.IndexByte(r.s[r.at:], '\n'); i >= 0 {
				r.at += i
			} else {
				r.at = len(r.s)
			}
		default:
			return
		}
	}
}

// take skips a byte if it is next.
func (r *reader) take(c byte) bool {
	r.space()
	if r.at < len(r.s) && r.s[r.at] == c {
		r.at++
		return true
	}
	return false
}

// next describes what stands at the reader, for errors.
func (r *reader) next() string {
	if r.at >= len(r.s) {
		return "the end of the block"
	}
	line, _, _ := strings.Cut(r.s[r.at:], "\n")
	return strconv.Quote(short(line))
}

// arguments reads up to the closing parenthesis.
func (r *reader) arguments(call *Call) error {
	for {
		if r.take(')') {
			return nil
		}
		if key, ok := r.keyword(); ok {
			v, err := r.value()
			if err != nil {
				return err
			}
			if _, twice := call.Kwargs[key]; twice {
				return wrong("%s(...) has the argument %s twice.", call.Name, key)
			}
			call.Kwargs[key] = v
		} else {
			v, err := r.value()
			if err != nil {
				return err
			}
			if len(call.Kwargs) > 0 {
				return wrong("%s(...) has a positional argument behind a keyword argument.", call.Name)
			}
			call.Args = append(call.Args, v)
		}
		if r.take(',') {
			continue
		}
		if r.take(')') {
			return nil
		}
		return wrong("A comma or a closing parenthesis is missing in %s(...) before %s; quotes inside a string "+
			"need a backslash.", call.Name, r.next())
	}
}

// keyword reads "name =", if that is next.
func (r *reader) keyword() (string, bool) {
	r.space()
	n := name.FindString(r.s[r.at:])
	if n == "" {
		return "", false
	}
	rest := strings.TrimLeft(r.s[r.at+len(n):], " \t")
	if !strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, "==") {
		return "", false
	}
	r.at = len(r.s) - len(rest) + 1
	return n, true
}

// words are the constants, of Python and of JSON.
var words = map[string]any{"True": true, "False": false, "None": nil, "true": true, "false": false, "null": nil}

// value reads one literal.
func (r *reader) value() (any, error) {
	r.space()
	if r.at >= len(r.s) {
		return nil, wrong("The call is cut off: a value is missing.")
	}
	if r.depth++; r.depth > maxDepth {
		return nil, wrong("The arguments are nested too deep.")
	}
	defer func() { r.depth-- }()
	switch c := r.s[r.at]; {
	case c == '"' || c == '\'':
		return r.strings()
	case c == '[':
		r.at++
		return r.list(']')
	case c == '(':
		r.at++
		return r.tuple()
	case c == '{':
		r.at++
		return r.dict()
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return r.number()
	}
	n := name.FindString(r.s[r.at:])
	if v, ok := words[n]; ok {
		r.at += len(n)
		return v, nil
	}
	if n != "" && len(n) <= 2 && strings.ContainsAny(r.s[r.at+len(n):min(len(r.s), r.at+len(n)+1)], `"'`) {
		return r.strings() // a prefix such as r"..."
	}
	if n != "" {
		return nil, wrong("%s is not in quotes; write %q.", n, n)
	}
	return nil, wrong("A value is expected where %s stands.", r.next())
}

// list reads up to the closing bracket.
func (r *reader) list(end byte) ([]any, error) {
	list := []any{}
	for !r.take(end) {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !r.take(',') && !r.at1(end) {
			return nil, wrong("A comma or %q is missing before %s.", string(end), r.next())
		}
	}
	return list, nil
}

// at1 reports whether a byte is next.
func (r *reader) at1(c byte) bool {
	r.space()
	return r.at < len(r.s) && r.s[r.at] == c
}

// tuple reads a tuple as a list, and a value in parentheses as the value.
func (r *reader) tuple() (any, error) {
	start := r.at
	list, err := r.list(')')
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(r.s[start:r.at-1], " \t\r\n")
	if len(list) == 1 && !strings.HasSuffix(text, ",") {
		return list[0], nil
	}
	return list, nil
}

// dict reads up to the closing brace. Keys become strings; a set is not a dict.
func (r *reader) dict() (map[string]any, error) {
	dict := map[string]any{}
	for !r.take('}') {
		k, err := r.value()
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			return nil, wrong("A key of a dict must be a string, not %v.", k)
		}
		if !r.take(':') {
			return nil, wrong("A colon is missing behind the key %q.", key)
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if _, twice := dict[key]; twice {
			return nil, wrong("The key %q is there twice.", key)
		}
		dict[key] = v
		if !r.take(',') && !r.at1('}') {
			return nil, wrong("A comma or \"}\" is missing before %s.", r.next())
		}
	}
	return dict, nil
}

// number reads an integer or a float.
func (r *reader) number() (any, error) {
	end := r.at
	for end < len(r.s) && strings.IndexByte("+-._0123456789abcdefxABCDEFXoO", r.s[end]) >= 0 {
		end++
	}
	text := r.s[r.at:end]
	r.at = end
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil {
		return nil, wrong("%q is not a number.", short(text))
	}
	return f, nil
}

// strings reads string literals that follow one another, which are one string.
func (r *reader) strings() (string, error) {
	var b strings.Builder
	for {
		r.space()
		prefix := ""
		if n := name.FindString(r.s[r.at:]); len(n) > 0 && len(n) <= 2 {
			prefix = strings.ToLower(n)
		}
		at := r.at + len(prefix)
		if at >= len(r.s) || r.s[at] != '"' && r.s[at] != '\'' {
			if b.Len() == 0 && prefix != "" {
				return "", wrong("%s is not in quotes.", prefix)
			}
			return b.String(), nil
		}
		if strings.Trim(prefix, "rbu") != "" {
			return "", wrong("The string prefix %q is not supported; write a plain string.", prefix)
		}
		r.at = at
		if err := r.string(&b, strings.Contains(prefix, "r")); err != nil {
			return "", err
		}
		if r.space(); r.at < len(r.s) && r.s[r.at] != '"' && r.s[r.at] != '\'' {
			return b.String(), nil
		}
	}
}

// string reads one string literal.
func (r *reader) string(b *strings.Builder, raw bool) error {
	quote := r.s[r.at : r.at+1]
	if strings.HasPrefix(r.s[r.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	r.at += len(quote)
	for {
		rest := r.s[r.at:]
		switch {
		case rest == "":
			return wrong("A string is not closed: %s is missing.", quote)
		case strings.HasPrefix(rest, quote):
			r.at += len(quote)
			return nil
		case rest[0] == '\\' && len(rest) > 1:
			if raw {
				b.WriteString(rest[:2])
				r.at += 2
			} else {
				r.at += escape(b, rest)
			}
		default:
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(rest[:size])
			r.at += size
		}
	}
}

// escape writes what an escape sequence stands for and returns its length. Unknown ones stay as they
// are, which Python does too, and regular expressions need.
func escape(b *strings.Builder, s string) int {
	switch s[1] {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case '\\', '\'', '"':
		b.WriteByte(s[1])
	case '\n': // a line continuation
	case 'x', 'u', 'U':
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
		if len(s) >= 2+digits {
			if v, err := strconv.ParseUint(s[2:2+digits], 16, 32); err == nil && utf8.ValidRune(rune(v)) {
				b.WriteRune(rune(v))
				return 2 + digits
			}
		}
		b.WriteString(s[:2])
	default:
		_, size := utf8.DecodeRuneInString(s[1:])
		b.WriteString(s[:1+size])
		return 1 + size
	}
	return 2
}
