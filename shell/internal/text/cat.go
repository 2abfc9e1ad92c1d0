package text

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var cat = tool.Tool{
	Name: "cat",
	Options: "n,number b,number-nonblank v,show-nonprinting t e A,show-all E,show-ends T,show-tabs " +
		"s,squeeze-blank u",
	Args: "[-nbvteA] [FILE]...", Help: "Print FILEs to stdout",
	Run: func(_ context.Context, c *tool.Call) error {
		s := catStyle{
			number: c.Opts.Has("n"), nonblank: c.Opts.Has("b"), squeeze: c.Opts.Has("s"),
			ends: c.Opts.Has("e") || c.Opts.Has("E") || c.Opts.Has("A"),
			tabs: c.Opts.Has("t") || c.Opts.Has("T") || c.Opts.Has("A"),
			show: c.Opts.Has("v") || c.Opts.Has("e") || c.Opts.Has("t") || c.Opts.Has("A"),
		}
		if s == (catStyle{}) {
			return c.EachInput(c.Args, func(in tool.Input) error {
				_, err := io.Copy(c.Out, in)
				return err
			})
		}
		count, blank := 0, false
		return c.EachLine(c.Args, func(line []byte, ended bool) error {
			if s.squeeze && blank && len(line) == 0 {
				return nil
			}
			blank = len(line) == 0
			if s.nonblank && !blank || s.number && !s.nonblank {
				count++
				c.Out.Printf("%6d\t", count)
			}
			c.Out.Write(s.visible(line))
			if ended {
				if s.ends {
					c.Out.WriteByte('$')
				}
				c.Out.WriteByte('\n')
			}
			return nil
		})
	},
}

// catStyle is what cat does to lines.
type catStyle struct{ number, nonblank, squeeze, ends, tabs, show bool }

// visible writes what cannot be seen as ^X and M-X.
func (s catStyle) visible(line []byte) []byte {
	if !s.show && !s.tabs {
		return line
	}
	var out []byte
	for _, b := range line {
		if b == '\t' && !s.tabs || !s.show && b != '\t' {
			out = append(out, b)
			continue
		}
		if b >= 0x80 {
			out = append(out, "M-"...)
			b -= 0x80
		}
		switch {
		case b < ' ':
			out = append(out, '^', b+'@')
		case b == 0x7f:
			out = append(out, "^?"...)
		default:
			out = append(out, b)
		}
	}
	return out
}

// less shows everything at once: a pager without a terminal does, and an agent has no keys to press.
var less = tool.Tool{
	Name: "less", Options: "E F I M N R S X e f i m n q r s ~ p: z:", Args: "[FILE]...",
	Help: "View FILE (or stdin) one screenful at a time",
	Run: func(_ context.Context, c *tool.Call) error {
		return c.EachInput(c.Args, func(in tool.Input) error {
			_, err := io.Copy(c.Out, in)
			return err
		})
	},
}

var tac = tool.Tool{
	Name: "tac", Holds: true, Args: "[FILE]...", Help: "Concatenate FILEs and print them in reverse",
	Run: func(_ context.Context, c *tool.Call) error {
		return c.EachInput(c.Args, func(in tool.Input) error {
			data, err := io.ReadAll(in)
			lines := splitKeep(data)
			slices.Reverse(lines)
			for _, l := range lines {
				c.Out.Write(l)
			}
			return err
		})
	},
}

// splitKeep cuts a text into lines with their newlines.
func splitKeep(data []byte) (lines [][]byte) {
	for len(data) > 0 {
		i := slices.Index(data, '\n') + 1
		if i == 0 {
			i = len(data)
		}
		lines = append(lines, data[:i])
		data = data[i:]
	}
	return lines
}

var rev = tool.Tool{
	Name: "rev", Args: "[FILE]...", Help: "Reverse lines of FILE",
	Run: func(_ context.Context, c *tool.Call) error {
		return c.EachLine(c.Args, func(line []byte, ended bool) error {
			r := []rune(string(line))
			slices.Reverse(r)
			c.Out.WriteString(string(r))
			if ended {
				c.Out.WriteByte('\n')
			}
			return nil
		})
	},
}

var tee = tool.Tool{
	Name: "tee", Options: "a,append i,ignore-interrupts", Args: "[-ai] [FILE]...",
	Help: "Copy stdin to each FILE, and also to stdout\n" +
		"\n" +
		"\t-a\tAppend to the given FILEs, don't overwrite",
	Run: func(_ context.Context, c *tool.Call) error {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if c.Opts.Has("a") {
			flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		writers := []io.Writer{c.Out}
		for _, name := range c.Args {
			f, err := c.Create(name, flag, 0o666)
			if err != nil {
				c.Warn("%s: %s", name, tool.Reason(err))
				continue
			}
			defer f.Close()
			writers = append(writers, f)
		}
		_, err := io.Copy(io.MultiWriter(writers...), c.Stdin)
		return err
	},
}
