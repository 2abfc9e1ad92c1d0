package text

import (
	"context"
	"strconv"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var cmpTool = tool.Tool{
	Name: "cmp", Options: "l,verbose s,quiet,silent n:,bytes", Args: "[-ls] [-n NUM] FILE1 [FILE2]",
	Help: "Compare FILE1 with FILE2 (or stdin)", UsageCode: 2,
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) < 1 || len(c.Args) > 2 {
			return c.Usage()
		}
		names := append(c.Args, "-")[:2]
		var data [2][]byte
		for i, name := range names {
			var err error
			if data[i], err = c.ReadAll(name); err != nil {
				if c.Opts.Has("s") {
					return kit.Exit(2)
				}
				return c.Fail(2, "can't open '%s': %s", name, tool.Reason(err))
			}
		}
		if text := c.Opts.Get("n", ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return c.Fail(2, "invalid number '%s'", text)
			}
			data[0], data[1] = data[0][:min(n, len(data[0]))], data[1][:min(n, len(data[1]))]
		}
		return compareBytes(c, names, data[0], data[1])
	},
}

func compareBytes(c *tool.Call, names []string, a, b []byte) error {
	line, differ := 1, false
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			differ = true
			if c.Opts.Has("s") {
				return kit.Exit(1)
			}
			if !c.Opts.Has("l") {
				c.Out.Printf("%s %s differ: char %d, line %d\n", names[0], names[1], i+1, line)
				return kit.Exit(1)
			}
			c.Out.Printf("%4d %3o %3o\n", i+1, a[i], b[i])
		}
		if a[i] == '\n' {
			line++
		}
	}
	if len(a) != len(b) {
		shorter := names[0]
		if len(b) < len(a) {
			shorter = names[1]
		}
		if !c.Opts.Has("s") {
			c.Warn("EOF on %s", shorter)
		}
		return kit.Exit(1)
	}
	if differ {
		return kit.Exit(1)
	}
	return nil
}
