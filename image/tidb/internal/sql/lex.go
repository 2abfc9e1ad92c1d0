package sql

import (
	"strings"
	"unicode/utf8"
)

// kind is what a token is.
type kind int

const (
	word   kind = iota // a name or a keyword
	quoted             // a name in backticks
	text               // a string
	number
	variable // @@name or @name
	mark     // a question mark
	symbol
)

// token is one word of a statement.
type token struct {
	kind kind
	text string // without quotes, escapes resolved
	from int    // where it begins
}

// is reports whether a token is one of some keywords, in capitals.
func (t token) is(keywords ...string) bool {
	if t.kind != word {
		return false
	}
	for _, k := range keywords {
		if strings.EqualFold(t.text, k) {
			return true
		}
	}
	return false
}

func (t token) symbol(s string) bool { return t.kind == symbol && t.text == s }

// name reports whether a token can be a name.
func (t token) name() bool { return t.kind == word || t.kind == quoted }

// maxTokens bounds a statement.
const maxTokens = 100_000

// symbols of more than one character, the longest first.
var symbols = []string{"<=>", "->>", "<=", ">=", "<>", "!=", "||", "&&", ":=", "<<", ">>", "->"}

// lex splits a statement into tokens. Comments are left out.
func lex(s string) ([]token, error) {
	var list []token
	for i := 0; i < len(s); {
		if len(list) > maxTokens {
			return nil, syntaxError("a statement with so many words", s)
		}
		c := s[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			i++
		case c == '#' || strings.HasPrefix(s[i:], "-- ") || strings.HasPrefix(s[i:], "--\n") || s[i:] == "--":
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return list, nil
			}
			i += n + 1
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return nil, syntaxError("a comment without an end", s[i:])
			}
			i += n + 4
		case c == '\'' || c == '"' || c == '`':
			t, n, ok := unquote(s[i:])
			if !ok {
				return nil, syntaxError("a string without an end", s[i:])
			}
			k := text
			if c == '`' {
				k = quoted
			}
			list = append(list, token{k, t, i})
			i += n
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' && !afterName(list):
			n := numberLength(s[i:])
			list = append(list, token{number, s[i : i+n], i})
			i += n
		case c == '@':
			n := 1
			for i+n < len(s) && (s[i+n] == '@' || s[i+n] == '.' || wordByte(s[i+n])) {
				n++
			}
			list = append(list, token{variable, s[i : i+n], i})
			i += n
		case c == '?':
			list = append(list, token{mark, "?", i})
			i++
		case wordByte(c):
			n := 1
			for i+n < len(s) && wordByte(s[i+n]) {
				n++
			}
			list = append(list, token{word, s[i : i+n], i})
			i += n
		default:
			t := symbolAt(s[i:])
			list = append(list, token{symbol, t, i})
			i += len(t)
		}
	}
	return list, nil
}

// afterName reports whether a dot that follows belongs to a name.
func afterName(list []token) bool { return len(list) > 0 && list[len(list)-1].name() }

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func symbolAt(s string) string {
	for _, x := range symbols {
		if strings.HasPrefix(s, x) {
			return x
		}
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[:n]
}

func numberLength(s string) int {
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		n := 2
		for n < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
			n++
		}
		return n
	}
	n := 0
	for n < len(s) {
		c := s[n]
		exponent := (c == '+' || c == '-') && n > 0 && (s[n-1] == 'e' || s[n-1] == 'E')
		if !exponent && c != '.' && c != 'e' && c != 'E' && (c < '0' || c > '9') {
			break
		}
		n++
	}
	return n
}

// escapes are what a backslash and a letter stand for.
var escapes = map[byte]string{
	'0': "\x00", 'b': "\b", 'n': "\n", 'r': "\r", 't': "\t", 'Z': "\x1a", '%': `\%`, '_': `\_`,
}

// unquote reads a text in quotes and returns how long it was.
func unquote(s string) (t string, n int, ok bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote && i+1 < len(s) && s[i+1] == quote:
			b.WriteByte(c)
			i++
		case c == quote:
			return b.String(), i + 1, true
		case c == '\\' && quote != '`' && i+1 < len(s):
			i++
			if e, ok := escapes[s[i]]; ok {
				b.WriteString(e)
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}
