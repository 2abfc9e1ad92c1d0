package script

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

var env = tool.Tool{
	Name: "env", Options: "i,ignore-environment u:,unset 0,null C:,chdir S:,split-string", InOrder: true,
	Args: "[-i0] [-u NAME]... [-] [NAME=VALUE]... [PROG ARGS]", UsageCode: 125,
	Help: "Print current environment or run PROG after setting up environment",
	Run: func(ctx context.Context, c *tool.Call) error {
		args := c.Args
		child := c.Env.Child()
		if c.Opts.Has("i") || len(args) > 0 && args[0] == "-" {
			child.Vars = map[string]string{}
		}
		if len(args) > 0 && args[0] == "-" {
			args = args[1:]
		}
		for _, name := range c.Opts.All("u") {
			delete(child.Vars, name)
		}
		if dir := c.Opts.Get("C", ""); dir != "" {
			child.Dir = c.Env.Path(dir)
		}
		args = append(strings.Fields(c.Opts.Get("S", "")), args...)
		for len(args) > 0 {
			name, value, ok := strings.Cut(args[0], "=")
			if !ok {
				break
			}
			child.Vars[name] = value
			args = args[1:]
		}
		if len(args) == 0 {
			end := "\n"
			if c.Opts.Has("0") {
				end = "\x00"
			}
			for _, v := range child.Environ() {
				c.Out.WriteString(v + end)
			}
			return nil
		}
		child.Args = args
		return wait(ctx, c, child)
	},
}

// wait runs a command in place of the tool and returns its exit code.
func wait(ctx context.Context, c *tool.Call, child *kit.Env) error {
	p, err := c.Start(ctx, child)
	if err != nil {
		return err
	}
	return kit.Exit(p.Wait())
}

var printenv = tool.Tool{
	Name: "printenv", Options: "0,null", Args: "[VARIABLE]...",
	Help: "Print environment VARIABLEs.\n" +
		"If no VARIABLE specified, print all.",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			for _, v := range c.Env.Environ() {
				c.Out.Line(v)
			}
		}
		for _, name := range c.Args {
			if value, ok := c.Env.Vars[name]; ok {
				c.Out.Line(value)
			} else {
				c.SetStatus(1)
			}
		}
		return nil
	},
}

var nohup = tool.Tool{
	Name: "nohup", InOrder: true, Args: "PROG ARGS",
	Help: "Run PROG immune to hangups, with output to a non-tty", UsageCode: 125,
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		child := c.Env.Child(c.Args...)
		if tty.IsTerminal(c.Env.Stdout) {
			out, err := c.Env.FS.OpenFile(c.Env.Path("nohup.out"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return c.Fail(127, "can't open 'nohup.out': %s", tool.Reason(err))
			}
			defer out.Close()
			c.Note("nohup: appending output to nohup.out\n")
			child.Stdin, child.Stdout, child.Stderr, child.Terminal = strings.NewReader(""), out, io.Writer(out), nil
		}
		return wait(ctx, c, child)
	},
}

var nice = tool.Tool{
	Name: "nice", Options: "n:,adjustment", InOrder: true, Digits: "n", Args: "[-n ADJUST] [PROG ARGS]",
	Help: "Change scheduling priority, run PROG",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			c.Out.Line("0")
			return nil
		}
		return wait(ctx, c, c.Env.Child(c.Args...))
	},
}
