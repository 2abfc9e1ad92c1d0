package text

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var sortTool = tool.Tool{
	Name: "sort", Holds: true,
	Options: "n,numeric-sort g,general-numeric-sort h,human-numeric-sort V,version-sort M,month-sort " +
		"R,random-sort r,reverse u,unique f,ignore-case b,ignore-leading-blanks " +
		"d,dictionary-order i,ignore-nonprinting k:,key t:,field-separator o:,output s,stable " +
		"c,check m,merge z,zero-terminated S: T: parallel:",
	Args: "[-nrughMcszbdfiokt] [-o FILE] [-k START[.OFS][OPTS][,END[.OFS][OPTS]] [-t CHAR] " +
		"[FILE]...",
	UsageCode: 2,
	Help: "Sort lines of text\n" +
		"\n" +
		"\t-o FILE\tOutput to FILE\n" +
		"\t-c\tCheck whether input is sorted\n" +
		"\t-b\tIgnore leading blanks\n" +
		"\t-f\tIgnore case\n" +
		"\t-i\tIgnore unprintable characters\n" +
		"\t-n\tSort numbers\n" +
		"\t-g\tGeneral numerical sort\n" +
		"\t-h\tSort human readable numbers (2K 1G)\n" +
		"\t-M\tSort month\n" +
		"\t-V\tSort version\n" +
		"\t-t CHAR\tField separator\n" +
		"\t-k N[,M] Sort by Nth field\n" +
		"\t-r\tReverse sort order\n" +
		"\t-s\tStable (don't sort ties alphabetically)\n" +
		"\t-u\tSuppress duplicate lines\n" +
		"\t-z\tNUL terminated input and output",
	Run: func(_ context.Context, c *tool.Call) error {
		s, err := newSorter(c)
		if err != nil {
			return c.Fail(2, "%v", err)
		}
		sep := byte('\n')
		if c.Opts.Has("z") {
			sep = 0
		}
		var lines []string
		if err := c.EachInput(c.Args, func(in tool.Input) error {
			records := stream.NewRecords(in, sep)
			for {
				line, _, err := records.Next()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				lines = append(lines, string(line))
			}
		}); err != nil {
			return err
		}
		if c.Opts.Has("c") {
			return s.check(c, lines)
		}
		slices.SortStableFunc(lines, s.compare)
		if c.Opts.Has("u") {
			lines = slices.CompactFunc(lines, func(a, b string) bool { return s.byKeys(a, b) == 0 })
		}
		var out io.Writer = c.Out
		if name := c.Opts.Get("o", ""); name != "" {
			f, err := c.Create(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
			if err != nil {
				return c.Fail(2, "can't open '%s': %s", name, tool.Reason(err))
			}
			defer f.Close()
			out = f
		}
		var b bytes.Buffer
		for _, l := range lines {
			b.WriteString(l)
			b.WriteByte(sep)
		}
		_, err = out.Write(b.Bytes())
		return err
	},
}

// sorter compares lines by keys.
type sorter struct {
	keys      []sortKey
	separator string
	reverse   bool
	last      bool // ties are ordered by the whole line
}

// sortKey is a part of a line and how to compare it. Fields and characters count from 1; 0 is the
// end.
type sortKey struct {
	startField, startChar int
	endField, endChar     int
	orderFlags
}

type orderFlags struct {
	numeric, general, human, version, month, random bool
	reverse, fold, blanks, dictionary, printing     bool
}

func (o *orderFlags) set(flag byte) bool {
	field := map[byte]*bool{
		'n': &o.numeric, 'g': &o.general, 'h': &o.human, 'V': &o.version, 'M': &o.month, 'R': &o.random,
		'r': &o.reverse, 'f': &o.fold, 'b': &o.blanks, 'd': &o.dictionary, 'i': &o.printing,
	}[flag]
	if field == nil {
		return false
	}
	*field = true
	return true
}

func newSorter(c *tool.Call) (*sorter, error) {
	s := &sorter{separator: c.Opts.Get("t", ""), last: !c.Opts.Has("s") && !c.Opts.Has("u")}
	if s.separator == `\t` {
		s.separator = "\t"
	}
	if s.separator == `\0` {
		s.separator = "\x00"
	}
	if len([]rune(s.separator)) > 1 {
		return nil, fmt.Errorf("bad -t parameter '%s'", s.separator)
	}
	var global orderFlags
	for _, opt := range c.Opts.InOrder() {
		if len(opt.Name) == 1 {
			global.set(opt.Name[0])
		}
	}
	s.reverse = global.reverse
	for _, text := range c.Opts.All("k") {
		k, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		if k.orderFlags == (orderFlags{}) {
			k.orderFlags = global
		}
		s.keys = append(s.keys, k)
	}
	if len(s.keys) == 0 {
		s.keys = []sortKey{{startField: 1, startChar: 1, orderFlags: global}}
	}
	return s, nil
}

// parseKey reads 2, 2,3, 1.3,1.5 or 2nr,2.
func parseKey(text string) (k sortKey, err error) {
	start, end, _ := strings.Cut(text, ",")
	part := func(s string) (field, char int, err error) {
		digits := strings.TrimRight(s, "nghVMRrfbdi")
		for _, flag := range []byte(s[len(digits):]) {
			k.set(flag)
		}
		f, ch, hasChar := strings.Cut(digits, ".")
		if field, err = strconv.Atoi(f); err != nil || field < 1 {
			return 0, 0, fmt.Errorf("bad field spec '%s'", text)
		}
		if hasChar {
			if char, err = strconv.Atoi(ch); err != nil || char < 0 {
				return 0, 0, fmt.Errorf("bad field spec '%s'", text)
			}
		}
		return field, char, nil
	}
	if k.startField, k.startChar, err = part(start); err != nil {
		return k, err
	}
	k.startChar = max(k.startChar, 1)
	if end != "" {
		k.endField, k.endChar, err = part(end)
	}
	return k, err
}

// extract returns the part of a line that a key is about.
func (s *sorter) extract(k sortKey, line string) string {
	if k.startField == 1 && k.startChar == 1 && k.endField == 0 {
		if k.blanks {
			return strings.TrimLeft(line, " \t")
		}
		return line
	}
	bounds := s.fields(line)
	if k.startField > len(bounds) {
		return ""
	}
	begin := bounds[k.startField-1][0]
	if k.blanks {
		begin += len(line[begin:]) - len(strings.TrimLeft(line[begin:], " \t"))
	}
	begin = min(begin+k.startChar-1, len(line))
	end := len(line)
	if k.endField > 0 && k.endField <= len(bounds) {
		if end = bounds[k.endField-1][1]; k.endChar > 0 {
			at := bounds[k.endField-1][0]
			if k.blanks {
				at += len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
			}
			end = min(at+k.endChar, len(line))
		}
	}
	if end < begin {
		return ""
	}
	return line[begin:end]
}

// fields returns where the fields of a line begin and end. Without a separator, the blanks before a
// field belong to it.
func (s *sorter) fields(line string) (bounds [][2]int) {
	start := 0
	if s.separator != "" {
		for {
			i := strings.Index(line[start:], s.separator)
			if i < 0 {
				return append(bounds, [2]int{start, len(line)})
			}
			bounds = append(bounds, [2]int{start, start + i})
			start += i + len(s.separator)
		}
	}
	for i := 0; i < len(line); {
		start = i
		for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
			i++
		}
		for i < len(line) && line[i] != ' ' && line[i] != '\t' {
			i++
		}
		bounds = append(bounds, [2]int{start, i})
	}
	return bounds
}

