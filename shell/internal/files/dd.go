package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var dd = tool.Tool{
	Name: "dd", Raw: true,
	Args: "[if=FILE] [of=FILE] [bs=N] [count=N] [skip=N] [seek=N] " +
		"[conv=notrunc|noerror|sync|fsync] [status=none|noxfer]",
	Help: "Copy a file with converting and formatting",
	Run: func(_ context.Context, c *tool.Call) error {
		d := &duplicator{c: c, in: "-", ibs: 512, obs: 512, count: -1}
		for _, arg := range c.Args {
			if err := d.operand(arg); err != nil {
				return c.Fail(1, "%v", err)
			}
		}
		return d.run()
	},
}

// duplicator is a dd under way.
type duplicator struct {
	c          *tool.Call
	in, out    string
	ibs, obs   int64
	count      int64 // blocks; -1 is all
	skip, seek int64
	conv       map[string]bool
	status     string

	full, partial         int64 // records read
	outFull, outPartial   int64
	bytes                 int64
	countBytes, skipBytes bool
}

func (d *duplicator) operand(arg string) error {
	name, value, ok := strings.Cut(arg, "=")
	if !ok {
		return fmt.Errorf("bad argument '%s'", arg)
	}
	number := func(to ...*int64) error {
		n := int64(1)
		for _, factor := range strings.Split(value, "x") {
			f, err := tool.ParseSize(factor)
			if err != nil || f < 0 {
				return fmt.Errorf("invalid number '%s'", value)
			}
			n *= f
		}
		for _, t := range to {
			*t = n
		}
		return nil
	}
	switch name {
	case "if":
		d.in = value
	case "of":
		d.out = value
	case "bs":
		return number(&d.ibs, &d.obs)
	case "ibs":
		return number(&d.ibs)
	case "obs":
		return number(&d.obs)
	case "count":
		return number(&d.count)
	case "skip", "iseek":
		return number(&d.skip)
	case "seek", "oseek":
		return number(&d.seek)
	case "conv":
		d.conv = map[string]bool{}
		for _, c := range strings.Split(value, ",") {
			switch c {
			case "notrunc", "noerror", "sync", "fsync", "fdatasync", "lcase", "ucase", "excl":
				d.conv[c] = true
			default:
				return fmt.Errorf("bad argument '%s'", value)
			}
		}
	case "iflag":
		d.countBytes, d.skipBytes = strings.Contains(value, "count_bytes"), strings.Contains(value, "skip_bytes")
	case "oflag":
	case "status":
		d.status = value
	default:
		return fmt.Errorf("unrecognized operand '%s'", arg)
	}
	return nil
}

// maxBlock bounds the memory of one block.
const maxBlock = 256 << 20

func (d *duplicator) run() error {
	c := d.c
	if d.ibs < 1 || d.ibs > maxBlock {
		return c.Fail(1, "invalid number '%d'", d.ibs)
	}
	in, err := c.Open(d.in)
	if err != nil {
		return c.Fail(1, "can't open '%s': %s", d.in, tool.Reason(err))
	}
	defer in.Close()
	var out io.Writer = c.Out
	if d.out != "" {
		f, err := d.openOutput()
		if err != nil {
			return c.Fail(1, "can't open '%s': %s", d.out, tool.Reason(err))
		}
		defer f.Close()
		out = f
	}
	skip := d.skip * d.ibs
	if d.skipBytes {
		skip = d.skip
	}
	if _, err := io.CopyN(io.Discard, in, skip); err != nil && err != io.EOF {
		return c.Fail(1, "%s: %s", d.in, tool.Reason(err))
	}
	start := time.Now()
	err = d.copy(out, in)
	c.Out.Flush()
	if d.status != "none" {
		d.report(time.Since(start))
	}
	return err
}

func (d *duplicator) openOutput() (io.WriteCloser, error) {
	flag := os.O_WRONLY | os.O_CREATE
	if !d.conv["notrunc"] && d.seek == 0 {
		flag |= os.O_TRUNC
	}
	f, err := d.c.Env.FS.OpenFile(d.c.Env.Path(d.out), flag, 0o666)
	if err != nil || d.seek == 0 {
		return f, err
	}
	if !d.conv["notrunc"] {
		if err := f.Truncate(d.seek * d.obs); err != nil {
			f.Close()
			return nil, err
		}
	}
	_, err = f.Seek(d.seek*d.obs, io.SeekStart)
	return f, err
}

func (d *duplicator) copy(out io.Writer, in io.Reader) error {
	block := make([]byte, d.ibs)
	left := d.count
	for d.count < 0 || left > 0 {
		tool.Stopped(d.c.Context())
		want := block
		if d.countBytes && d.count >= 0 {
			want = block[:min(left, d.ibs)]
		}
		n, err := io.ReadFull(in, want)
		if n == 0 {
			if err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
				return d.c.Fail(1, "%s: %s", d.in, tool.Reason(err))
			}
			return nil
		}
		if left--; d.countBytes {
			left -= int64(n) - 1
		}
		if int64(n) == d.ibs {
			d.full++
		} else {
			d.partial++
		}
		data := want[:n]
		if d.conv["sync"] && int64(n) < d.ibs {
			clear(block[n:])
			data = block
		}
		switch {
		case d.conv["lcase"]:
			data = []byte(strings.ToLower(string(data)))
		case d.conv["ucase"]:
			data = []byte(strings.ToUpper(string(data)))
		}
		written, err := out.Write(data)
		d.bytes += int64(written)
		if err != nil {
			return d.c.Fail(1, "error writing '%s': %s", d.out, tool.Reason(err))
		}
		if int64(len(data)) == d.ibs {
			d.outFull++
		} else {
			d.outPartial++
		}
	}
	return nil
}

func (d *duplicator) report(took time.Duration) {
	d.c.Note("%d+%d records in\n%d+%d records out\n", d.full, d.partial, d.outFull, d.outPartial)
	if d.status == "noxfer" {
		return
	}
	seconds := max(took.Seconds(), 1e-6)
	human := ""
	if d.bytes >= 1024 {
		human = " (" + tool.HumanSize(d.bytes) + "B)"
	}
	speed := tool.HumanSize(int64(float64(d.bytes) / seconds))
	d.c.Note("%d bytes%s copied, %s seconds, %sB/s\n", d.bytes, human, strconv.FormatFloat(seconds, 'f', 6, 64), speed)
}
