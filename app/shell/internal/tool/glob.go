package tool

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/pattern"
)

// globs remembers compiled patterns, since loops use the same ones again and again.
var globs = struct {
	sync.Mutex
	byPattern map[string]*regexp.Regexp
}{byPattern: map[string]*regexp.Regexp{}}

// maxGlobs bounds the memory of globs.
const maxGlobs = 1000

// Glob reports whether a text as a whole matches a shell pattern, with bash's extended operators. A
// malformed pattern matches itself.
func Glob(pat, text string, ignoreCase bool) bool {
	if !pattern.HasMeta(pat, 0) && !strings.Contains(pat, "(") && !ignoreCase {
		return unescape(pat) == text
	}
	mode := pattern.EntireString | pattern.ExtendedOperators
	if ignoreCase {
		mode |= pattern.NoGlobCase
	}
	re, err := compileGlob(pat, mode)
	if negative, ok := errors.AsType[*pattern.NegExtGlobError](err); ok {
		g := negative.Groups[0]
		return globWithout(pat[:g.Start], pat[g.Start+len("!("):g.End-len(")")], pat[g.End:], text, ignoreCase)
	}
	if err != nil {
		return pat == text
	}
	return re.MatchString(text)
}

func compileGlob(pat string, mode pattern.Mode) (*regexp.Regexp, error) {
	key := string(rune(mode)) + pat
	globs.Lock()
	defer globs.Unlock()
	if re := globs.byPattern[key]; re != nil {
		return re, nil
	}
	expr, err := pattern.Regexp(pat, mode)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	if len(globs.byPattern) >= maxGlobs {
		clear(globs.byPattern)
	}
	globs.byPattern[key] = re
	return re, nil
}

// globWithout matches before!(inner)after by trying every part of the text for the group.
func globWithout(before, inner, after, text string, ignoreCase bool) bool {
	for i := 0; i <= len(text); i++ {
		if !Glob(before, text[:i], ignoreCase) {
			continue
		}
		for j := len(text); j >= i; j-- {
			if Glob(after, text[j:], ignoreCase) && !Glob("@("+inner+")", text[i:j], ignoreCase) {
				return true
			}
		}
	}
	return false
}

func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}
