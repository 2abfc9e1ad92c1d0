package text

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// span is a range of columns, from 1.
type span struct{ from, to int }

// parseSpans reads 1,3-5,7-.
func parseSpans(list string) (spans []span, err error) {
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		s := span{1, math.MaxInt}
		if from != "" {
			if s.from, err = strconv.Atoi(from); err != nil || s.from < 1 {
				return nil, fmt.Errorf("invalid range '%s'", part)
			}
		}
		switch {
		case !isRange:
			s.to = s.from
		case to != "":
			if s.to, err = strconv.Atoi(to); err != nil || s.to < s.from {
				return nil, fmt.Errorf("invalid range '%s'", part)
			}
		case from == "":
			return nil, fmt.Errorf("invalid range '%s'", part)
		}
		if from == "" && !isRange {
			return nil, fmt.Errorf("invalid range '%s'", part)
		}
		spans = append(spans, s)
	}
	return spans, nil
}

func selected(spans []span, i int) bool {
	for _, s := range spans {
		if i >= s.from && i <= s.to {
			return true
		}
	}
	return false
}

var cut = tool.Tool{
	Name: "cut",
	Options: "b:,bytes c:,characters f:,fields d:,delimiter s,only-delimited n complement " +
		"output-delimiter: F: O: D",
	Args: "{-b|c LIST | -f LIST [-d CHAR] [-s]} [FILE]...",
	Help: "Print selected fields from FILEs to stdout\n" +
		"\n" +
		"\t-b LIST\tOutput only bytes from LIST\n" +
		"\t-c LIST\tOutput only characters from LIST\n" +
		"\t-d CHAR\tInput field delimiter (default tab)\n" +
		"\t-f LIST\tPrint only these fields (-d is single char)\n" +
		"\t-s\tDrop lines with no delimiter",
	Run: func(_ context.Context, c *tool.Call) error {
		mode := c.Opts.Last("b", "c", "f")
		if mode == "" {
			return c.Fail(1, "expected a list of bytes, characters, or fields")
		}
		spans, err := parseSpans(c.Opts.Get(mode, ""))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		delim := c.Opts.Get("d", "\t")
		if len([]rune(delim)) != 1 {
			return c.Fail(1, "the delimiter must be a single character")
		}
		out := c.Opts.Get("output-delimiter", c.Opts.Get("O", map[bool]string{true: delim}[mode == "f"]))
		keep := func(i int) bool { return selected(spans, i) != c.Opts.Has("complement") }
		return c.EachLine(c.Args, func(line []byte, _ bool) error {
			text := string(line)
			var units []string
			switch mode {
			case "f":
				if !strings.Contains(text, delim) {
					if !c.Opts.Has("s") {
						c.Out.Line(text)
					}
					return nil
				}
				units = strings.Split(text, delim)
			case "c":
				units = strings.Split(text, "")
			default:
				for i := range line {
					units = append(units, text[i:i+1])
				}
			}
			var kept []string
			for i, u := range units {
				if keep(i + 1) {
					kept = append(kept, u)
				}
			}
			c.Out.Line(strings.Join(kept, out))
			return nil
		})
	},
}
