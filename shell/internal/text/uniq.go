package text

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// lineSize is what a line takes beside its text.
const lineSize = 32

var uniq = tool.Tool{
	Name: "uniq",
	Options: "c,count d,repeated D u,unique i,ignore-case f:,skip-fields s:,skip-chars w:,check-chars " +
		"z",
	Args: "[-cduiz] [-f,s,w N] [FILE [OUTFILE]]",
	Help: "Discard duplicate lines\n" +
		"\n" +
		"\t-c\tPrefix lines by the number of occurrences\n" +
		"\t-d\tOnly print duplicate lines\n" +
		"\t-u\tOnly print unique lines\n" +
		"\t-i\tIgnore case\n" +
		"\t-f N\tSkip first N fields\n" +
		"\t-s N\tSkip first N chars (after any skipped fields)\n" +
		"\t-w N\tCompare N characters in line",
	Run: func(_ context.Context, c *tool.Call) error {
		number := func(name string) int {
			n, _ := strconv.Atoi(c.Opts.Get(name, "0"))
			return n
		}
		fields, chars, width := number("f"), number("s"), number("w")
		key := func(line string) string {
			for range fields {
				line = strings.TrimLeft(line, " \t")
				if i := strings.IndexAny(line, " \t"); i >= 0 {
					line = line[i:]
				} else {
					line = ""
				}
			}
			line = line[min(chars, len(line)):]
			if width > 0 {
				line = line[:min(width, len(line))]
			}
			if c.Opts.Has("i") {
				line = strings.ToLower(line)
			}
			return line
		}
		var out io.Writer = c.Out
		var files []string
		if len(c.Args) > 0 {
			files = c.Args[:1]
		}
		if len(c.Args) > 1 {
			f, err := c.Create(c.Args[1], os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
			if err != nil {
				return c.Fail(1, "can't open '%s': %s", c.Args[1], tool.Reason(err))
			}
			defer f.Close()
			out = f
		}
		var group []string // lines that are alike, or the first of them
		n := 0             // how many they are
		flush := func() {
			if n == 0 || c.Opts.Has("u") && n > 1 || (c.Opts.Has("d") || c.Opts.Has("D")) && n == 1 {
				return
			}
			prefix := ""
			if c.Opts.Has("c") {
				prefix = strings.Repeat(" ", max(0, 7-len(strconv.Itoa(n)))) + strconv.Itoa(n) + " "
			}
			show := group[:1]
			if c.Opts.Has("D") {
				show = group
			}
			for _, line := range show {
				io.WriteString(out, prefix+line+"\n")
			}
		}
		err := c.EachLine(files, func(line []byte, _ bool) error {
			if len(group) > 0 && key(group[0]) != key(string(line)) {
				flush()
				for _, l := range group {
					c.Hold(-lineSize - len(l))
				}
				group, n = group[:0], 0
			}
			if n++; n == 1 || c.Opts.Has("D") {
				c.Hold(lineSize + len(line))
				group = append(group, string(line))
			}
			return nil
		})
		flush()
		return err
	},
}
