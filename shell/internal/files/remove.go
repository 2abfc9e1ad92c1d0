package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var rm = tool.Tool{
	Name: "rm",
	Options: "f,force r,recursive R i I d,dir v,verbose one-file-system no-preserve-root " +
		"preserve-root::",
	Args: "[-irf] FILE...",
	Help: "Remove (unlink) FILEs\n" +
		"\n" +
		"\t-i\tAlways prompt before removing\n" +
		"\t-f\tNever prompt\n" +
		"\t-R,-r\tRecurse",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			if c.Opts.Has("f") {
				return nil
			}
			return c.Usage()
		}
		r := &remover{c: c, ask: stream.NewLines(c.Stdin)}
		for _, name := range c.Args {
			switch trimmed := strings.TrimRight(name, "/"); {
			case tool.Base(trimmed) == "." || tool.Base(trimmed) == "..":
				c.Warn("refusing to remove '.' or '..' directory: skipping '%s'", name)
			case trimmed == "" && !c.Opts.Has("no-preserve-root"):
				c.Warn("can't remove '/': it is dangerous to operate recursively on '/'")
			default:
				r.remove(name)
			}
		}
		return nil
	},
}

type remover struct {
	c   *tool.Call
	ask *stream.Lines
}

func (r *remover) remove(name string) {
	env := r.c.Env
	tool.Stopped(r.c.Context())
	file := env.Path(name)
	fi, err := env.FS.Lstat(file)
	if err != nil {
		if !r.c.Opts.Has("f") || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			r.c.Warn("can't remove '%s': %s", name, tool.Reason(err))
		}
		return
	}
	if fi.IsDir() && !r.c.Opts.Has("r") && !r.c.Opts.Has("R") && !r.c.Opts.Has("d") {
		r.c.Warn("'%s' is a directory", name)
		return
	}
	if r.c.Opts.Last("i", "f") == "i" {
		r.c.Note("rm: remove '%s'? ", name)
		answer, _, _ := r.ask.Next()
		if !strings.HasPrefix(strings.ToLower(string(answer)), "y") {
			return
		}
	}
	if fi.IsDir() && !r.c.Opts.Has("d") {
		entries, err := env.FS.ReadDir(file)
		if err != nil {
			r.c.Warn("can't open '%s': %s", name, tool.Reason(err))
			return
		}
		for _, e := range entries {
			r.remove(tool.Join(name, e.Name()))
		}
	}
	if err := env.FS.Remove(file); err != nil {
		r.c.Warn("can't remove '%s': %s", name, tool.Reason(err))
		return
	}
	if r.c.Opts.Has("v") {
		r.c.Out.Printf("removed '%s'\n", name)
	}
}

var unlink = tool.Tool{
	Name: "unlink", Args: "FILE", Help: "Delete FILE by calling unlink()",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) != 1 {
			return c.Usage()
		}
		if err := c.Env.FS.Remove(c.Env.Path(c.Args[0])); err != nil {
			return c.Fail(1, "can't remove file '%s': %s", c.Args[0], tool.Reason(err))
		}
		return nil
	},
}
