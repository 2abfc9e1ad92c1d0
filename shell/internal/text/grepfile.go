package text

import (
	"bytes"
	"io"
	"strconv"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// numberedSize is what such a line takes beside its text.
const numberedSize = 64

// numbered is a line that may become the context of a match.
type numbered struct {
	number int
	offset int64
	text   string
}

// fileSearch is the search of one file.
type fileSearch struct {
	*grepper
	name    string
	count   int
	held    []numbered // lines before, that a match would show
	shown   int        // the number of the last line that was printed
	trailer int        // lines after the last match that are still to be printed
}

// searchFile searches one file. It reports whether grep can stop.
func (g *grepper) searchFile(name string, r io.Reader) (stop bool) {
	f := &fileSearch{grepper: g, name: name}
	lines := stream.NewRecords(r, g.separator)
	offset := int64(0)
	// Lines are only searched until the answer is known.
	answered := g.c.Opts.Has("q") || g.c.Opts.Has("l") || g.c.Opts.Has("L")
	for number := 1; ; number++ {
		if g.limit >= 0 && f.count >= g.limit && f.trailer == 0 {
			break
		}
		line, ended, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			g.fail(name, err)
			break
		}
		if bytes.IndexByte(line, 0) >= 0 && g.separator != 0 && g.c.Opts.Has("I") {
			return false
		}
		f.line(numbered{number, offset, string(line)})
		if offset += int64(len(line)); ended {
			offset++
		}
		if answered && f.count > 0 {
			break
		}
	}
	return f.finish()
}

// line looks at one line.
func (f *fileSearch) line(l numbered) {
	counting := f.c.Opts.Has("c") || f.c.Opts.Has("q") || f.c.Opts.Has("l") || f.c.Opts.Has("L")
	full := f.limit >= 0 && f.count >= f.limit
	if full || f.match(l.text) == f.c.Opts.Has("v") {
		switch {
		case counting:
		case f.trailer > 0:
			f.trailer--
			f.print(l, '-')
		case f.before > 0:
			f.c.Hold(numberedSize + len(l.text))
			if f.held = append(f.held, l); len(f.held) > f.before {
				f.c.Hold(-numberedSize - len(f.held[0].text))
				f.held = f.held[1:]
			}
		}
		return
	}
	f.count++
	f.found = true
	if counting {
		return
	}
	context := f.before > 0 || f.after > 0
	first := l.number
	if len(f.held) > 0 {
		first = f.held[0].number
	}
	if context && f.printed && (f.shown == 0 || first > f.shown+1) {
		f.c.Out.Line("--")
	}
	for _, h := range f.held {
		f.print(h, '-')
		f.c.Hold(-numberedSize - len(h.text))
	}
	f.held = nil
	f.print(l, ':')
	f.trailer = f.after
}

// print prints a line, or the parts of it that match. mark is what separates the prefixes.
func (f *fileSearch) print(l numbered, mark byte) {
	f.printed, f.shown = true, l.number
	if !f.c.Opts.Has("o") {
		text := l.text
		if f.colored() && mark == ':' && !f.c.Opts.Has("v") {
			text = f.paint(text)
		}
		f.prefix(l.number, l.offset, mark)
		f.c.Out.WriteString(text)
		f.c.Out.WriteByte(f.separator)
		return
	}
	if mark != ':' || f.c.Opts.Has("v") {
		return
	}
	for _, m := range f.find(l.text) {
		if m[0] == m[1] {
			continue
		}
		f.prefix(l.number, l.offset+int64(m[0]), mark)
		text := l.text[m[0]:m[1]]
		if f.colored() {
			text = colorMatch + text + colorEnd
		}
		f.c.Out.WriteString(text)
		f.c.Out.WriteByte(f.separator)
	}
}

// GNU's colours.
const (
	colorMatch = "\x1b[01;31m\x1b[K"
	colorEnd   = "\x1b[m\x1b[K"
)

func (f *fileSearch) colored() bool { return f.c.Opts.Get("color", "") == "always" }

func (f *fileSearch) paint(line string) string {
	out, at := "", 0
	for _, m := range f.find(line) {
		out += line[at:m[0]] + colorMatch + line[m[0]:m[1]] + colorEnd
		at = m[1]
	}
	return out + line[at:]
}

func (f *fileSearch) prefix(number int, offset int64, mark byte) {
	if f.names {
		f.c.Out.WriteString(f.name)
		if f.c.Opts.Has("Z") {
			f.c.Out.WriteByte(0)
		} else {
			f.c.Out.WriteByte(mark)
		}
	}
	if f.c.Opts.Has("n") {
		f.c.Out.WriteString(strconv.Itoa(number))
		f.c.Out.WriteByte(mark)
	}
	if f.c.Opts.Has("b") {
		f.c.Out.WriteString(strconv.FormatInt(offset, 10))
		f.c.Out.WriteByte(mark)
	}
}

// finish prints what is known once a file was read.
func (f *fileSearch) finish() (stop bool) {
	end := "\n"
	if f.c.Opts.Has("Z") {
		end = "\x00"
	}
	switch {
	case f.c.Opts.Has("q"):
		return f.count > 0
	case f.c.Opts.Has("l"):
		if f.count > 0 {
			f.c.Out.WriteString(f.name + end)
		}
	case f.c.Opts.Has("L"):
		if f.count == 0 {
			f.c.Out.WriteString(f.name + end)
			f.found = true
		}
	case f.c.Opts.Has("c"):
		f.prefixName()
		f.c.Out.Line(strconv.Itoa(f.count))
	}
	return false
}

func (f *fileSearch) prefixName() {
	if f.names {
		f.c.Out.WriteString(f.name + ":")
	}
}