func (s *sorter) byKeys(a, b string) int {
	for _, k := range s.keys {
		if order := k.order(s.extract(k, a), s.extract(k, b)); order != 0 {
			if k.reverse {
				return -order
			}
			return order
		}
	}
	return 0
}

func (s *sorter) compare(a, b string) int {
	if order := s.byKeys(a, b); order != 0 || !s.last {
		return order
	}
	if s.reverse {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
}

func (s *sorter) check(c *tool.Call, lines []string) error {
	for i := 1; i < len(lines); i++ {
		order := s.compare(lines[i-1], lines[i])
		if order > 0 || order == 0 && c.Opts.Has("u") {
			return c.Fail(1, "-:%d: disorder: %s", i+1, lines[i])
		}
	}
	return nil
}

var shuf = tool.Tool{
	Name: "shuf", Holds: true, Options: "n:,head-count e,echo i:,input-range r,repeat z",
	Args: "[-n NUM] [-e STRING... | -i L-H | [FILE]]", Help: "Randomly permute lines",
	Run: func(_ context.Context, c *tool.Call) error {
		var lines []string
		if r := c.Opts.Get("i", ""); r != "" {
			lo, hi, _ := strings.Cut(r, "-")
			a, errA := strconv.Atoi(lo)
			b, errB := strconv.Atoi(hi)
			if errA != nil || errB != nil || a > b || b-a > 10_000_000 {
				return c.Fail(1, "bad range '%s'", r)
			}
			for i := a; i <= b; i++ {
				lines = append(lines, strconv.Itoa(i))
			}
		} else if c.Opts.Has("e") {
			lines = c.Args
		} else if err := c.EachLine(c.Args, func(line []byte, _ bool) error {
			lines = append(lines, string(line))
			return nil
		}); err != nil {
			return err
		}
		rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		n, err := strconv.Atoi(c.Opts.Get("n", strconv.Itoa(len(lines))))
		if err != nil || n < 0 {
			return c.Fail(1, "invalid number '%s'", c.Opts.Get("n", ""))
		}
		for _, l := range lines[:min(n, len(lines))] {
			c.Out.Line(l)
		}
		return nil
	},
}
