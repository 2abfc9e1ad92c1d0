package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// contractions are cut off from the word before them.
var contractions = []string{"s", "t", "re", "ve", "m", "ll", "d"}

// cut returns the length of the first piece of a text that is not empty. No token crosses the border of a piece. A
// piece is the first of these that the text begins with:
//
//   - a contraction, such as 've
//   - a word, with one other character before it that is no line break
//   - up to three digits
//   - punctuation, with a space before it and line breaks behind it
//   - white space: to its last line break, or else but for its last character, which goes with the word behind it
func cut(s string) int {
	first, width := utf8.DecodeRuneInString(s)
	if n := contraction(s); n > 0 {
		return n
	}
	before := 0
	if !unicode.IsLetter(first) && !unicode.IsNumber(first) && !isBreak(first) {
		before = width
	}
	if n := span(s[before:], len(s), unicode.IsLetter); n > 0 {
		return before + n
	}
	if n := span(s, 3, unicode.IsNumber); n > 0 {
		return n
	}
	before = 0
	if first == ' ' {
		before = 1
	}
	if n := span(s[before:], len(s), isPunctuation); n > 0 {
		return before + n + span(s[before+n:], len(s), isBreak)
	}
	n := span(s, len(s), unicode.IsSpace)
	if i := strings.LastIndexAny(s[:n], "\r\n"); i >= 0 {
		return i + 1
	}
	if _, last := utf8.DecodeLastRuneInString(s[:n]); n < len(s) && last < n {
		return n - last
	}
	return n
}

// contraction returns the length of the contraction that a text begins with, 0 if there is none.
func contraction(s string) int {
	rest, ok := strings.CutPrefix(s, "'")
	if !ok {
		return 0
	}
	for _, c := range contractions {
		if n := span(rest, len(c), func(rune) bool { return true }); strings.EqualFold(rest[:n], c) {
			return 1 + n
		}
	}
	return 0
}

// span returns the length of the characters of a class that a text begins with, of at most so many.
func span(s string, most int, class func(rune) bool) int {
	for i, r := range s {
		if most == 0 || !class(r) {
			return i
		}
		most--
	}
	return len(s)
}

func isBreak(r rune) bool { return r == '\r' || r == '\n' }

func isPunctuation(r rune) bool {
	return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
}
