package script

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var echo = tool.Tool{
	Name: "echo", Raw: true, Args: "[-neE] [ARG]...", Help: "Print ARGs to stdout",
	Run: func(_ context.Context, c *tool.Call) error {
		args, newline, escapes := c.Args, true, false
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
			for _, letter := range args[0][1:] {
				switch letter {
				case 'n':
					newline = false
				case 'e':
					escapes = true
				case 'E':
					escapes = false
				}
			}
			args = args[1:]
		}
		text := strings.Join(args, " ")
		if escapes {
			var stop bool
			if text, stop = unescape(text, true); stop {
				newline = false
			}
		}
		c.Out.WriteString(text)
		if newline {
			c.Out.WriteByte('\n')
		}
		return nil
	},
}

// unescape replaces the escapes of C in a text. stop reports a \c, which ends all output. In the
// arguments of echo -e and printf %b an octal number begins with a zero that does not count.
func unescape(s string, leadingZero bool) (out string, stop bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'c':
			return b.String(), true
		case 'x':
			n, used := digits(s[i+1:], 16, 2)
			if used == 0 {
				b.WriteString(`\x`)
				continue
			}
			b.WriteByte(byte(n))
			i += used
		case 'u', 'U':
			n, used := digits(s[i+1:], 16, map[byte]int{'u': 4, 'U': 8}[c])
			if used == 0 {
				b.WriteString(`\` + string(c))
				continue
			}
			b.WriteString(string(utf8.AppendRune(nil, rune(n))))
			i += used
		case '0', '1', '2', '3', '4', '5', '6', '7':
			start := i
			if leadingZero && c == '0' {
				start++
			} else if leadingZero {
				b.WriteString(`\` + string(c))
				continue
			}
			n, used := digits(s[start:], 8, 3)
			b.WriteByte(byte(n))
			i = start + used - 1
		default:
			if k := strings.IndexByte(`abefnrtv\"'`, c); k >= 0 {
				b.WriteByte("\a\b\x1b\f\n\r\t\v\\\"'"[k])
			} else {
				b.WriteString(`\` + string(c))
			}
		}
	}
	return b.String(), false
}

// digits reads a number of up to limit digits.
func digits(s string, base, limit int) (n, used int) {
	for used < limit && used < len(s) {
		d := strings.IndexByte("0123456789abcdef", s[used])
		if s[used] >= 'A' && s[used] <= 'F' {
			d = int(s[used]-'A') + 10
		}
		if d < 0 || d >= base {
			break
		}
		n = n*base + d
		used++
	}
	return n, used
}

var trueTool = tool.Tool{Name: "true", Raw: true, Run: func(context.Context, *tool.Call) error { return nil }}

var falseTool = tool.Tool{Name: "false", Raw: true, Run: func(context.Context, *tool.Call) error { return kit.Exit(1) }}

var yes = tool.Tool{
	Name: "yes", Raw: true, Args: "[STRING]", Help: "Repeatedly print a line with STRING, or 'y'",
	Run: func(_ context.Context, c *tool.Call) error {
		line := "y\n"
		if len(c.Args) > 0 {
			line = strings.Join(c.Args, " ") + "\n"
		}
		for {
			c.Out.WriteString(line)
		}
	},
}
