package postgres

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kinds of tokens.
type kind int

const (
	word   kind = iota // a name or keyword
	quoted             // a name in double quotes
	text               // a string, without its quotes
	number
	param // $1
	sign  // an operator or punctuation
)

// token is a part of a statement.
type token struct {
	kind kind
	text string // of a word in lower case
}

// is tells whether a token is one of some keywords or signs.
func (t token) is(list ...string) bool {
	if t.kind != word && t.kind != sign {
		return false
	}
	for _, s := range list {
		if t.text == s {
			return true
		}
	}
	return false
}

// name is the name that a token is, if it is one.
func (t token) name() (string, bool) { return t.text, t.kind == word || t.kind == quoted }

// maxTokens is how long a statement may be.
const maxTokens = 20_000

// lex splits a query into statements, and each into tokens. Comments are dropped.
func lex(query string) (statements [][]token, err error) {
	l := lexer{in: query}
	var current []token
	for {
		t, more, err := l.next()
		if err != nil {
			return nil, err
		}
		if !more || t.is(";") {
			if len(current) > 0 {
				statements = append(statements, current)
				current = nil
			}
			if !more {
				return statements, nil
			}
			continue
		}
		if len(current) >= maxTokens {
			return nil, failf(codeTooLarge, "a statement has more than %d words", maxTokens)
		}
		current = append(current, t)
	}
}

type lexer struct {
	in string
	at int
}

// space skips what is between tokens.
func (l *lexer) space() error {
	for l.at < len(l.in) {
		rest := l.in[l.at:]
		switch {
		case strings.HasPrefix(rest, "--"):
			if i := strings.IndexByte(rest, '\n'); i >= 0 {
				l.at += i + 1
			} else {
				l.at = len(l.in)
			}
		case strings.HasPrefix(rest, "/*"):
			depth, i := 1, 2
			for ; i < len(rest) && depth > 0; i++ {
				switch {
				case strings.HasPrefix(rest[i:], "/*"):
					depth, i = depth+1, i+1
				case strings.HasPrefix(rest[i:], "*/"):
					depth, i = depth-1, i+1
				}
			}
			if depth > 0 {
				return failf(codeSyntax, "unterminated /* comment")
			}
			l.at += i
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			l.at++
		default:
			return nil
		}
	}
	return nil
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

// next returns a token, and whether there was one.
func (l *lexer) next() (token, bool, error) {
	if err := l.space(); err != nil {
		return token{}, false, err
	}
	if l.at >= len(l.in) {
		return token{}, false, nil
	}
	rest := l.in[l.at:]
	r, _ := utf8.DecodeRuneInString(rest)
	take := func(k kind, s string, n int) (token, bool, error) {
		l.at += n
		return token{k, s}, true, nil
	}
	switch {
	case r == 0:
		return token{}, false, failf(codeSyntax, "invalid byte sequence for encoding \"UTF8\": 0x00")
	case (r == 'e' || r == 'E') && len(rest) > 1 && rest[1] == '\'':
		s, n, ok := quotedText(rest[1:], '\'', true)
		if !ok {
			return token{}, false, failf(codeSyntax, "unterminated quoted string")
		}
		return take(text, s, n+1)
	case isLetter(r):
		n := len(rest)
		for i, c := range rest {
			if !isLetter(c) && !unicode.IsDigit(c) && c != '$' {
				n = i
				break
			}
		}
		return take(word, strings.ToLower(rest[:n]), n)
	case r == '\'' || r == '"':
		s, n, ok := quotedText(rest, byte(r), false)
		if !ok {
			return token{}, false, failf(codeSyntax, "unterminated quoted string")
		}
		if r == '"' {
			return take(quoted, s, n)
		}
		return take(text, s, n)
	case r == '$':
		return l.dollar(rest)
	case r >= '0' && r <= '9' || r == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		n := 0
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.' ||
			(rest[n] == 'e' || rest[n] == 'E') && n+1 < len(rest) &&
				strings.IndexByte("0123456789+-", rest[n+1]) >= 0 ||
			(rest[n] == '+' || rest[n] == '-') && n > 0 && (rest[n-1] == 'e' || rest[n-1] == 'E')) {
			n++
		}
		return take(number, rest[:n], n)
	}
	for _, op := range []string{"::", "||", "<=", ">=", "<>", "!=", "!~~*", "->>", "->", "!~", "~*"} {
		if strings.HasPrefix(rest, op) {
			return take(sign, op, len(op))
		}
	}
	if strings.IndexByte("()[],;.+-*/%<>=~|&?:@#!^", rest[0]) < 0 {
		return token{}, false, failf(codeSyntax, "syntax error at or near %q", string(r))
	}
	return take(sign, rest[:1], 1)
}

// dollar reads a parameter or a string in dollars.
func (l *lexer) dollar(rest string) (token, bool, error) {
	n := 1
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n > 1 {
		l.at += n
		return token{param, rest[1:n]}, true, nil
	}
	for n < len(rest) && (isLetter(rune(rest[n])) || rest[n] >= '0' && rest[n] <= '9') {
		n++
	}
	if n >= len(rest) || rest[n] != '$' {
		return token{}, false, failf(codeSyntax, `syntax error at or near "$"`)
	}
	tag := rest[:n+1]
	end := strings.Index(rest[n+1:], tag)
	if end < 0 {
		return token{}, false, failf(codeSyntax, "unterminated dollar-quoted string")
	}
	l.at += n + 1 + end + len(tag)
	return token{text, rest[n+1 : n+1+end]}, true, nil
}

// quotedText reads what is in quotes, in which a quote is written twice. n is how long it is.
func quotedText(in string, quote byte, escapes bool) (s string, n int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(in); i++ {
		switch c := in[i]; {
		case c == quote && i+1 < len(in) && in[i+1] == quote:
			b.WriteByte(quote)
			i++
		case c == quote:
			return b.String(), i + 1, true
		case c == '\\' && escapes && i+1 < len(in):
			i++
			if r := strings.IndexByte("nrtbf", in[i]); r >= 0 {
				b.WriteByte("\n\r\t\b\f"[r])
			} else {
				b.WriteByte(in[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}
