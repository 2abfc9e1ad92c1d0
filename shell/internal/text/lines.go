package text

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var nl = tool.Tool{
	Name: "nl",
	Options: "b:,body-numbering h: f: w:,number-width s:,number-separator n:,number-format " +
		"v:,starting-line-number i:,line-increment p l: d:",
	Args: "[OPTIONS] [FILE]...", Help: "Write FILEs to standard output with line numbers added",
	Run: func(_ context.Context, c *tool.Call) error {
		width, errW := strconv.Atoi(c.Opts.Get("w", "6"))
		number, errV := strconv.Atoi(c.Opts.Get("v", "1"))
		step, errI := strconv.Atoi(c.Opts.Get("i", "1"))
		if errW != nil || errV != nil || errI != nil {
			return c.Fail(1, "invalid number")
		}
		style, sep := c.Opts.Get("b", "t"), c.Opts.Get("s", "\t")
		var pattern *regex.Regexp
		if expr, ok := strings.CutPrefix(style, "p"); ok {
			var err error
			if pattern, err = regex.Compile(expr, regex.Basic, regex.Options{}); err != nil {
				return c.Fail(1, "%v", err)
			}
		}
		format := map[string]string{"ln": "%-*d", "rn": "%*d", "rz": "%0*d"}[c.Opts.Get("n", "rn")]
		if format == "" {
			return c.Usage()
		}
		return c.EachLine(c.Args, func(line []byte, _ bool) error {
			numbered := style == "a" || style == "t" && len(line) > 0 || pattern != nil && pattern.Match(string(line))
			if numbered {
				c.Out.Printf(format+"%s%s\n", width, number, sep, line)
				number += step
			} else {
				c.Out.Printf("%*s%s\n", width+len(sep), "", line)
			}
			return nil
		})
	},
}

var fold = tool.Tool{
	Name: "fold", Options: "w:,width s,spaces b,bytes", Digits: "w",
	Args: "[-bs] [-w WIDTH] [FILE]...",
	Help: "Wrap input lines in FILEs (or stdin), writing to stdout",
	Run: func(_ context.Context, c *tool.Call) error {
		width, err := strconv.Atoi(c.Opts.Get("w", "80"))
		if err != nil || width < 1 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("w", ""))
		}
		return c.EachLine(c.Args, func(line []byte, ended bool) error {
			r := []rune(string(line))
			for len(r) > width {
				cut := width
				if c.Opts.Has("s") {
					if i := strings.LastIndexAny(string(r[:width]), " \t"); i >= 0 {
						cut = len([]rune(string(r[:width])[:i])) + 1
					}
				}
				c.Out.Line(string(r[:cut]))
				r = r[cut:]
			}
			c.Out.WriteString(string(r))
			if ended {
				c.Out.WriteByte('\n')
			}
			return nil
		})
	},
}

// openAll opens files for tools that read several at once.
func openAll(c *tool.Call, names []string) ([]*stream.Lines, func(), error) {
	var list []*stream.Lines
	var closers []io.Closer
	closeAll := func() {
		for _, f := range closers {
			f.Close()
		}
	}
	var stdin *stream.Lines // which may be named more than once
	for _, name := range names {
		if name == "-" && stdin != nil {
			list = append(list, stdin)
			continue
		}
		r, err := c.Open(name)
		if err != nil {
			closeAll()
			return nil, nil, c.Fail(1, "can't open '%s': %s", name, tool.Reason(err))
		}
		closers = append(closers, r)
		list = append(list, stream.NewLines(r))
		if name == "-" {
			stdin = list[len(list)-1]
		}
	}
	return list, closeAll, nil
}

