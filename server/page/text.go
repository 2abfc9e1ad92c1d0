package page

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// colours are what programs paint a terminal with, which says nothing on a page.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// visible is a text in which nothing is hidden: what a terminal would obey, or what turns the direction of writing, is
// spelt out.
func visible(text string) string {
	hidden := func(r rune) bool {
		return r != '\n' && r != '\t' && r != '\u00a0' && r != '\u202f' && !unicode.IsPrint(r)
	}
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	text = colours.ReplaceAllString(text, "")
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// How much of a text a page shows: its beginning and its end, where errors are.
const (
	shownHead = 1400
	shownTail = 500
)

// excerpt is what a page shows of a text.
type excerpt struct {
	Head, Tail string
	Left       string // how much is left out between them; empty if nothing is
	All        string // where the whole text is
}

// excerptOf cuts a text, at the ends of lines where there are some near. A text may be one long line.
func excerptOf(text, all string) excerpt {
	text = strings.Trim(text, "\n")
	if len(text) <= shownHead+shownTail+200 {
		return excerpt{Head: visible(text)}
	}
	head, tail := text[:shownHead], text[len(text)-shownTail:]
	if i := strings.LastIndexByte(head, '\n'); i > shownHead/2 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < shownTail/2 {
		tail = tail[i+1:]
	}
	head, tail = wholeRunes(head, tail)
	return excerpt{visible(head), visible(tail), size(len(text) - len(head) - len(tail)), all}
}

// wholeRunes drops the part of a character at the end of a text, and at the beginning of another.
func wholeRunes(head, tail string) (string, string) {
	for i := 1; i <= utf8.UTFMax && i <= len(head); i++ {
		if c := head[len(head)-i]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(head[len(head)-i:]) {
				head = head[:len(head)-i]
			}
			break
		}
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head, tail
}

// size is a number of bytes for people.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 999_950:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
