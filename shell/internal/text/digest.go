package text

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var (
	md5sum    = digest("md5sum", md5.New)
	sha1sum   = digest("sha1sum", sha1.New)
	sha256sum = digest("sha256sum", sha256.New)
	sha512sum = digest("sha512sum", sha512.New)
)

func digest(name string, algorithm func() hash.Hash) tool.Tool {
	return tool.Tool{
		Name: name, Options: "c,check s,status w,warn b,binary t,text quiet", Args: "[-c[sw]] [FILE]...",
		Help: "Print or check checksums\n" +
			"\n" +
			"\t-c\tCheck sums against list in FILEs\n" +
			"\t-s\tDon't output anything, status code shows success\n" +
			"\t-w\tWarn about improperly formatted checksum lines",
		Run: func(_ context.Context, c *tool.Call) error {
			if c.Opts.Has("c") {
				return checkSums(c, algorithm)
			}
			return c.EachInput(c.Args, func(in tool.Input) error {
				h := algorithm()
				if _, err := io.Copy(h, in); err != nil {
					return err
				}
				c.Out.Printf("%x  %s\n", h.Sum(nil), in.Name)
				return nil
			})
		},
	}
}

func checkSums(c *tool.Call, algorithm func() hash.Hash) error {
	failed, total := 0, 0
	err := c.EachLine(c.Args, func(line []byte, _ bool) error {
		sum, name, ok := strings.Cut(string(line), " ")
		name = strings.TrimLeft(name, " *")
		if !ok || len(sum) != 2*algorithm().Size() {
			if c.Opts.Has("w") {
				c.Warn("invalid format")
			}
			return nil
		}
		total++
		result := "OK"
		h := algorithm()
		r, err := c.Open(name)
		if err == nil {
			_, err = io.Copy(h, r)
			r.Close()
		}
		if err != nil {
			c.Warn("can't open '%s': %s", name, tool.Reason(err))
		}
		if err != nil || !strings.EqualFold(hex.EncodeToString(h.Sum(nil)), sum) {
			result = "FAILED"
			failed++
		}
		if !c.Opts.Has("s") && !(c.Opts.Has("quiet") && result == "OK") {
			c.Out.Printf("%s: %s\n", name, result)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if total == 0 {
		return c.Fail(1, "no checksum lines found")
	}
	if failed > 0 {
		c.SetStatus(1)
		if !c.Opts.Has("s") {
			c.Warn("WARNING: %d of %d computed checksums did NOT match", failed, total)
		}
	}
	return nil
}

var base64Tool = tool.Tool{
	Name: "base64", Options: "d,decode D w:,wrap i,ignore-garbage", Args: "[-d] [-w COL] [FILE]",
	Help: "Base64 encode or decode FILE to standard output\n" +
		"\n" +
		"\t-d\tDecode data\n" +
		"\t-w COL\tWrap lines at COL (default 76, 0 disables)",
	Run: func(_ context.Context, c *tool.Call) error {
		name := "-"
		if len(c.Args) > 0 {
			name = c.Args[0]
		}
		data, err := c.ReadAll(name)
		if err != nil {
			return c.Fail(1, "can't open '%s': %s", name, tool.Reason(err))
		}
		if c.Opts.Has("d") || c.Opts.Has("D") {
			text := strings.Join(strings.Fields(string(data)), "")
			plain, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				plain, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
			}
			c.Out.Write(plain)
			if err != nil {
				return c.Fail(1, "truncated input")
			}
			return nil
		}
		width, err := strconv.Atoi(c.Opts.Get("w", "76"))
		if err != nil || width < 0 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("w", ""))
		}
		text := base64.StdEncoding.EncodeToString(data)
		if width == 0 {
			c.Out.WriteString(text)
			return nil
		}
		for len(text) > 0 {
			n := min(width, len(text))
			c.Out.Line(text[:n])
			text = text[n:]
		}
		return nil
	},
}

var stringsTool = tool.Tool{
	Name: "strings", Options: "a f o n:,bytes t:", Digits: "n", Args: "[-fo] [-n LEN] [FILE]...",
	Help: "Display printable strings in a binary file",
	Run: func(_ context.Context, c *tool.Call) error {
		least, err := strconv.Atoi(c.Opts.Get("n", "4"))
		if err != nil || least < 1 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("n", ""))
		}
		return c.EachInput(c.Args, func(in tool.Input) error {
			r := bufio.NewReader(in)
			var run []byte
			flush := func() {
				if len(run) >= least {
					if c.Opts.Has("f") {
						c.Out.WriteString(in.Name + ": ")
					}
					c.Out.Line(string(run))
				}
				run = run[:0]
			}
			for {
				b, err := r.ReadByte()
				if err != nil {
					flush()
					if err == io.EOF {
						return nil
					}
					return err
				}
				if b >= ' ' && b < 0x7f || b == '\t' {
					run = append(run, b)
				} else {
					flush()
				}
			}
		})
	},
}
