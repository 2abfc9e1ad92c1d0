package regex

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Syntax is a way to write regular expressions.
type Syntax int

// The syntaxes.
const (
	Basic    Syntax = iota // grep, sed, expr
	Extended               // grep -E, sed -E, find -regextype posix-extended
	Perl                   // grep -P
)

// Options change what an expression matches.
type Options struct {
	IgnoreCase bool
	Multiline  bool // ^ and $ match at every line of the text
	Escapes    bool // \n, \t and \xHH mean what they mean in C, as they do to sed
}

// Regexp is a compiled expression. It is safe for concurrent use.
type Regexp struct {
	std    *regexp.Regexp // nil if it has to be
	back   *backtracker
	groups int
	cost   int // steps for each byte of a text, at worst
}

// maxCost bounds the steps on one text. They cannot be interrupted, and are some seconds; what needs
// more does not match.
const maxCost = 200_000_000

// Compile reads an expression. Its error is in the words of the C library.
func Compile(expr string, form Syntax, opts Options) (*Regexp, error) {
	if len(expr) > maxLength {
		return nil, errTooBig
	}
	flags := "(?s"
	if opts.IgnoreCase {
		flags += "i"
	}
	if opts.Multiline {
		flags += "m"
	}
	flags += ")"
	if form == Perl {
		if std, cost, err := compile(flags + expr); err == nil {
			return &Regexp{std: std, groups: std.NumSubexp(), cost: cost}, nil
		}
	}
	p := &parser{src: expr, syntax: form, opts: opts, fold: opts.IgnoreCase, names: map[string]int{}}
	root, err := p.parse()
	if err != nil {
		return nil, err
	}
	re := &Regexp{groups: p.groups}
	if translated, ok := translate(root); ok && form != Perl {
		if std, cost, err := compile(flags + translated); err == nil {
			std.Longest()
			re.std, re.cost = std, cost
			return re, nil
		}
	}
	re.back = &backtracker{root: root, groups: p.groups, multiline: opts.Multiline}
	return re, nil
}

// compile compiles an expression of package regexp, and returns how large a program it is.
func compile(expr string) (*regexp.Regexp, int, error) {
	re, err := regexp.Compile(expr)
	if err != nil || len(expr) < 100 && !strings.ContainsRune(expr, '{') {
		return re, 1, err
	}
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, err
	}
	return re, len(program.Inst), nil
}

// bearable reports whether a text is short enough for the expression.
func (re *Regexp) bearable(s string) bool { return re.std == nil || re.cost*len(s) <= maxCost }

// Literal returns an expression that matches a text itself.
func Literal(text string, opts Options) *Regexp {
	flags := ""
	if opts.IgnoreCase {
		flags = "(?i)"
	}
	return &Regexp{std: regexp.MustCompile(flags + regexp.QuoteMeta(strings.ToValidUTF8(text, "\uFFFD")))}
}

// Groups returns the number of parenthesised parts.
func (re *Regexp) Groups() int { return re.groups }

// Match reports whether the expression matches anywhere in s.
func (re *Regexp) Match(s string) bool {
	if !re.bearable(s) {
		return false
	}
	if re.std != nil {
		return re.std.MatchString(s)
	}
	return re.back.find(s, 0) != nil
}

// Find returns the first match as pairs of offsets, of the whole and of each group; -1 stands for a group that
// took no part. Without a match it returns nil.
func (re *Regexp) Find(s string) []int {
	if !re.bearable(s) {
		return nil
	}
	if re.std != nil {
		return re.std.FindStringSubmatchIndex(s)
	}
	return re.back.find(s, 0)
}

// MaxMatches is how many matches FindAll returns at most: each takes far more than the byte that it may
// be a match of.
const MaxMatches = 1 << 20

// FindAll returns up to n matches that do not overlap, MaxMatches if n is negative. An empty match right
// after another match does not count.
func (re *Regexp) FindAll(s string, n int) [][]int {
	if n < 0 {
		n = MaxMatches
	}
	if !re.bearable(s) {
		return nil
	}
	if re.std != nil {
		return re.std.FindAllStringSubmatchIndex(s, n)
	}
	var all [][]int
	previous := -1
	for at := 0; at <= len(s) && (n < 0 || len(all) < n); {
		m := re.back.find(s, at)
		if m == nil {
			break
		}
		if m[1] > m[0] || m[0] != previous {
			all = append(all, m)
		}
		previous = m[1]
		if at = m[1]; m[1] == m[0] {
			_, size := utf8.DecodeRuneInString(s[at:])
			at += max(size, 1)
		}
	}
	return all
}
