package system

import (
	"context"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var date = tool.Tool{
	Name: "date",
	Options: "d:,date s:,set u,utc,universal r:,reference R,rfc-email,rfc-2822 I::,iso-8601 rfc-3339: " +
		"D: n",
	Args: "[OPTIONS] [+FMT] [[-s] TIME]",
	Help: "Display time (using +FMT), or set time\n" +
		"\n" +
		"\t-u\t\tWork in UTC (don't convert to local time)\n" +
		"\t-s TIME\tSet time to TIME\n" +
		"\t-d TIME\tDisplay TIME, not 'now'\n" +
		"\t-r FILE\tDisplay last modification time of FILE\n" +
		"\t-R\t\tOutput RFC-2822 date\n" +
		"\t-I[SPEC]\tOutput ISO-8601 date",
	Run: func(_ context.Context, c *tool.Call) error {
		location := tool.Location(c.Env)
		if c.Opts.Has("u") {
			location = time.UTC
		}
		when := time.Now().In(location)
		format := "%a %b %e %H:%M:%S %Z %Y"
		for _, arg := range c.Args {
			text, ok := strings.CutPrefix(arg, "+")
			if !ok {
				return c.Fail(1, "can't set date: Operation not permitted")
			}
			format = text
		}
		switch {
		case c.Opts.Has("s"):
			return c.Fail(1, "can't set date: Operation not permitted")
		case c.Opts.Has("r"):
			name := c.Opts.Get("r", "")
			fi, err := c.Env.FS.Stat(c.Env.Path(name))
			if err != nil {
				return c.Fail(1, "%s: %s", name, tool.Reason(err))
			}
			when = fi.ModTime().In(location)
		case c.Opts.Has("d"):
			var err error
			if when, err = tool.ParseTime(c.Opts.Get("d", ""), when); err != nil {
				return c.Fail(1, "%v", err)
			}
		}
		switch {
		case c.Opts.Has("R"):
			format = "%a, %d %b %Y %H:%M:%S %z"
		case c.Opts.Has("I"):
			format = isoFormat(c.Opts.Get("I", ""))
		case c.Opts.Has("rfc-3339"):
			format = map[string]string{
				"date": "%F", "seconds": "%F %T%:z",
				"ns": "%F %T.%N%:z",
			}[c.Opts.Get("rfc-3339", "")]
		}
		c.Out.Line(tool.Strftime(when, format))
		return nil
	},
}

func isoFormat(precision string) string {
	switch {
	case precision == "" || strings.HasPrefix("date", precision):
		return "%F"
	case strings.HasPrefix("hours", precision):
		return "%FT%H%:z"
	case strings.HasPrefix("minutes", precision):
		return "%FT%H:%M%:z"
	case strings.HasPrefix("ns", precision):
		return "%FT%T,%N%:z"
	}
	return "%FT%T%:z"
}
