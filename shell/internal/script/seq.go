package script

import (
	"context"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var seq = tool.Tool{
	Name: "seq", Raw: true, Args: "[-w] [-s SEP] [FIRST [INC]] LAST",
	Help: "Print numbers from FIRST to LAST, in steps of INC.\n" +
		"FIRST, INC default to 1.\n" +
		"\n" +
		"\t-w\tPad with leading zeros\n" +
		"\t-s SEP\tString separator",
	Run: func(_ context.Context, c *tool.Call) error {
		sep, width, format := "\n", false, ""
		args := c.Args
		// A negative number is no option, so they are read by hand.
	options:
		for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' &&
			!strings.ContainsAny(args[0][1:2], "0123456789.") {
			switch a := args[0]; {
			case a == "--":
				args = args[1:]
				break options
			case a == "-w" || a == "--equal-width":
				width = true
			case strings.HasPrefix(a, "-s") && len(a) > 2:
				sep = a[2:]
			case strings.HasPrefix(a, "--separator="):
				sep = strings.TrimPrefix(a, "--separator=")
			case a == "-s" && len(args) > 1:
				sep, args = args[1], args[1:]
			case a == "-f" && len(args) > 1:
				format, args = args[1], args[1:]
			default:
				c.Warn("unrecognized option: %s", strings.TrimLeft(a, "-"))
				return c.Usage()
			}
			args = args[1:]
		}
		if len(args) < 1 || len(args) > 3 {
			return c.Usage()
		}
		values := map[int][3]int{1: {-1, -1, 0}, 2: {0, -1, 1}, 3: {0, 1, 2}}[len(args)]
		numbers, places := [3]float64{1, 1, 1}, 0
		for i, at := range values {
			if at < 0 {
				continue
			}
			n, err := strconv.ParseFloat(args[at], 64)
			if err != nil {
				return c.Fail(1, "invalid number '%s'", args[at])
			}
			numbers[i] = n
			if _, fraction, ok := strings.Cut(args[at], "."); ok && i < 2 {
				places = max(places, len(fraction))
			}
		}
		writeSequence(c, numbers, places, sep, width, format)
		return nil
	},
}

func writeSequence(c *tool.Call, n [3]float64, places int, sep string, width bool, format string) {
	first, step, last := n[0], n[1], n[2]
	text := func(v float64) string { return strconv.FormatFloat(v, 'f', places, 64) }
	size := 0
	if width {
		size = max(len(text(first)), len(text(last)))
	}
	wrote := false
	for i := 0; ; i++ {
		v := first + float64(i)*step
		if step > 0 && v > last+1e-9 || step < 0 && v < last-1e-9 {
			break
		}
		if wrote {
			c.Out.WriteString(sep)
		}
		wrote = true
		s := text(v)
		if format != "" {
			p := &printer{c: c, args: []string{s}}
			if p.format(format) != nil {
				return
			}
			continue
		}
		if pad := size - len(s); pad > 0 {
			sign := ""
			if strings.HasPrefix(s, "-") {
				sign, s = "-", s[1:]
			}
			s = sign + strings.Repeat("0", pad) + s
		}
		c.Out.WriteString(s)
	}
	if wrote {
		c.Out.WriteByte('\n')
	}
}
