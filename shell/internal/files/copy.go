package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// copier copies files and directories.
type copier struct {
	c         *tool.Call
	recursive bool
	preserve  bool // owner, mode and time
	follow    bool // links, rather than copying them
	force     bool
	keep      bool // what is there already
	newer     bool // only what is newer than what is there
	link      string
	verbose   bool
	failures  int
}

func (k *copier) warn(format string, args ...any) {
	k.failures++
	k.c.Warn(format, args...)
}

var cp = tool.Tool{
	Name: "cp",
	Options: "a,archive r,recursive R d P,no-dereference L,dereference H p,preserve:: f,force " +
		"i,interactive n,no-clobber u,update v,verbose l,link s,symbolic-link " +
		"T,no-target-directory t:,target-directory remove-destination x parents reflink::",
	Args: "[-arPLHpfinlsTu] SOURCE DEST\nor: cp [-arPLHpfinlsu] SOURCE... { -t DIRECTORY | DIRECTORY }",
	Help: "Copy SOURCEs to DEST\n" +
		"\n" +
		"\t-a\tSame as -dpR\n" +
		"\t-R,-r\tRecurse\n" +
		"\t-d,-P\tPreserve symlinks (default if -R)\n" +
		"\t-L\tFollow all symlinks\n" +
		"\t-p\tPreserve file attributes if possible\n" +
		"\t-f\tOverwrite\n" +
		"\t-n\tDon't overwrite\n" +
		"\t-l,-s\tCreate (sym)links\n" +
		"\t-T\tRefuse to copy if DEST is a directory\n" +
		"\t-t DIR\tCopy all SOURCEs into DIR\n" +
		"\t-u\tCopy only newer files",
	Run: func(_ context.Context, c *tool.Call) error {
		o := &c.Opts
		k := &copier{
			c: c, recursive: o.Has("a") || o.Has("r") || o.Has("R"), preserve: o.Has("a") || o.Has("p"),
			force: o.Has("f"), keep: o.Has("n"), newer: o.Has("u"), link: o.Last("l", "s"), verbose: o.Has("v"),
		}
		k.follow = o.Has("L") || !k.recursive && !o.Has("d") && !o.Has("P")
		return k.each(k.copy)
	},
}

// each calls f with every source and its destination.
func (k *copier) each(f func(from, to string)) error {
	c := k.c
	sources := c.Args
	dest := c.Opts.Get("t", "")
	if dest == "" {
		if len(sources) < 2 {
			if len(sources) == 1 {
				c.Warn("missing file operand")
			}
			return c.Usage()
		}
		dest, sources = sources[len(sources)-1], sources[:len(sources)-1]
	}
	fi, err := c.Env.FS.Stat(c.Env.Path(dest))
	isDir := err == nil && fi.IsDir()
	if c.Opts.Has("T") {
		if isDir && len(sources) > 0 {
			if s, err := c.Env.FS.Stat(c.Env.Path(sources[0])); err == nil && !s.IsDir() {
				return c.Fail(1, "'%s' is a directory", dest)
			}
		}
		isDir = false
	}
	if (len(sources) > 1 || strings.HasSuffix(dest, "/") && err != nil) && !isDir {
		if len(sources) == 1 {
			if s, err := c.Env.FS.Stat(c.Env.Path(sources[0])); err == nil && s.IsDir() {
				f(sources[0], strings.TrimRight(dest, "/"))
				return nil
			}
			return c.Fail(1, "can't create '%s': Not a directory", dest)
		}
		return c.Fail(1, "target '%s' is not a directory", dest)
	}
	for _, from := range sources {
		to := dest
		if isDir {
			base := tool.Base(from)
			if base == "." || base == ".." {
				base = "" // cp dir/. there copies what is in it.
			}
			to = strings.TrimSuffix(tool.Join(dest, base), "/")
		}
		f(from, to)
	}
	return nil
}

func (k *copier) copy(from, to string) {
	env := k.c.Env
	tool.Stopped(k.c.Context())
	fi, err := env.FS.Lstat(env.Path(from))
	if k.follow && err == nil {
		fi, err = env.FS.Stat(env.Path(from))
	}
	if err != nil {
		k.warn("can't stat '%s': %s", from, tool.Reason(err))
		return
	}
	old, oldErr := env.FS.Stat(env.Path(to))
	if oldErr == nil && tool.SameFile(fi, old) && !fi.IsDir() {
		k.warn("'%s' and '%s' are the same file", from, to)
		return
	}
	if oldErr == nil && !fi.IsDir() && (k.keep || k.newer && !fi.ModTime().After(old.ModTime())) {
		return
	}
	switch {
	case fi.IsDir():
		k.copyDir(from, to, fi)
		return
	case fi.Mode()&fs.ModeSymlink != 0:
		target, _ := env.FS.Readlink(env.Path(from))
		env.FS.Remove(env.Path(to))
		err = env.FS.Symlink(target, env.Path(to))
	case k.link == "l":
		err = env.FS.Link(env.Path(from), env.Path(to))
	case k.link == "s":
		err = env.FS.Symlink(from, env.Path(to))
	default:
		err = k.copyFile(from, to, fi)
	}
	if err != nil {
		k.warn("can't create '%s': %s", to, tool.Reason(err))
		return
	}
	if k.verbose {
		k.c.Out.Printf("'%s' -> '%s'\n", from, to)
	}
}

