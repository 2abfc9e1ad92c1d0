package text

import (
	"bufio"
	"context"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// counts is what wc counts.
type counts struct{ lines, words, chars, bytes, longest int64 }

func (n *counts) add(m counts) {
	n.lines += m.lines
	n.words += m.words
	n.chars += m.chars
	n.bytes += m.bytes
	n.longest = max(n.longest, m.longest)
}

var wc = tool.Tool{
	Name: "wc", Options: "c,bytes m,chars l,lines w,words L,max-line-length", Args: "[-cmlwL] [FILE]...",
	Help: "Count lines, words, and bytes for FILEs (or stdin)\n" +
		"\n" +
		"\t-c\tCount bytes\n" +
		"\t-m\tCount characters\n" +
		"\t-l\tCount newlines\n" +
		"\t-w\tCount words\n" +
		"\t-L\tPrint longest line length",
	Run: func(_ context.Context, c *tool.Call) error {
		var total counts
		shown := 0
		err := c.EachInput(c.Args, func(in tool.Input) error {
			n, err := count(in)
			if err != nil {
				return err
			}
			total.add(n)
			shown++
			name := in.Name
			if len(c.Args) == 0 {
				name = ""
			}
			printCounts(c, n, name)
			return nil
		})
		if len(c.Args) > 1 {
			printCounts(c, total, "total")
		}
		return err
	},
}

func count(r io.Reader) (n counts, err error) {
	in := bufio.NewReaderSize(r, 32<<10)
	word, width := false, int64(0)
	for {
		r, size, err := in.ReadRune()
		if err == io.EOF {
			break
		} else if err != nil {
			return n, err
		}
		n.bytes += int64(size)
		n.chars++
		switch {
		case r == '\n':
			n.lines++
			n.longest = max(n.longest, width)
			width = 0
		case r == '\t':
			width += 8 - width%8
		default:
			width++
		}
		if unicode.IsSpace(r) {
			word = false
		} else if !word {
			word = true
			n.words++
		}
	}
	n.longest = max(n.longest, width)
	return n, nil
}

func printCounts(c *tool.Call, n counts, name string) {
	var columns []string
	for _, col := range []struct {
		flag  string
		value int64
	}{{"l", n.lines}, {"w", n.words}, {"m", n.chars}, {"c", n.bytes}, {"L", n.longest}} {
		if c.Opts.Has(col.flag) || len(c.Opts.InOrder()) == 0 && strings.Contains("lwc", col.flag) {
			columns = append(columns, strconv.FormatInt(col.value, 10))
		}
	}
	line := columns[0]
	if len(columns) > 1 {
		line = ""
		for i, col := range columns {
			if i > 0 {
				line += " "
			}
			line += strings.Repeat(" ", max(0, 9-len(col))) + col
		}
	}
	if name != "" {
		line += " " + name
	}
	c.Out.Line(line)
}
