package files

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var mkdir = tool.Tool{
	Name: "mkdir", Options: "m:,mode p,parents v,verbose", Args: "[-m MODE] [-p] DIRECTORY...",
	Help: "Create DIRECTORY\n" +
		"\n" +
		"\t-m MODE\tMode\n" +
		"\t-p\tNo error if exists; make parent directories as needed",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		for _, name := range c.Args {
			file := c.Env.Path(name)
			var err error
			if c.Opts.Has("p") {
				err = c.Env.MkdirAll(name, 0o777)
			} else {
				err = c.Env.FS.Mkdir(file, 0o777)
			}
			if err != nil {
				c.Warn("can't create directory '%s': %s", name, tool.Reason(err))
				continue
			}
			if m := c.Opts.Get("m", ""); m != "" {
				mode, err := parseMode(m, fs.ModeDir|0o777)
				if err == nil {
					err = c.Env.FS.Chmod(file, mode)
				}
				if err != nil {
					return c.Fail(1, "%v", err)
				}
			}
			if c.Opts.Has("v") {
				c.Out.Printf("created directory: '%s'\n", name)
			}
		}
		return nil
	},
}

var rmdir = tool.Tool{
	Name: "rmdir", Options: "p,parents ignore-fail-on-non-empty v,verbose",
	Args: "[-p] DIRECTORY...",
	Help: "Remove DIRECTORY if it is empty\n" +
		"\n" +
		"\t-p\tInclude parents",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		for _, name := range c.Args {
			for {
				file := c.Env.Path(name)
				fi, err := c.Env.FS.Lstat(file)
				if err == nil && !fi.IsDir() {
					err = syscall.ENOTDIR
				}
				if err == nil {
					err = c.Env.FS.Remove(file)
				}
				if err != nil {
					if !c.Opts.Has("ignore-fail-on-non-empty") || !errors.Is(err, syscall.ENOTEMPTY) {
						c.Warn("'%s': %s", name, tool.Reason(err))
					}
					break
				}
				if name = path.Dir(name); !c.Opts.Has("p") || name == "." || name == "/" {
					break
				}
			}
		}
		return nil
	},
}

var touch = tool.Tool{
	Name:    "touch",
	Options: "c,no-create a m h,no-dereference d:,date t: r:,reference",
	Args:    "[-cham] [-d DATE] [-t DATE] [-r FILE] FILE...",
	Help: "Update mtime of FILEs\n" +
		"\n" +
		"\t-c\tDon't create files\n" +
		"\t-d DT\tDate/time to use\n" +
		"\t-t DT\tDate/time to use\n" +
		"\t-r FILE\tUse FILE's date/time",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		when, err := touchTime(c)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		for _, name := range c.Args {
			file := c.Env.Path(name)
			if _, err := c.Env.FS.Stat(file); err != nil {
				if c.Opts.Has("c") {
					continue
				}
				f, err := c.Env.FS.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
				if err != nil {
					c.Warn("%s: %s", name, tool.Reason(err))
					continue
				}
				f.Close()
			}
			if err := c.Env.FS.Chtimes(file, when); err != nil {
				c.Warn("%s: %s", name, tool.Reason(err))
			}
		}
		return nil
	},
}

var truncate = tool.Tool{
	Name: "truncate", Options: "c,no-create s:,size", Args: "[-c] -s SIZE FILE...",
	Help: "Truncate FILEs to SIZE\n" +
		"\n" +
		"\t-c\tDo not create files\n" +
		"\t-s SIZE",
	Run: func(_ context.Context, c *tool.Call) error {
		text := c.Opts.Get("s", "")
		if text == "" || len(c.Args) == 0 {
			return c.Usage()
		}
		relative := strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-")
		size, err := tool.ParseSize(strings.TrimPrefix(text, "+"))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		flag := os.O_WRONLY | os.O_CREATE
		if c.Opts.Has("c") {
			flag = os.O_WRONLY
		}
		for _, name := range c.Args {
			f, err := c.Env.FS.OpenFile(c.Env.Path(name), flag, 0o666)
			if err != nil {
				if !c.Opts.Has("c") {
					c.Warn("%s: %s", name, tool.Reason(err))
				}
				continue
			}
			to := size
			if fi, err := f.Stat(); err == nil && relative {
				to = max(0, fi.Size()+size)
			}
			if err := f.Truncate(to); err != nil {
				c.Warn("%s: %s", name, tool.Reason(err))
			}
			f.Close()
		}
		return nil
	},
}

