package files

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var stat = tool.Tool{
	Name:    "stat",
	Options: "c:,format printf: f,file-system L,dereference t,terse",
	Args:    "[-ltf] [-c FMT] FILE...",
	Help: "Display file (default) or filesystem status\n" +
		"\n" +
		"\t-c FMT\tUse the specified format\n" +
		"\t-f\tDisplay filesystem status\n" +
		"\t-L\tFollow links\n" +
		"\t-t\tTerse display",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		for _, name := range c.Args {
			if c.Opts.Has("f") {
				statFS(c, name)
				continue
			}
			fi, err := c.Env.FS.Lstat(c.Env.Path(name))
			if c.Opts.Has("L") {
				fi, err = c.Env.FS.Stat(c.Env.Path(name))
			}
			if err != nil {
				c.Warn("can't stat '%s': %s", name, tool.Reason(err))
				continue
			}
			s := &status{c: c, name: name, fi: fi, accounts: tool.ReadAccounts(c.Env)}
			switch {
			case c.Opts.Has("c"):
				c.Out.Line(s.format(c.Opts.Get("c", "")))
			case c.Opts.Has("printf"):
				text := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(c.Opts.Get("printf", ""))
				c.Out.WriteString(s.format(text))
			case c.Opts.Has("t"):
				c.Out.Line(s.format("%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %o"))
			default:
				c.Out.WriteString(s.format(defaultStat))
			}
		}
		return nil
	},
}

// defaultStat is the format of stat without options.
const defaultStat = `  File: %N
  Size: %-10s	Blocks: %-10b IO Block: %-6o %F
Device: %Dh/%dd	Inode: %-10i  Links: %-5h
Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)
Access: %x
Modify: %y
Change: %z
`

// status is a file that stat shows.
type status struct {
	c        *tool.Call
	name     string
	fi       fs.FileInfo
	accounts *tool.Accounts
}

// format replaces the directives of a format, which may have a width as in printf.
func (s *status) format(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		start := i
		for i++; i < len(format)-1 && strings.IndexByte("-+ #0123456789.", format[i]) >= 0; i++ {
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		spec, value := format[start:i], s.directive(format[i])
		if strings.Contains(spec, "%0") && len(spec) > 1 {
			width, _ := strconv.Atoi(spec[2:])
			value = strings.Repeat("0", max(0, min(width, maxWidth)-len(value))) + value
			spec = "%"
		}
		fmt.Fprintf(&b, spec+"s", value)
	}
	return b.String()
}

func (s *status) directive(d byte) string {
	owner, mode, when := tool.Owner(s.fi), s.fi.Mode(), s.fi.ModTime().In(tool.Location(s.c.Env))
	switch d {
	case 'n':
		return s.name
	case 'N':
		if target, err := s.c.Env.FS.Readlink(s.c.Env.Path(s.name)); err == nil && mode&fs.ModeSymlink != 0 {
			return "'" + s.name + "' -> '" + target + "'"
		}
		if s.c.Opts.Has("c") {
			return "'" + s.name + "'"
		}
		return s.name
	case 's':
		return strconv.FormatInt(sizeOf(s.fi), 10)
	case 'b':
		return strconv.FormatInt(blocks(s.fi)*2, 10)
	case 'B':
		return "512"
	case 'o':
		return "4096"
	case 'F':
		return typeName(s.fi)
	case 'a':
		return strconv.FormatUint(uint64(octalMode(mode)), 8)
	case 'A':
		return modeString(mode)
	case 'f':
		return strconv.FormatUint(uint64(kindBits[modeString(mode)[0]]|octalMode(mode)), 16)
	case 'u':
		return strconv.Itoa(owner.UID)
	case 'U':
		return s.accounts.UserName(owner.UID)
	case 'g':
		return strconv.Itoa(owner.GID)
	case 'G':
		return s.accounts.GroupName(owner.GID)
	case 'h':
		return strconv.Itoa(owner.Links)
	case 'i':
		return strconv.FormatUint(owner.Inode, 10)
	case 'd', 'D':
		return "32"
	case 't', 'T':
		return "0"
	case 'm':
		if info, err := s.c.Env.FS.StatFS(s.c.Env.Path(s.name)); err == nil {
			return info.Mount
		}
		return "/"
	case 'x', 'y', 'z':
		return when.Format("2006-01-02 15:04:05.000000000 -0700")
	case 'w':
		return "-"
	case 'W':
		return "0"
	case 'X', 'Y', 'Z':
		return strconv.FormatInt(when.Unix(), 10)
	}
	return "?"
}

// kindBits are the kernel's numbers for kinds of files, by the letter ls has for them.
var kindBits = map[byte]uint32{
	'p': 0o010000, 'c': 0o020000, 'd': 0o040000, 'b': 0o060000, '-': 0o100000, 'l': 0o120000, 's': 0o140000,
}

func statFS(c *tool.Call, name string) {
	info, err := c.Env.FS.StatFS(c.Env.Path(name))
	if err != nil {
		c.Warn("can't read file system information for '%s': %s", name, tool.Reason(err))
		return
	}
	const block = 4096
	c.Out.Printf("  File: \"%s\"\n    ID: 0        Namelen: 255     Type: %s\nBlock size: %d\n", name, info.Type, block)
	c.Out.Printf("Blocks: Total: %-10d Free: %-10d Available: %d\n", info.Total/block, info.Free/block, info.Free/block)
}
