package files

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var du = tool.Tool{
	Name: "du",
	Options: "a,all s,summarize c,total d:,max-depth h,human-readable k m b,bytes x,one-file-system " +
		"L,dereference l H apparent-size S exclude:",
	Args: "[-aHLdclsxhmk] [FILE]...",
	Help: "Summarize disk space used for FILEs (or directories)\n" +
		"\n" +
		"\t-a\tShow file sizes too\n" +
		"\t-d N\tLimit output to directories of depth < N\n" +
		"\t-c\tShow grand total\n" +
		"\t-s\tShow only total for each argument\n" +
		"\t-h\tSizes in human readable format (e.g., 1K 243M 2G)\n" +
		"\t-m\tSizes in megabytes\n" +
		"\t-k\tSizes in kilobytes (default)",
	Run: func(_ context.Context, c *tool.Call) error {
		depth := -1
		if c.Opts.Has("s") {
			depth = 0
		}
		if text := c.Opts.Get("d", ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return c.Fail(1, "invalid number '%s'", text)
			}
			depth = n
		}
		names := c.Args
		if len(names) == 0 {
			names = []string{"."}
		}
		u := &usage{c: c, depth: depth, seen: map[uint64]bool{}}
		var total int64
		for _, name := range names {
			total += u.visit(name, 0)
		}
		if c.Opts.Has("c") {
			u.print(total, "total")
		}
		return nil
	},
}

// usage is a du under way.
type usage struct {
	c     *tool.Call
	depth int
	seen  map[uint64]bool // files with several links count once
}

func (u *usage) visit(name string, depth int) int64 {
	tool.Stopped(u.c.Context())
	env := u.c.Env
	fi, err := env.FS.Lstat(env.Path(name))
	if u.c.Opts.Has("L") && err == nil {
		fi, err = env.FS.Stat(env.Path(name))
	}
	if err != nil {
		u.c.Warn("%s: %s", name, tool.Reason(err))
		return 0
	}
	for _, pattern := range u.c.Opts.All("exclude") {
		if tool.Glob(pattern, tool.Base(name), false) {
			return 0
		}
	}
	size := blocks(fi) * 1024
	if u.c.Opts.Has("b") || u.c.Opts.Has("apparent-size") {
		size = fi.Size()
	}
	if owner := tool.Owner(fi); owner.Links > 1 && !fi.IsDir() {
		if u.seen[owner.Inode] {
			return 0
		}
		u.seen[owner.Inode] = true
	}
	if fi.IsDir() {
		entries, err := env.FS.ReadDir(env.Path(name))
		if err != nil {
			u.c.Warn("can't open '%s': %s", name, tool.Reason(err))
		}
		for _, e := range entries {
			size += u.visit(tool.Join(name, e.Name()), depth+1)
		}
	}
	if (fi.IsDir() || u.c.Opts.Has("a") || depth == 0) && (u.depth < 0 || depth <= u.depth) {
		u.print(size, name)
	}
	return size
}

func (u *usage) print(size int64, name string) {
	text := strconv.FormatInt((size+1023)/1024, 10)
	switch u.c.Opts.Last("h", "k", "m", "b") {
	case "h":
		text = tool.HumanSize(size)
	case "m":
		text = strconv.FormatInt((size+1<<20-1)>>20, 10)
	case "b":
		text = strconv.FormatInt(size, 10)
	}
	u.c.Out.Printf("%s\t%s\n", text, name)
}

// mounts lists the file systems of a container: what /proc/mounts says, or else what the directories
// near the root are on.
func mounts(env *kit.Env) []kit.FSInfo {
	found := map[string]kit.FSInfo{}
	add := func(name string) {
		if info, err := env.FS.StatFS(name); err == nil {
			if info.Mount == "" {
				info.Mount = "/"
			}
			found[info.Mount] = info
		}
	}
	if data, err := env.ReadFile("/proc/mounts"); err == nil {
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 {
				add(f[1])
			}
		}
	}
	if len(found) == 0 {
		var visit func(dir string, depth int)
		visit = func(dir string, depth int) {
			add(dir)
			entries, err := env.FS.ReadDir(dir)
			if err != nil || depth == 0 {
				return
			}
			for _, e := range entries {
				if e.IsDir() {
					visit(path.Join(dir, e.Name()), depth-1)
				} else if e.Type()&fs.ModeSymlink == 0 {
					add(path.Join(dir, e.Name())) // A single file may be mounted, too.
				}
			}
		}
		visit("/", 4)
	}
	list := make([]kit.FSInfo, 0, len(found))
	for _, info := range found {
		list = append(list, info)
	}
	slices.SortFunc(list, func(a, b kit.FSInfo) int { return strings.Compare(a.Mount, b.Mount) })
	return list
}

