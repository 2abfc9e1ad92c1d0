package files

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

var ls = tool.Tool{
	Name: "ls",
	Options: "1 A,almost-all a,all C x d,directory L,dereference H R,recursive F,classify p l i,inode " +
		"n,numeric-uid-gid s,size h,human-readable k r,reverse S X v c t u e f g o m Q G " +
		"full-time color:: group-directories-first time-style: sort: w: T: no-group N b q U B I:",
	Args: "[-1AaCxdLHRFplinshrSXvctu] [-w WIDTH] [FILE]...",
	Help: "List directory contents\n" +
		"\n" +
		"\t-1\tOne column output\n" +
		"\t-a\tInclude names starting with .\n" +
		"\t-A\tLike -a, but exclude . and ..\n" +
		"\t-d\tList directory names, not contents\n" +
		"\t-L\tFollow symlinks\n" +
		"\t-R\tRecurse\n" +
		"\t-p\tAppend / to directory names\n" +
		"\t-F\tAppend indicator (one of */=@|) to names\n" +
		"\t-l\tLong format\n" +
		"\t-i\tList inode numbers\n" +
		"\t-n\tList numeric UIDs and GIDs instead of names\n" +
		"\t-s\tList allocated blocks\n" +
		"\t-h\tHuman readable sizes (1K 243M 2G)\n" +
		"\t-S\tSort by size\n" +
		"\t-t\tSort by mtime\n" +
		"\t-r\tReverse sort order",
	Run: func(_ context.Context, c *tool.Call) error {
		l := &lister{c: c, accounts: tool.ReadAccounts(c.Env), now: time.Now(), location: tool.Location(c.Env)}
		l.long = c.Opts.Last("l", "n", "g", "o", "e", "full-time") != ""
		l.columns = !l.long && (tty.IsTerminal(c.Env.Stdout) || c.Opts.Has("C") || c.Opts.Has("x")) && !c.Opts.Has("1")
		l.run(c.Args)
		return nil
	},
}

// lister is an ls under way.
type lister struct {
	c        *tool.Call
	accounts *tool.Accounts
	now      time.Time
	location *time.Location
	long     bool
	columns  bool
	printed  bool // something, so that the next directory needs a space before it
}

// listed is a file to show.
type listed struct {
	name string // as it is shown
	file string
	info fs.FileInfo
}

func (l *lister) stat(name string, follow bool) (fs.FileInfo, error) {
	if follow {
		if fi, err := l.c.Env.FS.Stat(l.c.Env.Path(name)); err == nil {
			return fi, nil
		}
	}
	return l.c.Env.FS.Lstat(l.c.Env.Path(name))
}

func (l *lister) run(names []string) {
	if len(names) == 0 {
		names = []string{"."}
	}
	var files, dirs []listed
	for _, name := range names {
		// A link on the command line is followed, unless the listing shows where it leads.
		plain := !l.long && l.c.Opts.Last("d", "F") == ""
		fi, err := l.stat(name, l.c.Opts.Last("L", "H") != "" || plain || strings.HasSuffix(name, "/"))
		if err != nil {
			l.c.Warn("%s: %s", name, tool.Reason(err))
			continue
		}
		item := listed{name, name, fi}
		if fi.IsDir() && !l.c.Opts.Has("d") {
			dirs = append(dirs, item)
		} else {
			files = append(files, item)
		}
	}
	if len(files) > 0 {
		l.sort(files)
		l.show(files)
		l.printed = true
	}
	l.sort(dirs)
	for _, d := range dirs {
		l.directory(d.file, len(names) > 1 || l.c.Opts.Has("R"))
	}
}

