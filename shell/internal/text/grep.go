package text

import (
	"context"
	"io/fs"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var grep = tool.Tool{
	Name: "grep",
	Options: "H,with-filename h,no-filename n,line-number l,files-with-matches L,files-without-match " +
		"o,only-matching q,quiet,silent v,invert-match s,no-messages r,recursive " +
		"R,dereference-recursive i,ignore-case y w,word-regexp x,line-regexp c,count " +
		"F,fixed-strings E,extended-regexp G,basic-regexp P,perl-regexp m:,max-count " +
		"A:,after-context B:,before-context C:,context e:,regexp f:,file color::,colour include: " +
		"exclude: exclude-dir: z,null-data Z,null a,text I U b,byte-offset T,initial-tab " +
		"line-buffered no-ignore-case binary-files: d:,directories label: exclude-from: D:",
	Digits:    "C",
	Args:      "[-HhnlLoqvsrRiwFE] [-m N] [-A|B|C N] { PATTERN | -e PATTERN... | -f FILE... } [FILE]...",
	UsageCode: 2,
	Help: "Search for PATTERN in FILEs (or stdin)\n" +
		"\n" +
		"\t-H\tAdd 'filename:' prefix\n" +
		"\t-h\tDo not add 'filename:' prefix\n" +
		"\t-n\tAdd 'line_no:' prefix\n" +
		"\t-l\tShow only names of files that match\n" +
		"\t-L\tShow only names of files that don't match\n" +
		"\t-c\tShow only count of matching lines\n" +
		"\t-o\tShow only the matching part of line\n" +
		"\t-q\tQuiet. Return 0 if PATTERN is found, 1 otherwise\n" +
		"\t-v\tSelect non-matching lines\n" +
		"\t-s\tSuppress open and read errors\n" +
		"\t-r\tRecurse\n" +
		"\t-i\tIgnore case\n" +
		"\t-w\tMatch whole words only\n" +
		"\t-x\tMatch whole lines only\n" +
		"\t-F\tPATTERN is a literal (not regexp)\n" +
		"\t-E\tPATTERN is an extended regexp\n" +
		"\t-m N\tMatch up to N times per file\n" +
		"\t-A N\tPrint N lines of trailing context\n" +
		"\t-B N\tPrint N lines of leading context\n" +
		"\t-C N\tSame as '-A N -B N'\n" +
		"\t-e PTRN\tPattern to match\n" +
		"\t-f FILE\tRead pattern from file",
	Run: runGrep,
}

// egrep and fgrep are grep -E and grep -F.
var (
	egrep = variant("egrep", "E")
	fgrep = variant("fgrep", "F")
)

func variant(name, flag string) tool.Tool {
	t := grep.As(name)
	t.Run = func(ctx context.Context, c *tool.Call) error {
		return grepWith(ctx, c, flag)
	}
	return t
}

func runGrep(ctx context.Context, c *tool.Call) error {
	return grepWith(ctx, c, c.Opts.Last("F", "E", "G", "P"))
}

func grepWith(_ context.Context, c *tool.Call, syntax string) error {
	g := &grepper{c: c, separator: byte('\n')}
	files, err := g.setUp(syntax)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
		if g.recursive {
			files = []string{"."}
		}
	}
	g.names = (len(files) > 1 || g.recursive) && !c.Opts.Has("h") || c.Opts.Has("H")
	for _, name := range files {
		if stop := g.search(name); stop {
			break
		}
	}
	switch {
	case g.found && (!g.failed || c.Opts.Has("q")):
		c.SetStatus(0)
		return nil
	case g.failed:
		return kit.Exit(2)
	}
	return kit.Exit(1)
}

// grepper is a grep under way.
type grepper struct {
	c         *tool.Call
	match     func(line string) bool
	find      func(line string) [][]int
	names     bool
	recursive bool
	before    int
	after     int
	limit     int // matches per file; -1 is any number
	separator byte
	found     bool
	failed    bool
	printed   bool // something, so that a context needs a separator
}

