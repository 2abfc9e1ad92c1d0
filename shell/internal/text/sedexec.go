package text

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// sedStep is what a command costs, in bytes of work: a loop of them uses time.
const sedStep = 200

// maxSedSpace is how much text a script may keep, in bytes. A substitution can multiply what there is.
const maxSedSpace = 64 << 20

// keep states what the script holds, and fails if that is too much.
func (ed *editor) keep() error {
	n := len(ed.pattern) + len(ed.hold)
	if n > ed.held {
		ed.c.Hold(n - ed.held)
		ed.held = n
	}
	if n > maxSedSpace {
		return ed.c.Fail(4, "couldn't allocate memory")
	}
	return nil
}

// cycle runs the script on the line at hand.
func (ed *editor) cycle() error {
	for at := 0; at < len(ed.program); at++ {
		tool.Stopped(ed.c.Context())
		ed.c.Work(sedStep)
		if err := ed.keep(); err != nil {
			return err
		}
		c := ed.program[at]
		if ed.selects(c) == c.negate {
			if c.name == '{' {
				at = c.target
			}
			continue
		}
		switch c.name {
		case '{', '}', ':':
		case 'b':
			at = c.target - 1
		case 't':
			if ed.substituted {
				ed.substituted = false
				at = c.target - 1
			}
		case 'T':
			if !ed.substituted {
				at = c.target - 1
			}
			ed.substituted = false
		default:
			if err := ed.execute(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ed *editor) execute(c *sedCommand) error {
	switch c.name {
	case '=':
		ed.write(fmt.Sprint(ed.in.line))
	case 'F':
		ed.write(ed.in.name())
	case 'a':
		ed.queue = append(ed.queue, func() { ed.write(c.text) })
	case 'i':
		ed.write(c.text)
	case 'c':
		return ed.change(c)
	case 'd':
		return errCycleEnd
	case 'D':
		_, rest, ok := strings.Cut(ed.pattern, "\n")
		if !ok {
			return errCycleEnd
		}
		ed.pattern = rest
		return errRestart
	case 'g':
		ed.pattern = ed.hold
	case 'G':
		ed.pattern += "\n" + ed.hold
	case 'h':
		ed.hold = ed.pattern
	case 'H':
		ed.hold += "\n" + ed.pattern
	case 'x':
		ed.pattern, ed.hold = ed.hold, ed.pattern
	case 'l':
		ed.write(unambiguous(ed.pattern))
	case 'n', 'N':
		return ed.append(c.name == 'N')
	case 'p':
		ed.print(ed.pattern)
	case 'P':
		first, _, _ := strings.Cut(ed.pattern, "\n")
		ed.write(first)
	case 'q', 'Q':
		if ed.exit = c.number; c.name == 'Q' {
			return errQuitQuiet
		}
		return errQuit
	case 'r':
		ed.queue = append(ed.queue, func() { ed.include(c.text) })
	case 'R':
		ed.includeLine(c.text)
	case 's':
		return ed.substitute(c.sub)
	case 'w':
		return ed.writeTo(c.text, ed.pattern)
	case 'W':
		first, _, _ := strings.Cut(ed.pattern, "\n")
		return ed.writeTo(c.text, first)
	case 'y':
		ed.pattern = strings.Map(func(r rune) rune {
			if to, ok := c.table[r]; ok {
				return to
			}
			return r
		}, ed.pattern)
	case 'z':
		ed.pattern = ""
	}
	return nil
}

// change prints its text once for a range, at its end.
func (ed *editor) change(c *sedCommand) error {
	if c.second == nil || c.negate || !ed.ranges[c].on || ed.in.atEnd() {
		ed.write(c.text)
	}
	return errCycleEnd
}

// append reads the next line, after printing the one at hand (n) or in addition to it (N).
func (ed *editor) append(add bool) error {
	if ed.in.atEnd() {
		return errQuit // GNU prints the pattern space when there is no next line.
	}
	if !add && !ed.quiet {
		ed.print(ed.pattern)
	}
	ed.flushQueue()
	old := ed.pattern
	ed.next()
	if add {
		ed.pattern = old + "\n" + ed.pattern
	}
	return nil
}

func (ed *editor) substitute(s *substitution) error {
	re := ed.remember(s.re)
	if re == nil {
		return ed.c.Fail(1, "no previous regexp")
	}
	result, done := s.apply(re, ed.pattern)
	if s.full {
		return ed.c.Fail(4, "couldn't allocate memory")
	}
	if !done {
		return nil
	}
	ed.pattern, ed.substituted = result, true
	if s.print {
		ed.print(ed.pattern)
	}
	if s.file != "" {
		return ed.writeTo(s.file, ed.pattern)
	}
	return nil
}

// include is r: a file that cannot be read is no error.
func (ed *editor) include(name string) {
	data, err := ed.c.ReadAll(name)
	if err != nil || len(data) == 0 {
		return
	}
	ed.settle()
	ed.out.Write(data)
	if data[len(data)-1] != ed.sep {
		ed.missing = true
	}
}

// includeLine is R: the next line of a file.
func (ed *editor) includeLine(name string) {
	in := ed.reads[name]
	if in == nil {
		in = newSedInput(ed.c, []string{name}, ed.sep)
		in.silent = true
		ed.reads[name] = in
	}
	if line, _, ok := in.next(); ok {
		ed.queue = append(ed.queue, func() { ed.write(line) })
	}
}

func (ed *editor) writeTo(name, line string) error {
	switch name {
	case "/dev/stdout":
		ed.write(line)
		return nil
	case "/dev/stderr":
		ed.c.Note("%s\n", line)
		return nil
	}
	f := ed.files[name]
	if f == nil {
		var err error
		if f, err = ed.c.Create(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666); err != nil {
			return ed.c.Fail(4, "couldn't open file %s: %s", name, tool.Reason(err))
		}
		ed.files[name] = f
	}
	_, err := io.WriteString(f, line+string(ed.sep))
	return err
}

// unambiguous writes a line as l does.
func unambiguous(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if k := strings.IndexByte("\a\b\f\n\r\t\v\\", c); k >= 0 {
			b.WriteString(`\` + `abfnrtv\`[k:k+1])
		} else if c < ' ' || c >= 0x7f {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "$"
}
