package files

import (
	"context"
	"io/fs"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// eachFile calls f for files, and with -R for everything below them.
func eachFile(c *tool.Call, names []string, f func(name string, fi fs.FileInfo)) {
	var visit func(name string, top bool)
	visit = func(name string, top bool) {
		tool.Stopped(c.Context())
		fi, err := c.Env.FS.Lstat(c.Env.Path(name))
		if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			if !top {
				return // What a link leads to is not below.
			}
			fi, err = c.Env.FS.Stat(c.Env.Path(name))
		}
		if err != nil {
			if !c.Opts.Has("f") {
				c.Warn("%s: %s", name, tool.Reason(err))
			}
			c.SetStatus(1)
			return
		}
		f(name, fi)
		if !fi.IsDir() || !c.Opts.Has("R") {
			return
		}
		entries, err := c.Env.FS.ReadDir(c.Env.Path(name))
		if err != nil {
			c.Warn("%s: %s", name, tool.Reason(err))
			return
		}
		for _, e := range entries {
			visit(tool.Join(name, e.Name()), false)
		}
	}
	for _, name := range names {
		visit(name, true)
	}
}

var chmod = tool.Tool{
	Name: "chmod", Raw: true, Args: "[-Rcvf] MODE[,MODE]... FILE...",
	Help: "MODE is octal number (bit pattern sstrwxrwxrwx) or [ugoa]{+|-|=}[rwxXst]\n" +
		"\n" +
		"\t-R\tRecurse\n" +
		"\t-c\tList changed files\n" +
		"\t-v\tVerbose\n" +
		"\t-f\tHide errors",
	Run: func(_ context.Context, c *tool.Call) error {
		// A mode such as -x looks like an option, so they are told apart by hand.
		var operands []string
		reference := ""
		for i, a := range c.Args {
			switch {
			case a == "--":
				operands = append(operands, c.Args[i+1:]...)
			case strings.HasPrefix(a, "--reference="):
				reference = strings.TrimPrefix(a, "--reference=")
				continue
			case a == "--recursive":
				c.Opts.Set("R", "")
				continue
			case len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "Rcvf") == "" && len(operands) == 0:
				for _, letter := range a[1:] {
					c.Opts.Set(string(letter), "")
				}
				continue
			default:
				operands = append(operands, a)
				continue
			}
			break
		}
		if reference == "" && len(operands) < 2 || len(operands) == 0 {
			return c.Usage()
		}
		mode := ""
		if reference == "" {
			mode, operands = operands[0], operands[1:]
			if _, err := parseMode(mode, 0); err != nil {
				return c.Fail(1, "%v", err)
			}
		}
		eachFile(c, operands, func(name string, fi fs.FileInfo) {
			to := fi.Mode()
			if reference != "" {
				if r, err := c.Env.FS.Stat(c.Env.Path(reference)); err == nil {
					to = r.Mode()
				}
			} else {
				to, _ = parseMode(mode, fi.Mode())
			}
			if err := c.Env.FS.Chmod(c.Env.Path(name), to); err != nil {
				if !c.Opts.Has("f") {
					c.Warn("%s: %s", name, tool.Reason(err))
				}
				c.SetStatus(1)
				return
			}
			if c.Opts.Has("v") || c.Opts.Has("c") && octalMode(to) != octalMode(fi.Mode()) {
				c.Out.Printf("mode of '%s' changed to %04o (%s)\n", name, octalMode(to), modeString(to)[1:])
			}
		})
		return nil
	},
}

var chown = tool.Tool{
	Name:    "chown",
	Options: "R,recursive h,no-dereference L H P c v,verbose f reference:",
	Args:    "[-RhLHPcvf]... USER[:[GRP]] FILE...",
	Help: "Change the owner and/or group of FILEs to USER and/or GRP\n" +
		"\n" +
		"\t-h\tAffect symlinks instead of symlink targets\n" +
		"\t-R\tRecurse",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) < 2 {
			return c.Usage()
		}
		accounts := tool.ReadAccounts(c.Env)
		user, group, hasGroup := strings.Cut(c.Args[0], ":")
		if !hasGroup {
			if u, g, dotted := strings.Cut(c.Args[0], "."); dotted {
				if _, known := accounts.ByName(c.Args[0]); !known {
					user, group, hasGroup = u, g, true
				}
			}
		}
		uid, gid := -1, -1
		var ok bool
		if user != "" {
			if uid, ok = accounts.UserByName(user); !ok {
				return c.Fail(1, "unknown user/group %s", c.Args[0])
			}
		}
		switch {
		case group != "":
			if gid, ok = accounts.GroupByName(group); !ok {
				return c.Fail(1, "unknown user/group %s", c.Args[0])
			}
		case hasGroup: // user: means the group of the user.
			if a, found := accounts.ByUID(uid); found {
				gid = a.GID
			}
		}
		own(c, c.Args[1:], uid, gid)
		return nil
	},
}

var chgrp = tool.Tool{
	Name: "chgrp", Options: "R,recursive h,no-dereference L H P c v,verbose f",
	Args: "[-RhLHPcvf]... GROUP FILE...", Help: "Change the group membership of FILEs to GROUP",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) < 2 {
			return c.Usage()
		}
		gid, ok := tool.ReadAccounts(c.Env).GroupByName(c.Args[0])
		if !ok {
			return c.Fail(1, "unknown group %s", c.Args[0])
		}
		own(c, c.Args[1:], -1, gid)
		return nil
	},
}

func own(c *tool.Call, names []string, uid, gid int) {
	eachFile(c, names, func(name string, _ fs.FileInfo) {
		if err := c.Env.FS.Chown(c.Env.Path(name), uid, gid); err != nil {
			if !c.Opts.Has("f") {
				c.Warn("%s: %s", name, tool.Reason(err))
			}
			c.SetStatus(1)
		}
	})
}
