package text

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// readDump reads all files of a dump one after the other, from an offset and up to a length.
func readDump(c *tool.Call, files []string, skip, length string) ([]byte, int64, error) {
	var all bytes.Buffer
	if err := c.EachInput(files, func(in tool.Input) error {
		limited := io.Reader(in)
		if n, err := parseOffset(length); err == nil && length != "" {
			s, _ := parseOffset(skip)
			limited = io.LimitReader(in, n+s-int64(all.Len())) // /dev/urandom never ends.
		}
		_, err := io.Copy(&all, limited)
		return err
	}); err != nil {
		return nil, 0, err
	}
	data := all.Bytes()
	var start int64
	if skip != "" {
		n, err := parseOffset(skip)
		if err != nil {
			return nil, 0, c.Fail(1, "%v", err)
		}
		start = n
		data = data[min(n, int64(len(data))):]
	}
	if length != "" {
		n, err := parseOffset(length)
		if err != nil {
			return nil, 0, c.Fail(1, "%v", err)
		}
		data = data[:min(n, int64(len(data)))]
	}
	return data, start, nil
}

func parseOffset(s string) (int64, error) {
	if strings.HasPrefix(s, "0x") {
		return strconv.ParseInt(s[2:], 16, 64)
	}
	return tool.ParseSize(s)
}

// dumpRows calls f for every 16 bytes, and shows a star for rows that repeat the one before.
func dumpRows(c *tool.Call, data []byte, width int, all bool, f func(offset int, row []byte)) {
	starred := false
	for at := 0; at < len(data); at += width {
		row := data[at:min(at+width, len(data))]
		if !all && at >= width && len(row) == width && bytes.Equal(row, data[at-width:at]) {
			if !starred {
				c.Out.Line("*")
			}
			starred = true
			continue
		}
		starred = false
		f(at, row)
	}
}

func printable(row []byte) string {
	out := make([]byte, len(row))
	for i, b := range row {
		if out[i] = '.'; b >= ' ' && b < 0x7f {
			out[i] = b
		}
	}
	return string(out)
}

var hexdump = tool.Tool{
	Name: "hexdump", Holds: true, Options: "C,canonical b c d o x v n: s: e: f:",
	Args: "[-bcdoxCv] [-e FMT] [-f FMT_FILE] [-n LEN] [-s OFS] [FILE]...",
	Help: "Display FILEs (or stdin) in a user specified format",
	Run: func(_ context.Context, c *tool.Call) error {
		data, start, err := readDump(c, c.Args, c.Opts.Get("s", ""), c.Opts.Get("n", ""))
		if err != nil {
			return err
		}
		canonical := c.Opts.Has("C")
		offset := "%07x"
		if canonical {
			offset = "%08x"
		}
		dumpRows(c, data, 16, c.Opts.Has("v"), func(at int, row []byte) {
			c.Out.Printf(offset, int64(at)+start)
			if canonical {
				left := fmt.Sprintf("% x", row[:min(8, len(row))])
				right := fmt.Sprintf("% x", row[min(8, len(row)):])
				c.Out.Printf("  %-23s  %-23s  |%s|\n", left, right, printable(row))
				return
			}
			c.Out.Line(hexdumpRow(c.Opts.Last("b", "c", "d", "o", "x"), row))
		})
		if len(data) > 0 {
			c.Out.Printf(offset+"\n", int64(len(data))+start)
		}
		return nil
	},
}

func hexdumpRow(style string, row []byte) string {
	var b strings.Builder
	switch style {
	case "b":
		for _, x := range row {
			fmt.Fprintf(&b, " %03o", x)
		}
		return b.String()
	case "c":
		for _, x := range row {
			b.WriteString(" " + odChar(x))
		}
		return b.String()
	}
	format := map[string]string{"d": "   %05d", "o": "  %06o", "x": "    %04x", "": " %04x"}[style]
	for i := 0; i < len(row); i += 2 {
		word := append(append([]byte(nil), row[i:min(i+2, len(row))]...), 0)
		fmt.Fprintf(&b, format, binary.LittleEndian.Uint16(word))
	}
	return b.String()
}

