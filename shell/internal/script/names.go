package script

import (
	"context"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var basename = tool.Tool{
	Name: "basename", Options: "a,multiple s:,suffix z,zero",
	Args: "FILE [SUFFIX] | -a FILE... | -s SUFFIX FILE...",
	Help: "Strip directory path and SUFFIX from FILE",
	Run: func(_ context.Context, c *tool.Call) error {
		suffix := c.Opts.Get("s", "")
		names := c.Args
		if len(names) == 0 {
			return c.Usage()
		}
		if !c.Opts.Has("a") && !c.Opts.Has("s") {
			if len(names) > 2 {
				return c.Usage()
			}
			if len(names) == 2 {
				suffix = names[1]
			}
			names = names[:1]
		}
		for _, name := range names {
			base := tool.Base(name)
			if base != suffix {
				base = strings.TrimSuffix(base, suffix)
			}
			c.Out.Line(base)
		}
		return nil
	},
}

var dirname = tool.Tool{
	Name: "dirname", Options: "z,zero", Args: "FILENAME", Help: "Strip non-directory suffix from FILENAME",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		for _, name := range c.Args {
			c.Out.Line(parent(name))
		}
		return nil
	},
}

func parent(name string) string {
	trimmed := strings.TrimRight(name, "/")
	if trimmed == "" && name != "" {
		return "/"
	}
	i := strings.LastIndexByte(trimmed, '/')
	if i < 0 {
		return "."
	}
	if dir := strings.TrimRight(trimmed[:i], "/"); dir != "" {
		return dir
	}
	return "/"
}

var pwd = tool.Tool{
	Name: "pwd", Options: "L P", Args: "", Help: "Print the full filename of the current working directory",
	Run: func(_ context.Context, c *tool.Call) error {
		dir := c.Env.Dir
		if real, err := tool.Realpath(c.Env, dir, 0); err == nil && !c.Opts.Has("L") {
			dir = real
		}
		c.Out.Line(dir)
		return nil
	},
}

var which = tool.Tool{
	Name: "which", Options: "a", Args: "[-a] COMMAND...", Help: "Locate COMMAND",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		for _, name := range c.Args {
			if file, ok := tool.LookPath(c.Env, name); ok {
				c.Out.Line(file)
			} else {
				c.SetStatus(1)
			}
		}
		return nil
	},
}
