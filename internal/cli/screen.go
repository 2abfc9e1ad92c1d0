package cli

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// plainWidth is how wide lines are where there is no terminal to ask, and plainHeight how many of them there are.
	plainWidth  = 120
	plainHeight = 24
)

// screen is what a terminal can show. The zero value is a file: no colours, and lines of [plainWidth].
type screen struct {
	colour        bool
	width, height int // columns and lines; 0 is plainWidth and plainHeight
}

// screenOf asks what the terminal behind a writer can show. NO_COLOR and TERM=dumb turn colours off.
func screenOf(s *State, w any, terminal bool) screen {
	if !terminal {
		return screen{}
	}
	c := screen{colour: s.Env("NO_COLOR") == "" && s.Env("TERM") != "dumb"}
	if f, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			c.width, c.height = width, height
		}
	}
	return c
}

// columns is how many characters fit in a line behind an indentation.
func (c screen) columns(indent int) int {
	width := c.width
	if width == 0 {
		width = plainWidth
	}
	return max(width-indent, 20)
}

// lines is how many lines there are: two at least, one of them for the cursor.
func (c screen) lines() int { return max(cmp.Or(c.height, plainHeight), 2) }

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// visible is a text that may come from an agent, or from what it ran, without what a terminal would obey: it is written
// out instead, as in \x1b. Ends of lines and tabs stay.
func visible(text string) string {
	hidden := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\uFFFD")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
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

// paint colours a text, line by line, if the screen has colours. Colours are all that a terminal obeys in it.
func (c screen) paint(code, text string) string {
	text = visible(text)
	if !c.colour || text == "" || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// wrap breaks lines between words so that they fit. Longer words stay whole.
func wrap(text string, columns int) []string {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		for utf8.RuneCountInString(l) > columns {
			at := cutAt(l, columns)
			if at < 0 {
				break
			}
			lines = append(lines, strings.TrimRight(l[:at], " "))
			l = strings.TrimLeft(l[at:], " ")
		}
		lines = append(lines, l)
	}
	return lines
}

// cutAt is the place of the last blank before the columns end, or of the first one behind, or -1.
func cutAt(line string, columns int) int {
	at, seen := -1, 0
	for i, r := range line {
		if r == ' ' && i > 0 {
			if seen > columns && at >= 0 {
				return at
			}
			at = i
		}
		seen++
	}
	if at >= 0 && seen > columns {
		return at
	}
	return -1
}

// clip shortens a line to the columns.
func clip(line string, columns int) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	r := []rune(line)
	return string(r[:max(columns-1, 0)]) + "…"
}

// telling is what makes a line of output worth showing before others.
var telling = regexp.MustCompile(
	`(?i)\b(error|err|fail\w*|fatal|panic|denied|refused|unauthori[sz]ed|forbidden|timed? ?out|crash\w*|back-?off|` +
		`unhealthy|evicted|oomkilled|warning|pending|firing|not ?found|no such|unavailable|exit status)\b|\b0/[1-9]`)

// collapse keeps as many lines as are asked for: the first, the last, and between them those that
// tell of trouble, or else those that come first. A line says how many are left out.
func collapse(lines []string, most int) []string {
	if len(lines) <= most || most < 3 {
		return lines
	}
	keep := map[int]bool{0: true, len(lines) - 1: true}
	for _, wanted := range []func(string) bool{telling.MatchString, func(string) bool { return true }} {
		for i, l := range lines {
			if len(keep) < most && wanted(l) {
				keep[i] = true
			}
		}
	}
	var out []string
	skipped := 0
	for i, l := range lines {
		if !keep[i] {
			skipped++
			continue
		}
		if skipped > 0 {
			out = append(out, fmt.Sprintf("… %d more %s", skipped, plural(skipped, "line")))
			skipped = 0
		}
		out = append(out, l)
	}
	return out
}
