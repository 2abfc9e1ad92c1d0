package thought

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind says what a token is.
type kind int

const (
	opening kind = iota // of a thought
	closing
	empty // a thought without a word
	marker
	fence
	quote // also a backtick
	newline
)

// token is a part of a text that matters here.
type token struct {
	kind    kind
	at, end int
	name    string // of a marker; the character of a fence or quote
	left    int    // how many fences of its character there are from this one on
}

// tag matches the tags of DeepSeek, Qwen and most others, of Magistral, Kimi-VL, Command A, OpenThinker
// and Gemma, and the markers of Harmony.
var tag = regexp.MustCompile(`(?i)^(?:` +
	`<[ \t]*(/?)[ \t]*(?:[a-z]+:)?(?:` + names + `)(?:[ \t][^<>\n]*?)?(/?)[ \t]*>` +
	`|\[(/?)think\]` +
	`|◁(/?)think▷` +
	`|(<\|(?:start_thinking|begin_of_thought)\|>|<\|channel>thought\b)` +
	`|(<\|(?:end_thinking|end_of_thought)\|>|<channel\|>)` +
	`|<\|(start|channel|message|constrain|end|return|call)\|>)`)

// names are what models call their thoughts.
const names = `think|thinking|thinks|thought|thoughts|reason|reasoning|reasoning_process|reflect|reflection|rationale|scratchpad|` +
	`cot|chain_of_thought|inner_monologue|internal_monologue|inner_thoughts`

// maxTag is how long a tag is at most.
const maxTag = 128

// lex lists the tokens of a text.
func lex(text string) []token {
	var list []token
	for i := 0; i < len(text); {
		t, ok := tokenAt(text, i)
		if ok {
			list = append(list, t)
		}
		i = t.end
	}
	left := map[string]int{}
	for i := range slices.Backward(list) {
		if t := &list[i]; t.kind == fence {
			left[t.name]++
			t.left = left[t.name]
		}
	}
	return list
}

// tokenAt reads the token at a place. If there is none, its end says where to look next.
func tokenAt(text string, at int) (t token, ok bool) {
	t = token{at: at, end: at + 1, name: text[at : at+1]}
	switch c := text[at]; c {
	case '\\':
		t.end = min(at+2, len(text))
		return t, false
	case '\n':
		t.kind = newline
	case '"', '\'':
		t.kind = quote
	case '`', '~':
		t.kind = quote
		if run := len(text[at:]) - len(strings.TrimLeft(text[at:], t.name)); run >= 3 {
			t.kind, t.end = fence, at+run
		}
		return t, c == '`' || t.kind == fence
	case '<', '[', "◁"[0]:
		return tagAt(text, t)
	default:
		return t, false
	}
	return t, true
}

// tagAt reads a tag or a marker.
func tagAt(text string, t token) (token, bool) {
	m := tag.FindStringSubmatch(text[t.at:min(t.at+maxTag, len(text))])
	if m == nil {
		return t, false
	}
	t.end = t.at + len(m[0])
	switch {
	case m[7] != "":
		t.kind, t.name = marker, strings.ToLower(m[7])
	case m[1]+m[3]+m[4]+m[6] != "":
		t.kind = closing
	case m[2] != "":
		t.kind = empty
	default:
		t.kind = opening
	}
	return t, true
}

// scanner goes through the tokens of a text.
type scanner struct {
	text   string
	list   []token
	at     int
	nested bool // thoughts are taken to be nested, until that leaves one without an end
	cut    bool
}

// nextTag returns the next tag of the answer, or nil.
func (s *scanner) nextTag() *token {
	return s.next(func(t token) bool { return t.kind <= empty })
}

// next returns the next token that is wanted and not inside of code or quotes, or nil.
func (s *scanner) next(wanted func(token) bool) *token {
	for s.at < len(s.list) {
		i := s.at
		t := &s.list[i]
		s.at++
		if wanted(*t) {
			return t
		}
		if end := s.protected(i); end > 0 {
			s.at = end + 1
		}
	}
	return nil
}

// maxQuoted is how many tokens further on the end of a quotation is looked for.
const maxQuoted = 100

// protected returns the token that ends the code or the quotes that begin with a token; 0 for none.
func (s *scanner) protected(i int) int {
	switch t := s.list[i]; t.kind {
	case fence:
		return s.block(i)
	case quote:
		if r, _ := utf8.DecodeLastRuneInString(s.text[:t.at]); t.name == "'" && inWord(r) { // An apostrophe.
			return 0
		}
		for j := i + 1; j < min(len(s.list), i+maxQuoted) && s.list[j].kind != newline; j++ {
			u := s.list[j]
			r, _ := utf8.DecodeRuneInString(s.text[u.end:])
			if u.kind == quote && u.name == t.name && (u.name != "'" || !inWord(r)) {
				return j
			}
		}
	}
	return 0
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// block returns the fence that ends the block at a fence; 0 for none. If the fences do not add up and a
// closing tag begins a line of the block, it is a thought that leaves its block open.
func (s *scanner) block(i int) int {
	for j := i + 1; j < len(s.list); j++ {
		switch t := s.list[j]; {
		case t.kind == fence && t.name == s.list[i].name:
			return j
		case t.kind == closing && s.list[i].left%2 == 1 && s.beginsLine(t):
			return 0
		}
	}
	return 0
}

// beginsLine reports whether nothing but space stands before a token on its line.
func (s *scanner) beginsLine(t token) bool {
	before := strings.TrimRight(s.text[:t.at], " \t\r")
	return before == "" || before[len(before)-1] == '\n'
}

// closing returns the tag that ends the thought that a tag begins, and goes behind it; nil for none.
// Thoughts are nested. But a thought may speak of a tag, and so seem to begin another one; if that leaves
// the outer one without an end, though the reply was not cut off, it ends at the first tag that can end it.
func (s *scanner) closing() *token {
	depth := 1
	for i := s.at; i < len(s.list); i++ {
		switch s.list[i].kind {
		case opening:
			if s.nested {
				depth++
			}
		case closing:
			if depth--; depth == 0 {
				s.at = i + 1
				return &s.list[i]
			}
		}
	}
	if !s.nested || s.cut {
		return nil
	}
	s.nested = false
	return s.closing()
}
