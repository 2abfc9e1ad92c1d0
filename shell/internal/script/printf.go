package script

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var printf = tool.Tool{
	Name: "printf", Raw: true, Args: "FORMAT [ARG]...",
	Help: "Format and print ARG(s) according to FORMAT (a-la C printf)",
	Run: func(_ context.Context, c *tool.Call) error {
		args := c.Args
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			return c.Usage()
		}
		p := &printer{c: c, args: args[1:]}
		for first := true; first || len(p.args) > 0 && p.consumed; first = false {
			p.consumed = false
			if err := p.format(args[0]); err != nil {
				return err
			}
			if p.stopped {
				return nil
			}
		}
		return nil
	},
}

// printer is a printf under way.
type printer struct {
	c        *tool.Call
	args     []string // not used yet
	consumed bool     // the format takes arguments
	stopped  bool     // by \c
}

func (p *printer) next() (string, bool) {
	p.consumed = true
	if len(p.args) == 0 {
		return "", false
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg, true
}

// format prints the format once.
func (p *printer) format(format string) error {
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			i = len(format)
		}
		text, stop := unescape(format[:i], false)
		p.c.Out.WriteString(text)
		if p.stopped = stop; stop || i == len(format) {
			return nil
		}
		rest := format[i+1:]
		if strings.HasPrefix(rest, "%") {
			p.c.Out.WriteByte('%')
			format = rest[1:]
			continue
		}
		n, err := p.directive(rest)
		if err != nil {
			return err
		}
		if p.stopped {
			return nil
		}
		format = rest[n:]
	}
	return nil
}

// directive prints one argument as what follows % says. It returns the length of that.
func (p *printer) directive(s string) (int, error) {
	flags, i := "", 0
	for i < len(s) && strings.IndexByte("-+ #0'", s[i]) >= 0 {
		if s[i] != '\'' {
			flags += s[i : i+1]
		}
		i++
	}
	size := func() string {
		if i < len(s) && s[i] == '*' {
			i++
			arg, _ := p.next()
			n := p.integer(arg)
			if n < 0 {
				flags, n = flags+"-", -n
			}
			return strconv.FormatInt(n, 10)
		}
		start := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return s[start:i]
	}
	spec := size()
	if i < len(s) && s[i] == '.' {
		i++
		spec += "." + size()
	}
	// C's sizes mean nothing here. %q is no size, unless a number follows.
	for i < len(s) && strings.IndexByte("hlLqjzt", s[i]) >= 0 {
		if s[i] == 'q' && (i+1 == len(s) || !strings.ContainsAny(s[i+1:i+2], "diouxX")) {
			break
		}
		i++
	}
	if i == len(s) {
		return 0, p.c.Fail(1, "%%%s: invalid format", s)
	}
	verb := "%" + flags + spec
	switch c := s[i]; c {
	case 's', 'b', 'q', 'c':
		p.text(c, verb)
	case 'd', 'i':
		arg, _ := p.next()
		p.c.Out.Printf(integerVerb(verb)+"d", p.integer(arg))
	case 'u', 'o', 'x', 'X':
		arg, _ := p.next()
		if c == 'u' {
			c = 'd'
		}
		p.c.Out.Printf(integerVerb(verb)+string(c), uint64(p.integer(arg)))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		arg, _ := p.next()
		if c == 'a' || c == 'A' {
			c = 'x' + c - 'a'
		}
		p.c.Out.WriteString(cFloat(fmt.Sprintf(verb+string(c), p.float(arg))))
	case '(':
		layout, _, ok := strings.Cut(s[i+1:], ")T")
		if !ok {
			return 0, p.c.Fail(1, "%%%s: invalid format", s)
		}
		p.time(verb, layout)
		return i + 1 + len(layout) + 2, nil
	default:
		return 0, p.c.Fail(1, "%%%s: invalid format", s[:i+1])
	}
	return i + 1, nil
}

// integerVerb drops the zero flag where a precision makes C ignore it.
func integerVerb(verb string) string {
	if strings.Contains(verb, ".") {
		return "%" + strings.TrimLeft(verb[1:], "0")
	}
	return verb
}

// cFloat writes what is no number as C does.
func cFloat(s string) string {
	return strings.NewReplacer("NaN", "nan", "+Inf", "inf", "Inf", "inf").Replace(s)
}

func (p *printer) text(kind byte, verb string) {
	arg, _ := p.next()
	switch kind {
	case 'b':
		text, stop := unescape(arg, true)
		arg, p.stopped = text, stop
	case 'q':
		arg = Quote(arg)
	case 'c':
		_, n := utf8.DecodeRuneInString(arg)
		arg = arg[:min(n, len(arg))]
	}
	p.c.Out.Printf(verb+"s", arg)
}

// Quote writes a text so that a shell reads it as one word.
func Quote(s string) string {
	if s == "" {
		return "''"
	}
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" {
		return s
	}
	if strings.ContainsAny(s, "\n\t\r\x1b") {
		escapes := strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x1b", `\E`)
		return "$'" + escapes.Replace(s) + "'"
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(" !\"#$&'()*;<>?[\\]^`{|}~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// integer reads an argument of %d: a number in C's notation, or a quote and a character.
func (p *printer) integer(arg string) int64 {
	if arg == "" {
		return 0
	}
	if arg[0] == '\'' || arg[0] == '"' {
		r, _ := utf8.DecodeRuneInString(arg[1:])
		return int64(r)
	}
	text := strings.TrimSpace(arg)
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return int64(n)
	}
	p.c.Warn("invalid number '%s'", arg)
	// What of it is a number counts.
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || i == 0 && (text[i] == '-' || text[i] == '+')) {
		i++
	}
	n, _ := strconv.ParseInt(text[:i], 10, 64)
	return n
}

func (p *printer) float(arg string) float64 {
	if arg == "" {
		return 0
	}
	if arg[0] == '\'' || arg[0] == '"' {
		return float64(p.integer(arg))
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
	if err != nil {
		p.c.Warn("invalid number '%s'", arg)
	}
	return f
}

// time is bash's %(format)T: an argument of -1 or none is now.
func (p *printer) time(verb, layout string) {
	when := time.Now()
	if arg, ok := p.next(); ok && arg != "-1" && arg != "-2" {
		when = time.Unix(p.integer(arg), 0)
	}
	if layout == "" {
		layout = "%H:%M:%S"
	}
	p.c.Out.Printf(verb+"s", tool.Strftime(when.In(tool.Location(p.c.Env)), layout))
}