var paste = tool.Tool{
	Name: "paste", Options: "d:,delimiters s,serial", Args: "[-d DELIMS] [-s] [FILE]...",
	Help: "Paste lines from each input file together using tab",
	Run: func(_ context.Context, c *tool.Call) error {
		names := c.Args
		if len(names) == 0 {
			names = []string{"-"}
		}
		escapes := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`, `\0`, "\x00")
		delims := []rune(escapes.Replace(c.Opts.Get("d", "\t")))
		delim := func(i int) string {
			if len(delims) == 0 {
				return ""
			}
			if d := delims[i%len(delims)]; d != 0 {
				return string(d)
			}
			return ""
		}
		files, closeAll, err := openAll(c, names)
		if err != nil {
			return err
		}
		defer closeAll()
		if c.Opts.Has("s") {
			for _, f := range files {
				for i := 0; ; i++ {
					line, _, err := f.Next()
					if err != nil {
						break
					}
					if i > 0 {
						c.Out.WriteString(delim(i - 1))
					}
					c.Out.Write(line)
				}
				c.Out.WriteByte('\n')
			}
			return nil
		}
		for {
			parts, any := make([]string, len(files)), false
			for i, f := range files {
				line, _, err := f.Next()
				any = any || err == nil
				parts[i] = string(line)
			}
			if !any {
				return nil
			}
			for i, p := range parts {
				if i > 0 {
					c.Out.WriteString(delim(i - 1))
				}
				c.Out.WriteString(p)
			}
			c.Out.WriteByte('\n')
		}
	},
}

var comm = tool.Tool{
	Name: "comm", Options: "1 2 3", Args: "[-123] FILE1 FILE2",
	Help: "Compare FILE1 with FILE2\n" +
		"\n" +
		"\t-1\tSuppress lines unique to FILE1\n" +
		"\t-2\tSuppress lines unique to FILE2\n" +
		"\t-3\tSuppress lines common to both files",
	Run: func(_ context.Context, c *tool.Call) error {
		if len(c.Args) != 2 {
			return c.Usage()
		}
		files, closeAll, err := openAll(c, c.Args)
		if err != nil {
			return err
		}
		defer closeAll()
		read := func(f *stream.Lines) (string, bool) {
			line, _, err := f.Next()
			return string(line), err == nil
		}
		show := func(column string, indent int, line string) {
			if !c.Opts.Has(column) {
				c.Out.Line(strings.Repeat("\t", indent) + line)
			}
		}
		second, both := 1, 2
		if c.Opts.Has("1") {
			second, both = second-1, both-1
		}
		if c.Opts.Has("2") {
			both--
		}
		a, okA := read(files[0])
		b, okB := read(files[1])
		for okA || okB {
			switch {
			case okA && (!okB || a < b):
				show("1", 0, a)
				a, okA = read(files[0])
			case okB && (!okA || b < a):
				show("2", second, b)
				b, okB = read(files[1])
			default:
				show("3", both, a)
				a, okA = read(files[0])
				b, okB = read(files[1])
			}
		}
		return nil
	},
}

var split = tool.Tool{
	Name:    "split",
	Options: "l:,lines b:,bytes a:,suffix-length d,numeric-suffixes",
	Digits:  "l", Args: "[OPTIONS] [INPUT [PREFIX]]",
	Help: "Split a file into pieces\n" +
		"\n" +
		"\t-b N[k|m]\tSplit by N (kilo|mega)bytes\n" +
		"\t-l N\t\tSplit by N lines\n" +
		"\t-a N\t\tUse N letters as suffix",
	Run: func(_ context.Context, c *tool.Call) error {
		input, prefix := "-", "x"
		if len(c.Args) > 0 {
			input = c.Args[0]
		}
		if len(c.Args) > 1 {
			prefix = c.Args[1]
		}
		data, err := c.ReadAll(input)
		if err != nil {
			return c.Fail(1, "can't open '%s': %s", input, tool.Reason(err))
		}
		length, err := strconv.Atoi(c.Opts.Get("a", "2"))
		if err != nil || length < 1 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("a", ""))
		}
		size, err := tool.ParseSize(c.Opts.Get("b", c.Opts.Get("l", "1000")))
		if err != nil || size < 1 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("b", c.Opts.Get("l", "")))
		}
		for i := 0; len(data) > 0; i++ {
			n := int(min(size, int64(len(data))))
			if !c.Opts.Has("b") {
				n = 0
				for range size {
					at := strings.IndexByte(string(data[n:]), '\n')
					if at < 0 {
						n = len(data)
						break
					}
					n += at + 1
				}
			}
			suffix, err := suffixOf(i, length, c.Opts.Has("d"))
			if err != nil {
				return c.Fail(1, "%v", err)
			}
			f, err := c.Create(prefix+suffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
			if err != nil {
				return c.Fail(1, "can't open '%s': %s", prefix+suffix, tool.Reason(err))
			}
			if _, err := f.Write(data[:n]); err != nil {
				return err
			}
			f.Close()
			data = data[n:]
		}
		return nil
	},
}

// suffixOf is the i-th of aa, ab, ..., or 00, 01, ...
func suffixOf(i, length int, digits bool) (string, error) {
	alphabet := "abcdefghijklmnopqrstuvwxyz"
	if digits {
		alphabet = "0123456789"
	}
	b := make([]byte, length)
	for k := length - 1; k >= 0; k-- {
		b[k] = alphabet[i%len(alphabet)]
		i /= len(alphabet)
	}
	if i > 0 {
		return "", fmt.Errorf("suffixes exhausted")
	}
	return string(b), nil
}
