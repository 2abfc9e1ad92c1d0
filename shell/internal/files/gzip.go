package files

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

const gzipOptions = "c,stdout,to-stdout d,decompress,uncompress f,force k,keep t,test v,verbose n,no-name N " +
	"q,quiet l,list r,recursive S: 1,fast 2 3 4 5 6 7 8 9,best"

var gzipTool = tool.Tool{
	Name: "gzip", Options: gzipOptions, Args: "[-cfkdt123456789] [FILE]...",
	Help: "Compress FILEs (or stdin)\n" +
		"\n" +
		"\t-1..9\tCompression level\n" +
		"\t-d\tDecompress\n" +
		"\t-c\tWrite to stdout\n" +
		"\t-f\tForce\n" +
		"\t-k\tKeep input files\n" +
		"\t-t\tTest integrity",
	Run: func(_ context.Context, c *tool.Call) error {
		return zip(c, c.Opts.Has("d") || c.Opts.Has("t"), c.Opts.Has("c"))
	},
}

var gunzip = tool.Tool{
	Name: "gunzip", Options: gzipOptions, Args: "[-cfkt] [FILE]...", Help: "Decompress FILEs (or stdin)",
	Run: func(_ context.Context, c *tool.Call) error { return zip(c, true, c.Opts.Has("c")) },
}

var zcat = tool.Tool{
	Name: "zcat", Options: gzipOptions, Args: "[FILE]...", Help: "Decompress to stdout",
	Run: func(_ context.Context, c *tool.Call) error { return zip(c, true, true) },
}

func zip(c *tool.Call, decompress, toStdout bool) error {
	level := gzip.DefaultCompression
	if l := c.Opts.Last("1", "2", "3", "4", "5", "6", "7", "8", "9"); l != "" {
		level = int(l[0] - '0')
	}
	names := c.Args
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if err := zipOne(c, name, decompress, toStdout || name == "-", level); err != nil {
			return err
		}
	}
	return nil
}

func zipOne(c *tool.Call, name string, decompress, toStdout bool, level int) error {
	in, err := c.Open(name)
	if err != nil {
		c.Warn("%s: %s", name, tool.Reason(err))
		return nil
	}
	defer in.Close()
	if fi, err := c.Env.FS.Stat(c.Env.Path(name)); name != "-" && err == nil && fi.IsDir() {
		c.Warn("%s: is a directory -- ignored", name)
		return nil
	}
	var out io.Writer = c.Out
	target := ""
	switch {
	case c.Opts.Has("t"):
		out = io.Discard
	case !toStdout:
		if target = name + ".gz"; decompress {
			if target = strings.TrimSuffix(name, ".gz"); strings.HasSuffix(name, ".tgz") {
				target = strings.TrimSuffix(name, ".tgz") + ".tar"
			}
			if target == name {
				c.Warn("%s: unknown suffix - ignored", name)
				return nil
			}
		}
		if _, err := c.Env.FS.Stat(c.Env.Path(target)); err == nil && !c.Opts.Has("f") {
			c.Warn("can't open '%s': File exists", target)
			return nil
		}
		f, err := c.Create(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			c.Warn("can't open '%s': %s", target, tool.Reason(err))
			return nil
		}
		defer f.Close()
		out = f
	}
	if err := pump(out, in, decompress, level); err != nil {
		if target != "" {
			c.Env.FS.Remove(c.Env.Path(target))
		}
		c.Warn("%v", err)
		return nil
	}
	if target != "" && !c.Opts.Has("k") {
		if err := c.Env.FS.Remove(c.Env.Path(name)); err != nil {
			c.Warn("can't remove '%s': %s", name, tool.Reason(err))
		}
	}
	return nil
}

func pump(out io.Writer, in io.Reader, decompress bool, level int) error {
	if decompress {
		z, err := gzip.NewReader(in)
		if err != nil {
			return errors.New("invalid magic")
		}
		_, err = io.Copy(out, z)
		return err
	}
	z, err := gzip.NewWriterLevel(out, level)
	if err != nil {
		return err
	}
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close())
}
