package files

import (
	"context"
	"io/fs"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var tree = tool.Tool{
	Name: "tree", Options: "a d L: f F C n i h s p", Args: "[-adf] [-L LEVEL] [DIR]...",
	Help: "Show directories as a tree",
	Run: func(_ context.Context, c *tool.Call) error {
		roots := c.Args
		if len(roots) == 0 {
			roots = []string{"."}
		}
		t := &trunk{c: c, level: -1}
		if text := c.Opts.Get("L", ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return c.Fail(1, "Invalid level, must be greater than 0.")
			}
			t.level = n
		}
		for _, root := range roots {
			if fi, err := c.Env.FS.Stat(c.Env.Path(root)); err != nil || !fi.IsDir() {
				c.Out.Line(root + "  [error opening dir]")
				c.SetStatus(2)
				continue
			}
			c.Out.Line(root)
			t.grow(root, "", 1)
		}
		c.Out.Printf("\n%d directories", t.dirs)
		if !c.Opts.Has("d") {
			c.Out.Printf(", %d files", t.files)
		}
		c.Out.WriteByte('\n')
		return nil
	},
}

type trunk struct {
	c           *tool.Call
	level       int
	dirs, files int
}

func (t *trunk) grow(dir, indent string, level int) {
	tool.Stopped(t.c.Context())
	if t.level >= 0 && level > t.level {
		return
	}
	entries, err := t.c.Env.FS.ReadDir(t.c.Env.Path(dir))
	if err != nil {
		return
	}
	var shown []fs.DirEntry
	for _, e := range entries {
		if (t.c.Opts.Has("a") || !strings.HasPrefix(e.Name(), ".")) && (e.IsDir() || !t.c.Opts.Has("d")) {
			shown = append(shown, e)
		}
	}
	for i, e := range shown {
		branch, next := "|-- ", "|   "
		if i == len(shown)-1 {
			branch, next = "`-- ", "    "
		}
		file := tool.Join(dir, e.Name())
		name := e.Name()
		if t.c.Opts.Has("f") {
			name = file
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, _ := t.c.Env.FS.Readlink(t.c.Env.Path(file))
			name += " -> " + target
		}
		t.c.Out.Line(indent + branch + name)
		if e.IsDir() {
			t.dirs++
			t.grow(file, indent+next, level+1)
		} else {
			t.files++
		}
	}
}
