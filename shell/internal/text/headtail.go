package text

import (
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// headers prints the names of files before their parts, where there are several.
type headers struct {
	c     *tool.Call
	on    bool
	shown bool
}

func newHeaders(c *tool.Call, files int) *headers {
	return &headers{c: c, on: files > 1 && !c.Opts.Has("q") || c.Opts.Has("v")}
}

func (h *headers) show(name string) {
	if !h.on {
		return
	}
	if name == "-" {
		name = "standard input"
	}
	if h.shown {
		h.c.Out.WriteByte('\n')
	}
	h.shown = true
	h.c.Out.Printf("==> %s <==\n", name)
}

var head = tool.Tool{
	Name: "head", Options: "n:,lines c:,bytes q,quiet,silent v,verbose z", Digits: "n",
	Args: "[OPTIONS] [FILE]...",
	Help: "Print first 10 lines of FILEs (or stdin).\n" +
		"With more than one FILE, precede each with a filename header.\n" +
		"\n" +
		"\t-n N[bkm]\tPrint first N lines\n" +
		"\t-n -N[bkm]\tPrint all except N last lines\n" +
		"\t-c [-]N[bkm]\tPrint first N bytes",
	Run: func(_ context.Context, c *tool.Call) error {
		byBytes := c.Opts.Last("n", "c") == "c"
		count := c.Opts.Get("n", "10")
		if byBytes {
			count = c.Opts.Get("c", "")
		}
		rest, negative := strings.CutPrefix(count, "-")
		n, err := tool.ParseSize(rest)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		h := newHeaders(c, len(c.Args))
		return c.EachInput(c.Args, func(in tool.Input) error {
			h.show(in.Name)
			switch {
			case negative:
				return allButLast(c, in, n, byBytes)
			case byBytes:
				_, err := io.CopyN(c.Out, in, n)
				if err == io.EOF {
					return nil
				}
				return err
			}
			return firstLines(c, in, n)
		})
	},
}

func firstLines(c *tool.Call, r io.Reader, n int64) error {
	if n == 0 {
		return nil
	}
	lines := stream.NewLines(r)
	for ; n > 0; n-- {
		line, ended, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c.Out.Write(line)
		if ended {
			c.Out.WriteByte('\n')
		}
	}
	return nil
}

func allButLast(c *tool.Call, r io.Reader, n int64, byBytes bool) error {
	data, err := c.Keep(r)
	if byBytes {
		c.Out.Write(data[:max(0, int64(len(data))-n)])
		return err
	}
	lines := splitKeep(data)
	for _, l := range lines[:max(0, int64(len(lines))-n)] {
		c.Out.Write(l)
	}
	return err
}

var tail = tool.Tool{
	Name:    "tail",
	Options: "n:,lines c:,bytes f,follow F retry q,quiet,silent v,verbose s:,sleep-interval pid:",
	Digits:  "n", Args: "[OPTIONS] [FILE]...",
	Help: "Print last 10 lines of FILEs (or stdin) to.\n" +
		"With more than one FILE, precede each with a filename header.\n" +
		"\n" +
		"\t-c [+]N[bkm]\tPrint last N bytes\n" +
		"\t-n N[bkm]\tPrint last N lines\n" +
		"\t-n +N[bkm]\tStart on Nth line and print the rest\n" +
		"\t-f\t\tPrint data as file grows\n" +
		"\t-F\t\tSame as -f, but keep retrying",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) > 0 && len(c.Args[0]) > 1 && c.Args[0][0] == '+' &&
			strings.Trim(c.Args[0][1:], "0123456789") == "" {
			// tail +5 is an old way to write tail -n +5.
			return tailFiles(ctx, c, c.Args[0], c.Args[1:], false)
		}
		byBytes := c.Opts.Last("n", "c") == "c"
		count := c.Opts.Get("n", "10")
		if byBytes {
			count = c.Opts.Get("c", "")
		}
		return tailFiles(ctx, c, count, c.Args, byBytes)
	},
}

func tailFiles(ctx context.Context, c *tool.Call, count string, files []string, byBytes bool) error {
	rest, fromStart := strings.CutPrefix(count, "+")
	n, err := tool.ParseSize(strings.TrimPrefix(rest, "-"))
	if err != nil {
		return c.Fail(1, "%v", err)
	}
	h := newHeaders(c, len(files))
	err = c.EachInput(files, func(in tool.Input) error {
		h.show(in.Name)
		return tailOf(c, in, n, byBytes, fromStart)
	})
	if err != nil || !c.Opts.Has("f") && !c.Opts.Has("F") || len(files) == 0 {
		return err
	}
	return follow(ctx, c, files, h)
}

func tailOf(c *tool.Call, r io.Reader, n int64, byBytes, fromStart bool) error {
	if fromStart {
		n = max(n-1, 0)
		if byBytes {
			if _, err := io.CopyN(io.Discard, r, n); err != nil {
				return nil
			}
			_, err := io.Copy(c.Out, r)
			return err
		}
		lines := stream.NewLines(r)
		for ; n > 0; n-- {
			if _, _, err := lines.Next(); err != nil {
				return nil
			}
		}
		_, err := io.Copy(c.Out, lines.Rest())
		return err
	}
	data, err := c.Keep(r)
	if byBytes {
		c.Out.Write(data[max(0, int64(len(data))-n):])
		return err
	}
	if n == 0 {
		return err
	}
	// The newline that ends the text begins no line.
	at := len(bytes.TrimSuffix(data, []byte{'\n'}))
	for ; n > 0 && at >= 0; n-- {
		at = bytes.LastIndexByte(data[:at], '\n')
	}
	c.Out.Write(data[at+1:])
	return err
}

// followInterval is how often tail -f looks for more.
const followInterval = 100 * time.Millisecond

// follow prints what is appended to files. A file that shrinks was truncated and is read from its
// start; one that is replaced is opened anew if tail was told to keep trying.
func follow(ctx context.Context, c *tool.Call, files []string, h *headers) error {
	interval := followInterval
	if s := c.Opts.Get("s", ""); s != "" {
		if d, err := tool.ParseDuration(s); err == nil && d > 0 {
			interval = min(interval, d)
		}
	}
	type followed struct {
		name   string
		inode  uint64
		offset int64
		gone   bool
	}
	var list []*followed
	last := ""
	for _, name := range files {
		f := &followed{name: name, gone: true}
		if fi, err := c.Env.FS.Stat(c.Env.Path(name)); err == nil {
			f.inode, f.offset, f.gone = tool.Owner(fi).Inode, fi.Size(), false
			last = name
		} else if !c.Opts.Has("F") && !c.Opts.Has("retry") {
			continue
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return c.Fail(1, "no files")
	}
	for {
		for _, f := range list {
			fi, err := c.Env.FS.Stat(c.Env.Path(f.name))
			if err != nil {
				f.gone = true
				continue
			}
			owner := tool.Owner(fi)
			if f.gone || owner.Inode != f.inode && c.Opts.Has("F") || fi.Size() < f.offset {
				f.inode, f.offset, f.gone = owner.Inode, 0, false
			}
			if fi.Size() == f.offset {
				continue
			}
			data, err := c.ReadAll(f.name)
			if err != nil || int64(len(data)) <= f.offset {
				continue
			}
			if last != f.name {
				h.show(f.name)
				last = f.name
			}
			c.Out.Write(data[f.offset:])
			f.offset = int64(len(data))
		}
		c.Sleep(ctx, interval)
	}
}
