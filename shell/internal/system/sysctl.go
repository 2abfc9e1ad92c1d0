package system

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var sysctl = tool.Tool{
	Name: "sysctl", Options: "a A e N n q w p", Args: "[-enq] { -a | KEY[=VALUE]... }",
	Help: "Show/set kernel parameters\n" +
		"\n" +
		"\t-e\tDon't warn about unknown keys\n" +
		"\t-n\tDon't show key names\n" +
		"\t-N\tShow only key names\n" +
		"\t-a\tShow all values\n" +
		"\t-w\tSet values\n" +
		"\t-q\tSet values silently",
	Run: func(_ context.Context, c *tool.Call) error {
		if c.Opts.Has("a") || c.Opts.Has("A") {
			return showParameters(c, parameters)
		}
		for _, arg := range c.Args {
			key, value, set := strings.Cut(arg, "=")
			file := path.Join(parameters, strings.ReplaceAll(strings.TrimSpace(key), ".", "/"))
			var err error
			if set || c.Opts.Has("w") {
				if err = c.Env.WriteFile(file, []byte(strings.TrimSpace(value)+"\n"), 0); err == nil &&
					!c.Opts.Has("q") {
					c.Out.Printf("%s = %s\n", key, strings.TrimSpace(value))
				}
			} else {
				err = showParameters(c, file)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
				if !c.Opts.Has("e") {
					c.Warn("error: '%s' is an unknown key", key)
				}
			case err != nil && set:
				c.Warn("error setting key '%s': %s", key, tool.Reason(err))
			case err != nil:
				c.Warn("error reading key '%s': %s", key, tool.Reason(err))
			}
		}
		return nil
	},
}

// parameters is where the kernel shows its parameters as files.
const parameters = "/proc/sys"

// showParameters shows one parameter, or all below a directory.
func showParameters(c *tool.Call, file string) error {
	fi, err := c.Env.FS.Stat(file)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		entries, err := c.Env.FS.ReadDir(file)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := showParameters(c, path.Join(file, e.Name())); err != nil {
				return err
			}
		}
		return nil
	}
	value, err := c.Env.ReadFile(file)
	if err != nil {
		return err
	}
	key := strings.ReplaceAll(strings.TrimPrefix(file, parameters+"/"), "/", ".")
	text := strings.TrimSuffix(string(value), "\n")
	switch {
	case c.Opts.Has("N"):
		c.Out.Line(key)
	case c.Opts.Has("n"):
		c.Out.Line(text)
	default:
		c.Out.Printf("%s = %s\n", key, text)
	}
	return nil
}
