package nginx

import (
	"fmt"
	"strings"
)

// confError is a mistake in a configuration, worded as the original words it.
type confError struct {
	msg  string
	file string
	line int // 0 if the place does not matter
}

func (e *confError) Error() string {
	if e.line == 0 {
		return e.msg
	}
	return fmt.Sprintf("%s in %s:%d", e.msg, e.file, e.line)
}

// token is a word, quoted or not, or one of ; { }.
type token struct {
	text   string
	quoted bool
	line   int
}

// is reports whether a token is the given punctuation.
func (t token) is(punctuation string) bool { return !t.quoted && t.text == punctuation }

// lex splits a configuration file into tokens.
func lex(file, src string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case c == ';' || c == '{' || c == '}':
			tokens = append(tokens, token{text: string(c), line: line})
			i++
		case c == '"' || c == '\'':
			text, size, lines := lexQuoted(src[i:], c)
			if size == 0 {
				return nil, &confError{`unexpected end of file, expecting ";" or "}"`, file, lastLine(src)}
			}
			tokens = append(tokens, token{text: text, quoted: true, line: line})
			line += lines
			i += size
		default:
			text, size := lexWord(src[i:])
			tokens = append(tokens, token{text: text, line: line})
			i += size
		}
	}
	return tokens, nil
}

// lastLine is the number of the line a file ends on.
func lastLine(src string) int { return 1 + strings.Count(src, "\n") }

// lexQuoted reads a string in quotes. Its size is 0 if it has no end.
func lexQuoted(src string, quote byte) (text string, size, lines int) {
	var b strings.Builder
	for i := 1; i < len(src); i++ {
		switch c := src[i]; {
		case c == quote:
			return b.String(), i + 1, lines
		case c == '\\' && i+1 < len(src):
			i++
			b.WriteString(unescape(src[i]))
		default:
			if c == '\n' {
				lines++
			}
			b.WriteByte(c)
		}
	}
	return "", 0, lines
}

// lexWord reads a word without quotes. A brace that opens a variable's name is part of it.
func lexWord(src string) (text string, size int) {
	var b strings.Builder
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case strings.IndexByte(" \t\r\n;", c) >= 0:
			return b.String(), i
		case c == '{' && !strings.HasSuffix(b.String(), "$"):
			return b.String(), i
		case c == '{': // ${name}
			end := strings.IndexByte(src[i:], '}')
			if end < 0 {
				end = len(src) - i - 1
			}
			b.WriteString(src[i : i+end+1])
			i += end
		case c == '\\' && i+1 < len(src) && strings.IndexByte(" \t;{}\"'\\", src[i+1]) >= 0:
			i++
			b.WriteByte(src[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), len(src)
}

func unescape(c byte) string {
	switch c {
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case 'n':
		return "\n"
	case '"', '\'', '\\':
		return string(c)
	}
	return `\` + string(c) // Regular expressions need theirs.
}
