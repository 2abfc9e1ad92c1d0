package tool

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/pattern"

	"github.com/aiopslab/aiopslab/internal/nesting"
)

// globs remembers compiled patterns, since loops use the same ones again and again.
var globs = struct {
	sync.Mutex
	byPattern map[string]*regexp.Regexp
}{byPattern: map[string]*regexp.Regexp{}}

const (
	maxGlobs     = 1000    // that are remembered
	maxCached    = 1 << 10 // bytes of one that is
	maxGlob      = 16 << 10
	maxGlobDepth = 200
	maxGlobTries = 5000 // for one text
	maxNegative  = 8    // parts of the form !(...), each of which multiplies the work
)

// Glob reports whether a text as a whole matches a shell pattern, with bash's extended operators. A
// malformed pattern matches itself.
func Glob(pat, text string, ignoreCase bool) bool {
	tries := 0
	return glob(pat, text, ignoreCase, &tries)
}

// glob is Glob that counts how often it has tried. A pattern that takes too many matches nothing.
func glob(pat, text string, ignoreCase bool, tries *int) bool {
	if *tries++; *tries > maxGlobTries {
		return false
	}
	if !pattern.HasMeta(pat, 0) && !strings.Contains(pat, "(") && !ignoreCase {
		return unescape(pat) == text
	}
	if nesting.Check(pat, nesting.Limits{Size: maxGlob, Depth: maxGlobDepth}) != nil ||
		strings.Count(pat, "!(") > maxNegative {
		return pat == text
	}
	mode := pattern.EntireString | pattern.ExtendedOperators
	if ignoreCase {
		mode |= pattern.NoGlobCase
	}
	re, err := compileGlob(pat, mode)
	if negative, ok := errors.AsType[*pattern.NegExtGlobError](err); ok {
		g := negative.Groups[0]
		return globWithout(pat[:g.Start], pat[g.Start+len("!("):g.End-len(")")], pat[g.End:], text, ignoreCase, tries)
	}
	if err != nil {
		return pat == text
	}
	return re.MatchString(text)
}

func compileGlob(pat string, mode pattern.Mode) (*regexp.Regexp, error) {
	key := string(rune(mode)) + pat
	globs.Lock()
	re := globs.byPattern[key]
	globs.Unlock()
	if re != nil {
		return re, nil
	}
	expr, err := pattern.Regexp(pat, mode)
	if err != nil {
		return nil, err
	}
	if re, err = regexp.Compile(expr); err != nil {
		return nil, err
	}
	globs.Lock()
	defer globs.Unlock()
	if len(globs.byPattern) >= maxGlobs {
		clear(globs.byPattern)
	}
	if len(pat) <= maxCached {
		globs.byPattern[key] = re
	}
	return re, nil
}

// globWithout matches before!(inner)after by trying every part of the text for the group.
func globWithout(before, inner, after, text string, ignoreCase bool, tries *int) bool {
	for i := 0; i <= len(text) && *tries <= maxGlobTries; i++ {
		if !glob(before, text[:i], ignoreCase, tries) {
			continue
		}
		for j := len(text); j >= i && *tries <= maxGlobTries; j-- {
			if glob(after, text[j:], ignoreCase, tries) && !glob("@("+inner+")", text[i:j], ignoreCase, tries) &&
				*tries <= maxGlobTries {
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
