package text

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// editor runs a sed script.
type editor struct {
	c       *tool.Call
	program []*sedCommand
	quiet   bool
	sep     byte

	in     *sedInput
	out    io.Writer
	ranges map[*sedCommand]*rangeState
	files  map[string]io.WriteCloser // of w
	reads  map[string]*sedInput      // of R
	last   *regex.Regexp

	pattern, hold string
	held          int  // bytes that were stated
	ended         bool // the line had a newline
	missing       bool // a newline is owed to the output
	queue         []func()
	substituted   bool
	exit          int
}

// rangeState is whether a command's two addresses have it on at the moment, and until when.
type rangeState struct {
	on  bool
	end int // a line number; -1 if the end is an expression
}

// How a cycle ends.
var (
	errCycleEnd  = errors.New("end of cycle")
	errRestart   = errors.New("start over without reading")
	errQuit      = errors.New("quit")
	errQuitQuiet = errors.New("quit without printing")
)

func newEditor(c *tool.Call, program []*sedCommand, quiet bool) *editor {
	ed := &editor{
		c: c, program: program, quiet: quiet, sep: '\n', out: c.Out,
		ranges: map[*sedCommand]*rangeState{}, files: map[string]io.WriteCloser{}, reads: map[string]*sedInput{},
	}
	if c.Opts.Has("z") {
		ed.sep = 0
	}
	return ed
}

func (ed *editor) close() {
	if ed.in != nil {
		ed.in.close()
	}
	for _, f := range ed.files {
		f.Close()
	}
	for _, r := range ed.reads {
		r.close()
	}
}

func (ed *editor) run(files []string) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	var err error
	if ed.c.Opts.Has("i") {
		for _, name := range files {
			if err = ed.inPlace(name); err != nil {
				break
			}
		}
	} else if ed.c.Opts.Has("s") {
		for _, name := range files {
			if err = ed.stream([]string{name}); err != nil {
				break
			}
		}
	} else {
		err = ed.stream(files)
	}
	if err == errQuit || err == errQuitQuiet {
		return kit.Exit(ed.exit)
	}
	return err
}

// inPlace edits one file.
func (ed *editor) inPlace(name string) error {
	env := ed.c.Env
	fi, err := env.FS.Stat(env.Path(name))
	if err != nil {
		ed.c.Warn("%s: %s", name, tool.Reason(err))
		return nil
	}
	if !fi.Mode().IsRegular() {
		ed.c.Warn("couldn't edit %s: not a regular file", name)
		return nil
	}
	b := kept{c: ed.c}
	ed.out = &b
	ed.missing = false
	runErr := ed.stream([]string{name})
	if runErr == errQuit || runErr == errQuitQuiet {
		io.Copy(&b, ed.in.rest()) // What was not edited stays.
	}
	if suffix := ed.c.Opts.Get("i", ""); suffix != "" {
		backup := tool.Join(dirOf(name), strings.ReplaceAll(suffix, "*", tool.Base(name)))
		if !strings.Contains(suffix, "*") {
			backup = name + suffix
		}
		if err := env.FS.Rename(env.Path(name), env.Path(backup)); err != nil {
			return ed.c.Fail(4, "can't rename '%s': %s", name, tool.Reason(err))
		}
	}
	f, err := env.FS.OpenFile(env.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fi.Mode().Perm())
	if err != nil {
		return ed.c.Fail(4, "couldn't open file %s: %s", name, tool.Reason(err))
	}
	defer f.Close()
	if _, err := f.Write(b.text); err != nil {
		return ed.c.Fail(4, "write error: %s", tool.Reason(err))
	}
	return runErr
}

// kept is output that is kept in memory.
type kept struct {
	c    *tool.Call
	text []byte
}

func (k *kept) Write(p []byte) (int, error) {
	k.c.Hold(2 * len(p))
	k.text = append(k.text, p...)
	return len(p), nil
}

func dirOf(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i+1]
	}
	return "./"
}

// stream edits files as if they were one.
func (ed *editor) stream(files []string) error {
	if ed.in != nil {
		ed.in.close()
	}
	ed.in = newSedInput(ed.c, files, ed.sep)
	restart := false
	for {
		if !restart {
			if !ed.next() {
				return nil
			}
		}
		ed.substituted = false
		err := ed.cycle()
		restart = err == errRestart
		if !restart && err != errQuitQuiet && (err == nil || err == errQuit) && !ed.quiet {
			ed.print(ed.pattern)
		}
		ed.flushQueue()
		if err == errQuit || err == errQuitQuiet || err != nil && err != errCycleEnd && err != errRestart {
			return err
		}
	}
}

// next reads the next line into the pattern space.
func (ed *editor) next() bool {
	line, ended, ok := ed.in.next()
	if ok {
		ed.pattern, ed.ended = line, ended
	}
	return ok
}

// print writes a line. A newline that the input lacks is only written if more output follows.
func (ed *editor) print(line string) {
	ed.settle()
	io.WriteString(ed.out, line)
	if ed.ended || !ed.in.atEnd() {
		ed.out.Write([]byte{ed.sep})
	} else {
		ed.missing = true
	}
}

// write writes a line that always ends.
func (ed *editor) write(line string) {
	ed.settle()
	io.WriteString(ed.out, line+string(ed.sep))
}

func (ed *editor) settle() {
	if ed.missing {
		ed.missing = false
		ed.out.Write([]byte{ed.sep})
	}
}

// flushQueue writes what a and r have put off.
func (ed *editor) flushQueue() {
	for _, f := range ed.queue {
		f()
	}
	ed.queue = nil
}

// selects reports whether a command's addresses choose the line at hand.
func (ed *editor) selects(c *sedCommand) bool {
	if c.first == nil {
		return true
	}
	if c.second == nil {
		return ed.matches(c.first)
	}
	st := ed.ranges[c]
	if st == nil {
		st = &rangeState{on: c.first.kind == atLine && c.first.line == 0, end: -1}
		ed.ranges[c] = st
	}
	line := ed.in.line
	if !st.on {
		if !ed.matches(c.first) {
			return false
		}
		st.on, st.end = true, -1
		switch c.second.kind {
		case atLine:
			st.end = c.second.line
		case linesAfter:
			st.end = line + c.second.line
		case multipleOf:
			if st.end = line; c.second.line > 0 {
				st.end = (line + c.second.line - 1) / c.second.line * c.second.line
			}
		case atLast:
			st.on = !ed.in.atEnd()
		}
		if st.end >= 0 && st.end <= line {
			st.on = false // One line at least.
		}
		return true
	}
	switch {
	case st.end >= 0 && line > st.end:
		st.on = false
		return ed.matches(c.first)
	case st.end >= 0 && line == st.end, st.end < 0 && ed.matches(c.second):
		st.on = false
	}
	return true
}

func (ed *editor) matches(a *sedAddress) bool {
	switch a.kind {
	case atLine:
		return ed.in.line == a.line
	case atLast:
		return ed.in.atEnd()
	case atStep:
		if a.step <= 0 {
			return ed.in.line == a.line
		}
		return ed.in.line >= a.line && (ed.in.line-a.line)%a.step == 0
	case atRegex:
		re := ed.remember(a.re)
		return re != nil && re.Match(ed.pattern)
	}
	return false
}

// remember returns re, or the last expression if it is empty.
func (ed *editor) remember(re *regex.Regexp) *regex.Regexp {
	if re != nil {
		ed.last = re
	}
	return ed.last
}
