package text

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var tr = tool.Tool{
	Name:    "tr",
	Options: "c,complement C d,delete s,squeeze-repeats t,truncate-set1",
	Args:    "[-cds] STRING1 [STRING2]", InOrder: true,
	Help: "Translate, squeeze, or delete characters from stdin, writing to stdout\n" +
		"\n" +
		"\t-c\tTake complement of STRING1\n" +
		"\t-d\tDelete input characters coded STRING1\n" +
		"\t-s\tSqueeze multiple output characters of STRING2 into one character",
	Run: func(_ context.Context, c *tool.Call) error {
		remove, squeeze := c.Opts.Has("d"), c.Opts.Has("s")
		complement := c.Opts.Has("c") || c.Opts.Has("C")
		if len(c.Args) == 0 || len(c.Args) > 2 || len(c.Args) == 1 && !remove && !squeeze {
			return c.Usage()
		}
		from, err := parseSet(c.Args[0])
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		var to []byte
		if len(c.Args) == 2 {
			if to, err = parseSet(c.Args[1]); err != nil {
				return c.Fail(1, "%v", err)
			}
		}
		if complement {
			from = complementOf(from)
		}
		return translate(c, from, to, remove, squeeze)
	},
}

func complementOf(set []byte) (rest []byte) {
	for b := range 256 {
		if !slices.Contains(set, byte(b)) {
			rest = append(rest, byte(b))
		}
	}
	return rest
}

func translate(c *tool.Call, from, to []byte, remove, squeeze bool) error {
	var table [256]byte
	for i := range table {
		table[i] = byte(i)
	}
	var removed, squeezed [256]bool
	switch {
	case remove:
		for _, b := range from {
			removed[b] = true
		}
	case len(to) > 0:
		if c.Opts.Has("t") {
			from = from[:min(len(from), len(to))]
		}
		for i, b := range from {
			table[b] = to[min(i, len(to)-1)]
		}
	}
	if squeeze {
		set := to
		if len(to) == 0 {
			set = from
		}
		for _, b := range set {
			squeezed[b] = true
		}
	}
	buf := make([]byte, 32<<10)
	last := -1
	for {
		n, err := c.Stdin.Read(buf)
		out := buf[:0]
		for _, b := range buf[:n] {
			if removed[b] {
				continue
			}
			b = table[b]
			if squeezed[b] && last == int(b) {
				continue
			}
			last = int(b)
			out = append(out, b)
		}
		c.Out.Write(out)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// trClasses are the classes of tr in the C locale.
var trClasses = map[string]string{
	"lower": "a-z", "upper": "A-Z", "digit": "0-9", "alpha": "A-Za-z", "alnum": "0-9A-Za-z",
	"space": `\t\n\v\f\r `, "blank": `\t `, "xdigit": "0-9A-Fa-f", "punct": "!-/:-@[-`{-~",
	"print": " -~", "graph": "!-~", "cntrl": `\000-\037\177`,
}

// parseSet reads a string of tr: characters, escapes, ranges and classes.
func parseSet(s string) (set []byte, err error) {
	for i := 0; i < len(s); {
		if rest, ok := strings.CutPrefix(s[i:], "[:"); ok {
			name, _, closed := strings.Cut(rest, ":]")
			if class, known := trClasses[name]; closed && known {
				members, _ := parseSet(class)
				set = append(set, members...)
				i += len(name) + 4
				continue
			}
		}
		if i+4 < len(s) && s[i:i+2] == "[=" && s[i+3:i+5] == "=]" {
			set = append(set, s[i+2])
			i += 5
			continue
		}
		first, n := setChar(s[i:])
		i += n
		if i+1 < len(s) && s[i] == '-' {
			last, n := setChar(s[i+1:])
			if last < first {
				return nil, fmt.Errorf("bad range '%c-%c'", first, last)
			}
			for b := int(first); b <= int(last); b++ {
				set = append(set, byte(b))
			}
			i += 1 + n
			continue
		}
		set = append(set, first)
	}
	return set, nil
}

// setChar reads one character and returns how long it is written.
func setChar(s string) (b byte, n int) {
	if s[0] != '\\' || len(s) == 1 {
		return s[0], 1
	}
	if k := strings.IndexByte(`abfnrtv\`, s[1]); k >= 0 {
		return "\a\b\f\n\r\t\v\\"[k], 2
	}
	value := 0
	for n = 1; n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '7'; n++ {
		value = value*8 + int(s[n]-'0')
	}
	if n > 1 {
		return byte(value), n
	}
	return s[1], 2
}
