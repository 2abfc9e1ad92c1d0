package system

import (
	"context"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var chroot = tool.Tool{
	Name: "chroot", Raw: true, Args: "NEWROOT [PROG ARGS]",
	Help: "Run PROG with root directory set to NEWROOT",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		fs, ok := c.Env.FS.(kit.Chrooter)
		if !ok {
			return c.Fail(1, "can't change root directory to '%s': Function not implemented", c.Args[0])
		}
		inner, err := fs.Chroot(c.Env.Path(c.Args[0]))
		if err != nil {
			return c.Fail(1, "can't change root directory to '%s': %s", c.Args[0], tool.Reason(err))
		}
		args := c.Args[1:]
		if len(args) == 0 {
			args = []string{"/bin/sh", "-i"}
			if shell := c.Env.Getenv("SHELL"); shell != "" {
				args[0] = shell
			}
		}
		env := c.Env.Child(args...)
		env.FS, env.Dir = inner, "/"
		p, err := c.Start(ctx, env)
		if err != nil {
			return err
		}
		return kit.Exit(p.Wait())
	},
}
