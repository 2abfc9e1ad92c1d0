package text

import (
	"context"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var diff = tool.Tool{
	Name: "diff", Holds: true,
	Options: "a,text b,ignore-space-change B,ignore-blank-lines d,minimal i,ignore-case L:,label " +
		"N,new-file q,brief r,recursive S:,starting-file s,report-identical-files T " +
		"t,expand-tabs u U:,unified w,ignore-all-space color:: y c",
	Args: "[-abBdiNqrTstw] [-L LABEL] [-S FILE] [-U LINES] FILE1 FILE2", UsageCode: 2,
	Help: "Compare files line by line and output the differences between them.\n" +
		"This implementation supports unified diffs only.\n" +
		"\n" +
		"\t-b\tIgnore changes in the amount of whitespace\n" +
		"\t-B\tIgnore changes whose lines are all blank\n" +
		"\t-i\tIgnore case differences\n" +
		"\t-L\tUse LABEL instead of the filename in the unified header\n" +
		"\t-N\tTreat absent files as empty\n" +
		"\t-q\tOutput only whether files differ\n" +
		"\t-r\tRecurse\n" +
		"\t-s\tReport when two files are the same\n" +
		"\t-U\tOutput LINES lines of context\n" +
		"\t-w\tIgnore all whitespace",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) != 2 {
			return c.Usage()
		}
		d := &differ{c: c, context: 3}
		if u := c.Opts.Get("U", ""); u != "" {
			n, err := strconv.Atoi(u)
			if err != nil || n < 0 {
				return c.Fail(2, "invalid number '%s'", u)
			}
			d.context = n
		}
		if err := d.compare(c.Args[0], c.Args[1]); err != nil {
			return err
		}
		switch {
		case d.failed:
			return kit.Exit(2)
		case d.differ:
			return kit.Exit(1)
		}
		return nil
	},
}

// differ is a diff under way.
type differ struct {
	c       *tool.Call
	context int
	differ  bool
	failed  bool
}

func (d *differ) info(name string) (fs.FileInfo, error) {
	return d.c.Env.FS.Stat(d.c.Env.Path(name))
}

func (d *differ) compare(a, b string) error {
	fa, errA := d.info(a)
	fb, errB := d.info(b)
	if a != "-" && b != "-" && errA == nil && errB == nil {
		switch {
		case fa.IsDir() && fb.IsDir():
			return d.directories(a, b)
		case fa.IsDir():
			a = tool.Join(a, tool.Base(b))
		case fb.IsDir():
			b = tool.Join(b, tool.Base(a))
		}
	}
	return d.files(a, b)
}

func (d *differ) directories(a, b string) error {
	names := map[string]int{}
	for i, dir := range []string{a, b} {
		entries, err := d.c.Env.FS.ReadDir(d.c.Env.Path(dir))
		if err != nil {
			return d.c.Fail(2, "can't open '%s': %s", dir, tool.Reason(err))
		}
		for _, e := range entries {
			names[e.Name()] |= i + 1
		}
	}
	sorted := make([]string, 0, len(names))
	for n := range names {
		sorted = append(sorted, n)
	}
	slices.Sort(sorted)
	for _, n := range sorted {
		x, y := tool.Join(a, n), tool.Join(b, n)
		if names[n] != 3 && !d.c.Opts.Has("N") {
			d.differ = true
			d.c.Out.Printf("Only in %s: %s\n", strings.TrimSuffix([]string{a, b}[names[n]-1], "/"), n)
			continue
		}
		fx, _ := d.info(x)
		fy, _ := d.info(y)
		if fx != nil && fx.IsDir() && fy != nil && fy.IsDir() {
			if d.c.Opts.Has("r") {
				if err := d.directories(x, y); err != nil {
					return err
				}
			} else {
				d.c.Out.Printf("Common subdirectories: %s and %s\n", x, y)
			}
			continue
		}
		if err := d.files(x, y); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) read(name string) (lines []string, ok bool) {
	data, err := d.c.ReadAll(name)
	if err != nil {
		if d.c.Opts.Has("N") {
			return nil, true
		}
		d.c.Warn("can't stat '%s': %s", name, tool.Reason(err))
		d.failed = true
		return nil, false
	}
	for _, l := range splitKeep(data) {
		lines = append(lines, string(l))
	}
	return lines, true
}

func (d *differ) files(a, b string) error {
	x, okX := d.read(a)
	y, okY := d.read(b)
	if !okX || !okY {
		return nil
	}
	keys := func(lines []string) []string {
		out := make([]string, len(lines))
		for i, l := range lines {
			out[i] = d.key(l)
		}
		return out
	}
	edits := diffLines(keys(x), keys(y))
	hunks := group(edits, d.context)
	if d.c.Opts.Has("B") {
		hunks = slices.DeleteFunc(hunks, func(h []edit) bool { return onlyBlank(h, x, y) })
	}
	if len(hunks) == 0 {
		if d.c.Opts.Has("s") {
			d.c.Out.Printf("Files %s and %s are identical\n", a, b)
		}
		return nil
	}
	d.differ = true
	if d.c.Opts.Has("q") {
		d.c.Out.Printf("Files %s and %s differ\n", a, b)
		return nil
	}
	labels := append(d.c.Opts.All("L"), "", "")
	for i, name := range []string{a, b} {
		if labels[i] != "" {
			name = labels[i]
		}
		d.c.Out.Printf("%s %s\n", []string{"---", "+++"}[i], name)
	}
	for _, h := range hunks {
		d.hunk(h, x, y)
	}
	return nil
}

// key is what of a line counts.
func (d *differ) key(line string) string {
	switch {
	case d.c.Opts.Has("w"):
		line = strings.Join(strings.Fields(line), "")
	case d.c.Opts.Has("b"):
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
		line = strings.TrimRight(strings.Join(words, " "), " \n")
	}
	if d.c.Opts.Has("i") {
		line = strings.ToLower(line)
	}
	return line
}

func onlyBlank(h []edit, x, y []string) bool {
	for _, e := range h {
		if e.op == '-' && strings.TrimSpace(x[e.a]) != "" || e.op == '+' && strings.TrimSpace(y[e.b]) != "" {
			return false
		}
	}
	return true
}

func (d *differ) hunk(h []edit, x, y []string) {
	countA, countB := 0, 0
	for _, e := range h {
		if e.op != '+' {
			countA++
		}
		if e.op != '-' {
			countB++
		}
	}
	position := func(start, count int) string {
		switch count {
		case 0:
			return strconv.Itoa(start) + ",0"
		case 1:
			return strconv.Itoa(start + 1)
		}
		return strconv.Itoa(start+1) + "," + strconv.Itoa(count)
	}
	d.c.Out.Printf("@@ -%s +%s @@\n", position(h[0].a, countA), position(h[0].b, countB))
	for _, e := range h {
		line := ""
		if e.op == '+' {
			line = y[e.b]
		} else {
			line = x[e.a]
		}
		d.c.Out.WriteByte(e.op)
		d.c.Out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			d.c.Out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