func (k *copier) copyFile(from, to string, fi fs.FileInfo) error {
	env := k.c.Env
	in, err := k.c.Open(from)
	if err != nil {
		k.warn("can't open '%s': %s", from, tool.Reason(err))
		return nil
	}
	defer in.Close()
	flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	out, err := env.FS.OpenFile(env.Path(to), flag, fi.Mode().Perm())
	if err != nil && k.force && env.FS.Remove(env.Path(to)) == nil {
		out, err = env.FS.OpenFile(env.Path(to), flag, fi.Mode().Perm())
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	out.Close()
	if err != nil {
		k.warn("write error: %s", tool.Reason(err))
		return nil
	}
	return k.attributes(to, fi)
}

// attributes gives a copy what -p preserves.
func (k *copier) attributes(to string, fi fs.FileInfo) error {
	if !k.preserve {
		return nil
	}
	env := k.c.Env
	file, owner := env.Path(to), tool.Owner(fi)
	env.FS.Chown(file, owner.UID, owner.GID) // Only root may; the others keep their own.
	return errors.Join(env.FS.Chmod(file, fi.Mode()), env.FS.Chtimes(file, fi.ModTime()))
}

func (k *copier) copyDir(from, to string, fi fs.FileInfo) {
	env := k.c.Env
	if !k.recursive {
		k.warn("omitting directory '%s'", from)
		return
	}
	source, dest := env.Path(from), env.Path(to)
	if dest == source || strings.HasPrefix(dest, strings.TrimSuffix(source, "/")+"/") {
		k.warn("recursion detected, omitting directory '%s'", from)
		return
	}
	err := env.FS.Mkdir(dest, fi.Mode().Perm()|0o700)
	if old, statErr := env.FS.Stat(dest); err != nil && (statErr != nil || !old.IsDir()) {
		k.warn("can't create directory '%s': %s", to, tool.Reason(err))
		return
	}
	if k.verbose && err == nil {
		k.c.Out.Printf("'%s' -> '%s'\n", from, to)
	}
	entries, err := env.FS.ReadDir(source)
	if err != nil {
		k.warn("can't open '%s': %s", from, tool.Reason(err))
		return
	}
	for _, e := range entries {
		k.copy(tool.Join(from, e.Name()), tool.Join(to, e.Name()))
	}
	if err := k.attributes(to, fi); err != nil {
		k.warn("can't preserve attributes of '%s': %s", to, tool.Reason(err))
	}
}

var mv = tool.Tool{
	Name: "mv",
	Options: "f,force i,interactive n,no-clobber u,update v,verbose T,no-target-directory " +
		"t:,target-directory",
	Args: "[-finT] SOURCE DEST\n" +
		"or: mv [-fin] SOURCE... { -t DIRECTORY | DIRECTORY }",
	Help: "Rename SOURCE to DEST, or move SOURCEs to DIRECTORY\n" +
		"\n" +
		"\t-f\tDon't prompt before overwriting\n" +
		"\t-i\tInteractive, prompt before overwrite\n" +
		"\t-n\tDon't overwrite an existing file\n" +
		"\t-T\tRefuse to move if DEST is a directory\n" +
		"\t-t DIR\tMove all SOURCEs into DIR",
	Run: func(_ context.Context, c *tool.Call) error {
		k := &copier{c: c, recursive: true, preserve: true, force: true}
		return k.each(k.move)
	},
}

func (k *copier) move(from, to string) {
	env := k.c.Env
	if old, err := env.FS.Lstat(env.Path(to)); err == nil {
		fi, fromErr := env.FS.Lstat(env.Path(from))
		if k.c.Opts.Has("n") || k.c.Opts.Has("u") && fromErr == nil && !fi.ModTime().After(old.ModTime()) {
			return
		}
	}
	err := env.FS.Rename(env.Path(from), env.Path(to))
	if errors.Is(err, syscall.EXDEV) {
		before := k.failures
		k.copy(from, to)
		if k.failures != before {
			return
		}
		err = env.RemoveAll(from)
	}
	if err != nil {
		k.warn("can't rename '%s': %s", from, tool.Reason(err))
		return
	}
	if k.c.Opts.Has("v") {
		k.c.Out.Printf("'%s' -> '%s'\n", from, to)
	}
}

var install = tool.Tool{
	Name: "install",
	Options: "c d,directory D p s o:,owner g:,group m:,mode t:,target-directory T,no-target-directory " +
		"v",
	Args: "[-cdDsp] [-o USER] [-g GRP] [-m MODE] [-t DIR] [SOURCE]... DEST",
	Help: "Copy files and set attributes",
	Run: func(_ context.Context, c *tool.Call) error {
		mode, err := parseMode(c.Opts.Get("m", "755"), 0)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		if c.Opts.Has("d") {
			for _, name := range c.Args {
				if err := c.Env.MkdirAll(name, 0o755); err != nil {
					c.Warn("can't create directory '%s': %s", name, tool.Reason(err))
				}
			}
			return nil
		}
		k := &copier{c: c, follow: true}
		return k.each(func(from, to string) {
			if i := strings.LastIndexByte(to, '/'); c.Opts.Has("D") && i > 0 {
				c.Env.MkdirAll(to[:i], 0o755)
			}
			k.copy(from, to)
			if err := c.Env.FS.Chmod(c.Env.Path(to), mode); err != nil {
				c.Warn("can't change permissions of %s: %s", to, tool.Reason(err))
			}
		})
	},
}