func (l *lister) directory(dir string, titled bool) {
	tool.Stopped(l.c.Context())
	entries, err := l.c.Env.FS.ReadDir(l.c.Env.Path(dir))
	if err != nil {
		l.c.Warn("can't open '%s': %s", dir, tool.Reason(err))
		return
	}
	if l.printed {
		l.c.Out.WriteByte('\n')
	}
	if l.printed = true; titled {
		l.c.Out.Line(dir + ":")
	}
	all := l.c.Opts.Has("a") || l.c.Opts.Has("f")
	var items []listed
	if all {
		for _, n := range []string{".", ".."} {
			file := path.Join(l.c.Env.Path(dir), n)
			if fi, err := l.c.Env.FS.Stat(file); err == nil {
				items = append(items, listed{n, file, fi})
			}
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !all && !l.c.Opts.Has("A") {
			continue
		}
		file := tool.Join(dir, e.Name())
		if fi, err := l.stat(file, l.c.Opts.Has("L")); err == nil {
			items = append(items, listed{e.Name(), file, fi})
		}
	}
	l.sort(items)
	if l.long || l.c.Opts.Has("s") {
		total := int64(0)
		for _, i := range items {
			total += blocks(i.info)
		}
		l.c.Out.Printf("total %s\n", l.kilobytes(total))
	}
	l.show(items)
	if !l.c.Opts.Has("R") {
		return
	}
	for _, i := range items {
		if i.info.IsDir() && i.name != "." && i.name != ".." {
			l.directory(i.file, true)
		}
	}
}

// sizeOf is the size of a file. A directory has that of a page, as on any disk.
func sizeOf(fi fs.FileInfo) int64 {
	if fi.IsDir() && fi.Size() == 0 {
		return 4096
	}
	return fi.Size()
}

// blocks is the space a file takes, in kilobytes: pages of four.
func blocks(fi fs.FileInfo) int64 {
	switch {
	case fi.IsDir():
		return 4
	case !fi.Mode().IsRegular():
		return 0
	}
	return (fi.Size() + 4095) / 4096 * 4
}

func (l *lister) kilobytes(n int64) string {
	if l.c.Opts.Has("h") {
		return tool.HumanSize(n * 1024)
	}
	return strconv.FormatInt(n, 10)
}

func (l *lister) sort(items []listed) {
	o := &l.c.Opts
	if o.Has("f") || o.Has("U") {
		return
	}
	kind := o.Last("S", "t", "X", "v", "c", "u")
	if s := o.Get("sort", ""); s != "" {
		kind = map[string]string{"size": "S", "time": "t", "extension": "X", "version": "v"}[s]
	}
	if (kind == "c" || kind == "u") && (l.long && !o.Has("t")) {
		kind = "" // They only choose which time is shown.
	}
	slices.SortStableFunc(items, func(a, b listed) int {
		order := 0
		switch kind {
		case "S":
			order = cmp.Compare(b.info.Size(), a.info.Size())
		case "t", "c", "u":
			order = b.info.ModTime().Compare(a.info.ModTime())
		case "X":
			order = strings.Compare(path.Ext(a.name), path.Ext(b.name))
		}
		return cmp.Or(order, strings.Compare(a.name, b.name))
	})
	if o.Has("r") {
		slices.Reverse(items)
	}
	if o.Has("group-directories-first") {
		slices.SortStableFunc(items, func(a, b listed) int {
			return map[bool]int{true: 0, false: 1}[a.info.IsDir()] - map[bool]int{true: 0, false: 1}[b.info.IsDir()]
		})
	}
}

func (l *lister) show(items []listed) {
	if l.columns {
		l.inColumns(items)
		return
	}
	if l.c.Opts.Has("m") {
		var names []string
		for _, i := range items {
			names = append(names, l.decorated(i))
		}
		l.c.Out.Line(strings.Join(names, ", "))
		return
	}
	for _, i := range items {
		l.c.Out.Line(l.prefix(i) + l.line(i))
	}
}

// prefix is the inode and the blocks.
func (l *lister) prefix(i listed) string {
	prefix := ""
	if l.c.Opts.Has("i") {
		prefix += pad(strconv.FormatUint(tool.Owner(i.info).Inode, 10), 7, true) + " "
	}
	if l.c.Opts.Has("s") {
		prefix += pad(l.kilobytes(blocks(i.info)), 6, true) + " "
	}
	return prefix
}

func pad(s string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	if right {
		return space + s
	}
	return s + space
}

// decorated is a name with its indicator.
func (l *lister) decorated(i listed) string {
	name := i.name
	if l.c.Opts.Has("Q") {
		name = strconv.Quote(name)
	}
	if !l.c.Opts.Has("F") && !l.c.Opts.Has("p") {
		return name
	}
	m := i.info.Mode()
	switch {
	case m.IsDir():
		return name + "/"
	case l.c.Opts.Has("p"):
	case m&fs.ModeSymlink != 0:
		return name + "@"
	case m&fs.ModeNamedPipe != 0:
		return name + "|"
	case m&fs.ModeSocket != 0:
		return name + "="
	case m.IsRegular() && m&0o111 != 0:
		return name + "*"
	}
	return name
}

func (l *lister) line(i listed) string {
	name := l.decorated(i)
	if !l.long {
		return name
	}
	o := &l.c.Opts
	owner := tool.Owner(i.info)
	user, group := l.accounts.UserName(owner.UID), l.accounts.GroupName(owner.GID)
	if o.Has("n") {
		user, group = strconv.Itoa(owner.UID), strconv.Itoa(owner.GID)
	}
	var b strings.Builder
	b.WriteString(modeString(i.info.Mode()) + " " + pad(strconv.Itoa(owner.Links), 4, true) + " ")
	if !o.Has("g") {
		b.WriteString(pad(user, 8, false) + " ")
	}
	if !o.Has("o") && !o.Has("G") && !o.Has("no-group") {
		b.WriteString(pad(group, 8, false) + " ")
	}
	size := strconv.FormatInt(sizeOf(i.info), 10)
	if o.Has("h") {
		size = tool.HumanSize(sizeOf(i.info))
	}
	b.WriteString(pad(size, 9, true) + " " + l.time(i.info.ModTime()) + " " + name)
	if i.info.Mode()&fs.ModeSymlink != 0 {
		if target, err := l.c.Env.FS.Readlink(l.c.Env.Path(i.file)); err == nil {
			b.WriteString(" -> " + target)
		}
	}
	return b.String()
}

// time shows the year instead of the hour for what is half a year away.
func (l *lister) time(t time.Time) string {
	t = t.In(l.location)
	switch style := l.c.Opts.Get("time-style", ""); {
	case l.c.Opts.Has("full-time") || style == "full-iso":
		return t.Format("2006-01-02 15:04:05 -0700")
	case l.c.Opts.Has("e"):
		return t.Format("Mon Jan _2 15:04:05 2006")
	case style == "long-iso":
		return t.Format("2006-01-02 15:04")
	case strings.HasPrefix(style, "+"):
		return tool.Strftime(t, style[1:])
	}
	if age := l.now.Sub(t); age > 182*24*time.Hour || age < -time.Hour {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

// inColumns shows names side by side, as on a terminal.
func (l *lister) inColumns(items []listed) {
	width := 80
	if t := tty.Of(l.c.Env); t != nil && t.Size().Width > 0 {
		width = int(t.Size().Width)
	}
	if n, err := strconv.Atoi(l.c.Opts.Get("w", "")); err == nil && n > 0 {
		width = n
	}
	names := make([]string, len(items))
	longest := 0
	for i, item := range items {
		names[i] = l.prefix(item) + l.decorated(item)
		longest = max(longest, utf8.RuneCountInString(names[i]))
	}
	columns := max(1, width/(longest+2))
	rows := (len(names) + columns - 1) / columns
	for r := range rows {
		var line []string
		for c := range columns {
			if i := c*rows + r; i < len(names) {
				line = append(line, names[i])
			}
		}
		for i, n := range line[:len(line)-1] {
			line[i] = pad(n, longest+2, false)
		}
		l.c.Out.Line(strings.Join(line, ""))
	}
}