var mktemp = tool.Tool{
	Name:    "mktemp",
	Options: "d,directory q,quiet u,dry-run t p: tmpdir:: suffix:",
	Args:    "[-dt] [-p DIR] [TEMPLATE]",
	Help: "Create a temporary file with name based on TEMPLATE and print its name.\n" +
		"TEMPLATE must end with XXXXXX (e.g. [/dir/]nameXXXXXX).\n" +
		"Without TEMPLATE, -t tmp.XXXXXX is assumed.\n" +
		"\n" +
		"\t-d\tMake directory, not file\n" +
		"\t-q\tFail silently on errors\n" +
		"\t-t\tPrepend base directory name to TEMPLATE\n" +
		"\t-p DIR\tUse DIR as a base directory",
	Run: func(_ context.Context, c *tool.Call) error {
		dir := c.Opts.Get("p", c.Opts.Get("tmpdir", ""))
		if dir == "" {
			if dir = c.Env.Vars["TMPDIR"]; dir == "" {
				dir = "/tmp"
			}
		}
		template := "tmp.XXXXXX"
		inDir := c.Opts.Has("t") || c.Opts.Has("p") || c.Opts.Has("tmpdir") || len(c.Args) == 0
		if len(c.Args) > 0 {
			template = c.Args[0]
		}
		template += c.Opts.Get("suffix", "")
		if inDir {
			template = tool.Join(dir, template)
		}
		end := strings.LastIndex(template, "XXXXXX")
		if end < 0 {
			return c.Fail(1, "%s: Invalid argument", template)
		}
		for range 100 {
			name := template[:end] + randomName(6) + template[end+6:]
			file := c.Env.Path(name)
			var err error
			switch {
			case c.Opts.Has("u"):
			case c.Opts.Has("d"):
				if err = c.Env.FS.Mkdir(file, 0o700); err == nil {
					err = c.Env.FS.Chmod(file, 0o700)
				}
			default:
				f, e := c.Env.FS.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
				if err = e; err == nil {
					f.Close()
				}
			}
			if errors.Is(err, syscall.EEXIST) {
				continue
			}
			if err != nil {
				return c.Fail(1, "%s: %s", template, tool.Reason(err))
			}
			c.Out.Line(name)
			return nil
		}
		return c.Fail(1, "%s: File exists", template)
	},
}

func randomName(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base32.StdEncoding.EncodeToString(b)[:n]
}

var ln = tool.Tool{
	Name:    "ln",
	Options: "s,symbolic f,force n,no-dereference b S: v,verbose T,no-target-directory t: r i",
	Args:    "[-sfnbtv] [-S SUF] TARGET... LINK|DIR",
	Help: "Create a link LINK or DIR/TARGET to the specified TARGET(s)\n" +
		"\n" +
		"\t-s\tMake symlinks instead of hardlinks\n" +
		"\t-f\tRemove existing destinations\n" +
		"\t-n\tDon't dereference symlinks - treat like normal file\n" +
		"\t-v\tVerbose",
	Run: func(_ context.Context, c *tool.Call) error {
		targets := c.Args
		if len(targets) == 0 {
			return c.Usage()
		}
		dest := c.Opts.Get("t", "")
		switch {
		case dest != "":
		case len(targets) == 1:
			dest = tool.Base(targets[0])
		default:
			dest, targets = targets[len(targets)-1], targets[:len(targets)-1]
		}
		fi, err := c.Env.FS.Stat(c.Env.Path(dest))
		if c.Opts.Has("n") {
			fi, err = c.Env.FS.Lstat(c.Env.Path(dest))
		}
		isDir := err == nil && fi.IsDir() && !c.Opts.Has("T")
		if len(targets) > 1 && !isDir {
			return c.Fail(1, "target '%s' is not a directory", dest)
		}
		for _, target := range targets {
			link := dest
			if isDir {
				link = tool.Join(dest, tool.Base(target))
			}
			if c.Opts.Has("f") {
				c.Env.FS.Remove(c.Env.Path(link))
			}
			if c.Opts.Has("s") {
				err = c.Env.FS.Symlink(target, c.Env.Path(link))
			} else {
				err = c.Env.FS.Link(c.Env.Path(target), c.Env.Path(link))
			}
			if err != nil {
				c.Warn("%s: %s", link, tool.Reason(err))
				continue
			}
			if c.Opts.Has("v") {
				c.Out.Printf("'%s' -> '%s'\n", link, target)
			}
		}
		return nil
	},
}

var readlink = tool.Tool{
	Name:    "readlink",
	Options: "f,canonicalize e,canonicalize-existing m,canonicalize-missing n,no-newline q s v",
	Args:    "[-fnv] FILE...",
	Help: "Display the value of a symlink\n" +
		"\n" +
		"\t-f\tCanonicalize by following all symlinks\n" +
		"\t-n\tDon't add newline at the end",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		missing := map[string]int{"f": 1, "e": 0, "m": 2}
		how := c.Opts.Last("f", "e", "m")
		for _, name := range c.Args {
			var target string
			var err error
			if how == "" {
				target, err = c.Env.FS.Readlink(c.Env.Path(name))
			} else {
				target, err = tool.Realpath(c.Env, name, missing[how])
			}
			if err != nil {
				if c.Opts.Has("v") {
					c.Warn("%s: %s", name, tool.Reason(err))
				}
				c.SetStatus(1)
				continue
			}
			c.Out.WriteString(target)
			if !c.Opts.Has("n") {
				c.Out.WriteByte('\n')
			}
		}
		return nil
	},
}

var realpath = tool.Tool{
	Name:    "realpath",
	Options: "e,canonicalize-existing m,canonicalize-missing s,strip q,quiet z",
	Args:    "FILE...", Help: "Print absolute pathnames of FILE",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		missing := 1
		if c.Opts.Has("e") {
			missing = 0
		}
		if c.Opts.Has("m") {
			missing = 2
		}
		for _, name := range c.Args {
			if c.Opts.Has("s") {
				c.Out.Line(c.Env.Path(name))
				continue
			}
			target, err := tool.Realpath(c.Env, name, missing)
			if err != nil {
				c.Warn("%s: %s", name, tool.Reason(err))
				continue
			}
			c.Out.Line(target)
		}
		return nil
	},
}
