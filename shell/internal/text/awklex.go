package text

import (
	"regexp"
	"strings"
)

type awkKind int

const (
	awkName awkKind = iota
	awkNumber
	awkString
	awkRegex
	awkNewline
	awkOp
	awkRaw // the result of a rewrite
)

// awkToken is a token of an awk program with its text, which is enough to write it again.
type awkToken struct {
	kind  awkKind
	text  string
	close bool // it touches the token before it
}

func (t awkToken) is(texts ...string) bool {
	if t.kind != awkOp && t.kind != awkName {
		return false
	}
	for _, s := range texts {
		if t.text == s {
			return true
		}
	}
	return false
}

// awkOps are the operators, the longest first.
var awkOps = []string{
	"**=", "&&", "||", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "!=", "<=", ">=", "!~", "**",
}

var awkNumeral = regexp.MustCompile(`^(0[xX][0-9a-fA-F]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)`)

// lexAwk cuts a program into tokens. It is known to be correct, so nothing is checked.
func lexAwk(src string) (tokens []awkToken) {
	end := -1 // of the last token
	var i int
	add := func(kind awkKind, text string) {
		tokens = append(tokens, awkToken{kind: kind, text: text, close: i-len(text) == end})
		end = i
	}
	for i < len(src) {
		start := i
		switch c := src[i]; {
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '\\' && i+1 < len(src) && (src[i+1] == '\n' || src[i+1] == '\r'):
			i += 2
		case c == '\n':
			i++
			add(awkNewline, "\n")
		case c == '#':
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case c == '"':
			i = quotedEnd(src, i, '"')
			add(awkString, src[start:i])
		case c == '/' && regexAllowed(tokens):
			i = awkRegexEnd(src, i)
			add(awkRegex, src[start:i])
		case isNameByte(c) && (c < '0' || c > '9'):
			for i < len(src) && isNameByte(src[i]) {
				i++
			}
			add(awkName, src[start:i])
		case c >= '0' && c <= '9' || c == '.':
			i += len(awkNumeral.FindString(src[i:]))
			i = max(i, start+1)
			add(awkNumber, src[start:i])
		default:
			i++
			for _, op := range awkOps {
				if strings.HasPrefix(src[start:], op) {
					i = start + len(op)
					break
				}
			}
			add(awkOp, src[start:i])
		}
	}
	return tokens
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// quotedEnd returns where a quoted text that begins at i ends.
func quotedEnd(s string, i int, quote byte) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(s)
}

// awkRegexEnd returns where a regular expression that begins at i ends. A slash in brackets does not
// end it.
func awkRegexEnd(s string, i int) int {
	bracket := false
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[' && !bracket:
			bracket = true
			if strings.HasPrefix(s[i+1:], "^]") {
				i += 2
			} else if strings.HasPrefix(s[i+1:], "]") {
				i++
			}
		case s[i] == ']':
			bracket = false
		case s[i] == '/' && !bracket:
			return i + 1
		}
	}
	return len(s)
}

// regexAllowed reports whether a slash after these tokens begins a regular expression rather than
// being a division.
func regexAllowed(tokens []awkToken) bool {
	if len(tokens) == 0 {
		return true
	}
	switch last := tokens[len(tokens)-1]; last.kind {
	case awkNumber, awkString, awkRegex:
		return false
	case awkName:
		return last.is("print", "printf", "return", "in", "else", "do", "case")
	case awkOp:
		return !last.is(")", "]", "++", "--", "$")
	}
	return true
}

// joinAwk writes tokens as a program.
func joinAwk(tokens []awkToken) string {
	var b strings.Builder
	for i, t := range tokens {
		// A name touches the parenthesis of its call; anything else may be apart.
		if i > 0 && !(t.close && t.text == "(" && tokens[i-1].kind == awkName) && t.kind != awkNewline {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}