var df = tool.Tool{
	Name: "df",
	Options: "P,portability k m h,human-readable H T,print-type t:,type a,all i,inodes B:,block-size " +
		"x: l",
	Args: "[-PkmhTai] [-t TYPE] [FILESYSTEM]...",
	Help: "Print filesystem usage statistics\n" +
		"\n" +
		"\t-P\tPOSIX output format\n" +
		"\t-k\t1024-byte blocks (default)\n" +
		"\t-m\t1M-byte blocks\n" +
		"\t-h\tHuman readable (e.g. 1K 243M 2G)\n" +
		"\t-T\tPrint filesystem type\n" +
		"\t-i\tInodes",
	Run: func(_ context.Context, c *tool.Call) error {
		var list []kit.FSInfo
		for _, name := range c.Args {
			info, err := c.Env.FS.StatFS(c.Env.Path(name))
			if err != nil {
				c.Warn("%s: %s", name, tool.Reason(err))
				continue
			}
			if info.Mount == "" {
				info.Mount = "/"
			}
			list = append(list, info)
		}
		if len(c.Args) == 0 {
			list = mounts(c.Env)
		}
		printUsage(c, list)
		return nil
	},
}

func printUsage(c *tool.Call, list []kit.FSInfo) {
	unit, title := int64(1024), "1K-blocks"
	human := c.Opts.Has("h") || c.Opts.Has("H")
	switch {
	case human:
		title = "Size"
	case c.Opts.Has("m"):
		unit, title = 1<<20, "1M-blocks"
	case c.Opts.Has("P"):
		title = "1024-blocks"
	}
	size := func(n int64) string {
		if human {
			return tool.HumanSize(n)
		}
		return strconv.FormatInt(n/unit, 10)
	}
	kind := func(text string) string {
		if c.Opts.Has("T") {
			return fmt.Sprintf("%-10s", text)
		}
		return ""
	}
	used, available := "Used", "Available"
	if c.Opts.Has("i") {
		title, used, available = "Inodes", "Used", "Available"
	}
	c.Out.Printf("%-20s %s%10s %9s %9s %4s Mounted on\n", "Filesystem", kind("Type"), title, used, available, "Use%")
	for _, info := range list {
		if t := c.Opts.Get("t", ""); t != "" && t != info.Type ||
			info.Total == 0 && !c.Opts.Has("a") && len(c.Args) == 0 {
			continue
		}
		percent := "0%"
		if taken := info.Total - info.Free; info.Total > 0 {
			percent = strconv.FormatInt((taken*100+info.Total-1)/info.Total, 10) + "%"
		}
		total, taken, free := info.Total, info.Total-info.Free, info.Free
		row := []string{size(total), size(taken), size(free), percent}
		if c.Opts.Has("i") {
			// Files cost nothing here; show what a disk of this size would have.
			inodes := total / 16384
			row = []string{strconv.FormatInt(inodes, 10), "1", strconv.FormatInt(max(0, inodes-1), 10), "0%"}
		}
		name := info.Source
		if len(name) > 20 {
			c.Out.Line(name)
			name = ""
		}
		c.Out.Printf("%-20s %s%10s %9s %9s %4s %s\n", name, kind(info.Type), row[0], row[1], row[2], row[3], info.Mount)
	}
}

var mount = tool.Tool{
	Name: "mount", Options: "a r w t: o: f i n v l", Args: "[OPTIONS] [-o OPT] DEVICE NODE",
	Help: "Mount a filesystem. Without arguments, list mounted filesystems.",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) > 0 {
			return c.Fail(1, "permission denied (are you root?)")
		}
		for _, m := range mounts(c.Env) {
			if t := c.Opts.Get("t", ""); t != "" && t != m.Type {
				continue
			}
			mode := "rw"
			if m.ReadOnly {
				mode = "ro"
			}
			c.Out.Printf("%s on %s type %s (%s,relatime)\n", m.Source, m.Mount, m.Type, mode)
		}
		return nil
	},
}

var syncTool = tool.Tool{
	Name: "sync", Options: "d,data f,file-system", Args: "[-df] [FILE]...",
	Help: "Write all buffered blocks to disk",
	Run:  func(context.Context, *tool.Call) error { return nil },
}