func (g *grepper) setUp(syntax string) (files []string, err error) {
	c := g.c
	g.recursive = c.Opts.Has("r") || c.Opts.Has("R") || c.Opts.Get("d", "") == "recurse"
	for name, to := range map[string]*int{"A": &g.after, "B": &g.before, "m": &g.limit} {
		text := c.Opts.Get(name, map[string]string{"m": "-1"}[name])
		if name != "m" && text == "" {
			text = c.Opts.Get("C", "0")
		}
		if *to, err = strconv.Atoi(text); err != nil {
			return nil, c.Fail(2, "invalid number '%s'", text)
		}
	}
	if c.Opts.Has("z") {
		g.separator = 0
	}
	files = c.Args
	patterns := c.Opts.All("e")
	for _, name := range c.Opts.All("f") {
		data, err := c.ReadAll(name)
		if err != nil {
			return nil, c.Fail(2, "can't open '%s': %s", name, tool.Reason(err))
		}
		patterns = append(patterns, strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")...)
		if len(data) == 0 {
			patterns = patterns[:len(patterns)-1]
		}
	}
	if !c.Opts.Has("e") && !c.Opts.Has("f") {
		if len(files) == 0 {
			return nil, c.Usage()
		}
		patterns, files = []string{files[0]}, files[1:]
	}
	var all []string
	for _, p := range patterns {
		all = append(all, strings.Split(p, "\n")...) // A newline separates patterns, too.
	}
	return files, g.compile(all, syntax)
}

// compile prepares the patterns. A line matches if one of them does.
func (g *grepper) compile(patterns []string, syntax string) error {
	opts := regex.Options{IgnoreCase: (g.c.Opts.Has("i") || g.c.Opts.Has("y")) && !g.c.Opts.Has("no-ignore-case")}
	var list []*regex.Regexp
	for _, p := range patterns {
		if syntax == "F" {
			list = append(list, regex.Literal(p, opts))
			continue
		}
		kind := map[string]regex.Syntax{"E": regex.Extended, "P": regex.Perl}[syntax]
		re, err := regex.Compile(p, kind, opts)
		if err != nil {
			return g.c.Fail(2, "bad regex '%s': %v", p, err)
		}
		list = append(list, re)
	}
	g.find = func(line string) (all [][]int) {
		for _, re := range list {
			matches := re.FindAll(line, -1)
			if len(matches) == regex.MaxMatches {
				g.c.Warn("a line has too many matches")
			}
			for _, m := range matches {
				if g.accept(line, m) {
					all = append(all, m)
				}
			}
		}
		if len(list) > 1 {
			all = leftmost(all)
		}
		return all
	}
	plain := !g.c.Opts.Has("w") && !g.c.Opts.Has("x")
	g.match = func(line string) bool {
		if plain {
			for _, re := range list {
				if re.Match(line) {
					return true
				}
			}
			return false
		}
		return len(g.find(line)) > 0
	}
	return nil
}

// leftmost drops matches that overlap with one before them.
func leftmost(all [][]int) [][]int {
	var out [][]int
	for len(all) > 0 {
		best := 0
		for i, m := range all {
			if m[0] < all[best][0] || m[0] == all[best][0] && m[1] > all[best][1] {
				best = i
			}
		}
		chosen := all[best]
		out = append(out, chosen)
		var rest [][]int
		for _, m := range all {
			if m[0] >= chosen[1] && !(m[0] == chosen[0] && m[1] == chosen[1]) {
				rest = append(rest, m)
			}
		}
		all = rest
	}
	return out
}

// accept applies -w and -x to a match.
func (g *grepper) accept(line string, m []int) bool {
	if g.c.Opts.Has("x") {
		return m[0] == 0 && m[1] == len(line)
	}
	if !g.c.Opts.Has("w") {
		return true
	}
	word := func(i int) bool {
		if i < 0 || i >= len(line) {
			return false
		}
		b := line[i]
		return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
	}
	return !word(m[0]-1) && !word(m[1])
}

// search searches a file, or all files of a directory. It reports whether that is enough.
func (g *grepper) search(name string) (stop bool) {
	fi, err := g.c.Env.FS.Stat(g.c.Env.Path(name))
	if name != "-" && err == nil && fi.IsDir() {
		if !g.recursive {
			if !g.c.Opts.Has("s") && g.c.Opts.Get("d", "") != "skip" {
				g.c.Note("%s: %s: Is a directory\n", g.c.Name, name)
			}
			return false
		}
		return g.searchDir(name)
	}
	r, err := g.c.Open(name)
	if err != nil {
		g.fail(name, err)
		return false
	}
	defer r.Close()
	display := name
	if name == "-" {
		display = g.c.Opts.Get("label", "(standard input)")
	}
	return g.searchFile(display, r)
}

func (g *grepper) fail(name string, err error) {
	g.failed = true
	if !g.c.Opts.Has("s") {
		g.c.Note("%s: %s: %s\n", g.c.Name, name, tool.Reason(err))
	}
}

func (g *grepper) searchDir(dir string) bool {
	entries, err := g.c.Env.FS.ReadDir(g.c.Env.Path(dir))
	if err != nil {
		g.fail(dir, err)
		return false
	}
	for _, e := range entries {
		name := tool.Join(dir, e.Name())
		if dir == "." && len(g.c.Args) < 2 && !g.c.Opts.Has("e") && !g.c.Opts.Has("f") {
			name = "./" + e.Name()
		}
		if e.Type()&fs.ModeSymlink != 0 && !g.c.Opts.Has("R") || !g.included(e) {
			continue
		}
		if e.Type()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			continue
		}
		if g.search(name) {
			return true
		}
	}
	return false
}

// included applies --include and its relatives.
func (g *grepper) included(e fs.DirEntry) bool {
	any := func(option string) bool {
		for _, pattern := range g.c.Opts.All(option) {
			if tool.Glob(strings.TrimSuffix(pattern, "/"), e.Name(), false) {
				return true
			}
		}
		return false
	}
	if e.IsDir() {
		return !any("exclude-dir")
	}
	return !any("exclude") && (!g.c.Opts.Has("include") || any("include"))
}