// odChar writes a character in three columns, as od -c does.
func odChar(b byte) string {
	if k := strings.IndexByte("\x00\a\b\f\n\r\t\v", b); k >= 0 {
		return ` \` + `0abfnrtv`[k:k+1]
	}
	if b >= ' ' && b < 0x7f {
		return "  " + string(rune(b))
	}
	return fmt.Sprintf("%03o", b)
}

var od = tool.Tool{
	Name: "od", Holds: true,
	Options: "A:,address-radix t:,format N:,read-bytes j:,skip-bytes w::,width v a b c d i l o s x h",
	Args: "[-abcdfhilovxs] [-t TYPE] [-A RADIX] [-N SIZE] [-j SKIP] [-S MINSTR] [-w WIDTH] " +
		"[FILE]...",
	Help: "Print FILEs (or stdin) unambiguously, as octal bytes by default",
	Run: func(_ context.Context, c *tool.Call) error {
		data, start, err := readDump(c, c.Args, c.Opts.Get("j", ""), c.Opts.Get("N", ""))
		if err != nil {
			return err
		}
		types := c.Opts.All("t")
		for _, opt := range c.Opts.InOrder() {
			if long, ok := odTypes[opt.Name]; ok {
				types = append(types, long)
			}
		}
		if len(types) == 0 {
			types = []string{"o2"}
		}
		width, err := strconv.Atoi(c.Opts.Get("w", "16"))
		if err != nil || width < 1 {
			width = 32
		}
		address := map[string]string{"d": "%07d", "o": "%07o", "x": "%07x", "n": ""}[c.Opts.Get("A", "o")]
		show := func(at int64) string {
			if address == "" {
				return ""
			}
			return fmt.Sprintf(address, at)
		}
		dumpRows(c, data, width, c.Opts.Has("v"), func(at int, row []byte) {
			for i, t := range types {
				prefix := show(int64(at) + start)
				if i > 0 {
					prefix = strings.Repeat(" ", len(prefix))
				}
				c.Out.Line(prefix + odRow(t, row))
			}
		})
		if address != "" {
			c.Out.Line(show(int64(len(data)) + start))
		}
		return nil
	},
}

// odTypes are what the short options of od stand for.
var odTypes = map[string]string{
	"b": "o1", "c": "c", "d": "u2", "o": "o2", "x": "x2", "h": "x2", "i": "d4", "l": "d8", "s": "d2", "a": "a",
}

// odRow formats a row by a type such as x1, o2, d4 or c.
func odRow(kind string, row []byte) string {
	var b strings.Builder
	if kind == "" {
		kind = "o2"
	}
	if kind[0] == 'c' || kind[0] == 'a' {
		for _, x := range row {
			b.WriteString(" " + odChar(x))
		}
		return b.String()
	}
	size, err := strconv.Atoi(strings.TrimRight(kind[1:], "z"))
	if err != nil || size != 1 && size != 2 && size != 8 {
		size = 4
	}
	for i := 0; i < len(row); i += size {
		var word [8]byte
		copy(word[:], row[i:min(i+size, len(row))])
		value := binary.LittleEndian.Uint64(word[:])
		switch kind[0] {
		case 'x':
			fmt.Fprintf(&b, " %0*x", 2*size, value)
		case 'u':
			fmt.Fprintf(&b, " %*d", map[int]int{1: 3, 2: 5, 4: 10, 8: 20}[size], value)
		case 'd':
			shift := 64 - 8*size
			fmt.Fprintf(&b, " %*d", map[int]int{1: 4, 2: 6, 4: 11, 8: 20}[size], int64(value)<<shift>>shift)
		default:
			fmt.Fprintf(&b, " %0*o", map[int]int{1: 3, 2: 6, 4: 11, 8: 22}[size], value)
		}
	}
	return b.String()
}

// maxCols is how many bytes a line of xxd can have.
const maxCols = 256

var xxd = tool.Tool{
	Name: "xxd", Holds: true, Options: "p,ps,plain r,revert l:,len s:,seek c:,cols g: i u",
	Args: "[-pri] [-g N] [-c N] [-l LEN] [-s OFS] [FILE]", Help: "Hex dump FILE (or stdin)",
	Run: func(_ context.Context, c *tool.Call) error {
		files := c.Args[:min(1, len(c.Args))]
		if c.Opts.Has("r") {
			return xxdRevert(c, files)
		}
		data, start, err := readDump(c, files, c.Opts.Get("s", ""), c.Opts.Get("l", ""))
		if err != nil {
			return err
		}
		cols := 16
		if c.Opts.Has("p") {
			cols = 30
		}
		if n, err := strconv.Atoi(c.Opts.Get("c", "")); err == nil && n > 0 {
			if n > maxCols {
				return c.Fail(1, "invalid number of columns (max. %d)", maxCols)
			}
			cols = n
		}
		for at := 0; at < len(data); at += cols {
			row := data[at:min(at+cols, len(data))]
			if c.Opts.Has("p") {
				c.Out.Line(hex.EncodeToString(row))
				continue
			}
			var b strings.Builder
			for i, x := range row {
				if i%2 == 0 {
					b.WriteByte(' ')
				}
				fmt.Fprintf(&b, "%02x", x)
			}
			c.Out.Printf("%08x:%-*s  %s\n", int64(at)+start, cols*2+(cols+1)/2, b.String(), printable(row))
		}
		return nil
	},
}

// xxdRevert turns a dump back into bytes.
func xxdRevert(c *tool.Call, files []string) error {
	return c.EachLine(files, func(line []byte, _ bool) error {
		text := string(line)
		if !c.Opts.Has("p") {
			_, rest, ok := strings.Cut(text, ":")
			if !ok {
				return nil
			}
			text, _, _ = strings.Cut(rest, "  ")
		}
		data, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
		c.Out.Write(data)
		if err != nil {
			return c.Fail(1, "bad input")
		}
		return nil
	})
}
