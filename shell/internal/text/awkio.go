package text

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// awkRun is the world of an awk program: its files and commands.
type awkRun struct {
	c       *tool.Call
	err     error // that ended the program
	target  io.Writer
	outputs map[string]*awkOutput
	inputs  map[string]*awkInput
	record  string
	status  int

	files   []string // arguments that are to be read
	reading io.ReadCloser
	name    string
	skip    bool // the rest of the file at hand
}

// awkOutput is a file or command the program writes to.
type awkOutput struct {
	w    io.WriteCloser
	wait func() int
}

// awkInput is a file or command the program reads from.
type awkInput struct {
	lines *stream.Lines
	close func() int
}

// Write is what print does: it goes to standard output, or where __output has switched to.
func (a *awkRun) Write(p []byte) (int, error) {
	if a.target != nil {
		return a.target.Write(p)
	}
	return a.c.Out.Write(p)
}

func (a *awkRun) flush() { a.c.Out.Flush() }

// close ends all files and commands, as the end of a program does.
func (a *awkRun) close() {
	for name := range a.outputs {
		a.closeStream(name)
	}
	for name := range a.inputs {
		a.closeStream(name)
	}
	if a.reading != nil {
		a.reading.Close()
	}
}

// functions are what the program calls, rewritten as it is.
func (a *awkRun) functions() map[string]any {
	return map[string]any{
		"__output": a.output, "__stdout": func() { a.target = nil },
		"__getline": a.getline, "__record": func() string { return a.record },
		"__status": func() int { return a.status }, "__one": func(...string) int { return 1 },
		"__system": a.system, "__close": a.closeStream, "__fflush": func(...string) int { a.flush(); return 0 },
		"__isfile": a.isFile, "__filename": func() string { return a.name }, "__nextfile": func() { a.skip = true },
		// What BusyBox and GNU add to POSIX.
		"systime":  func() float64 { return float64(time.Now().Unix()) },
		"strftime": a.strftime, "mktime": a.mktime, "gensub": gensub,
		"and": func(x, y int) int { return x & y }, "or": func(x, y int) int { return x | y },
		"xor": func(x, y int) int { return x ^ y }, "compl": func(x int) float64 { return float64(1<<53 - 1 - x) },
		"lshift": func(x, y int) int { return x << min(uint(y), 63) },
		"rshift": func(x, y int) int { return x >> min(uint(y), 63) },
	}
}

func (a *awkRun) fail(format string, args ...any) error {
	a.err = fmt.Errorf(format, args...)
	return a.err
}

// output makes print write to a file or command until __stdout.
func (a *awkRun) output(mode, name string) (int, error) {
	switch name {
	case "-", "/dev/stdout":
		a.target = nil
		return 0, nil
	case "/dev/stderr":
		a.flush()
		a.target = a.c.Env.Stderr
		return 0, nil
	}
	if o := a.outputs[name]; o != nil {
		a.target = o.w
		return 0, nil
	}
	o := &awkOutput{wait: func() int { return 0 }}
	if mode == "|" {
		r, w := stream.NewPipe()
		p, err := a.command(name, r, a.c.Env.Stdout)
		if err != nil {
			return 0, err
		}
		o.w = w
		o.wait = func() int {
			code := p.Wait()
			r.Close()
			return code
		}
	} else {
		flag := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if mode == ">>" {
			flag = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		f, err := a.c.Create(name, flag, 0o666)
		if err != nil {
			return 0, a.fail("can't redirect to '%s' (%s)", name, tool.Reason(err))
		}
		o.w = f
	}
	a.outputs[name] = o
	a.target = o.w
	return 0, nil
}

// command starts sh -c.
func (a *awkRun) command(text string, in io.Reader, out io.Writer) (kit.Process, error) {
	a.flush()
	child := a.c.Env.Child("sh", "-c", text)
	child.Stdin, child.Stdout, child.Terminal = in, out, nil
	p, err := a.c.Env.Procs.Start(a.c.Context(), child)
	if err != nil {
		return nil, a.fail("can't run '%s': %v", text, err)
	}
	return p, nil
}

func (a *awkRun) system(text string) (int, error) {
	p, err := a.command(text, a.c.Env.Stdin, a.c.Env.Stdout)
	if err != nil {
		return -1, err
	}
	return p.Wait(), nil
}

// getline reads a line for __record. It returns 1, 0 at the end, or -1 if there is nothing to read.
func (a *awkRun) getline(mode, name string) (int, error) {
	a.status = 0
	in := a.inputs[name]
	if in == nil {
		var err error
		if in, err = a.openInput(mode, name); err != nil {
			return 0, err
		}
		if in == nil {
			a.status = -1
			return -1, nil
		}
		a.inputs[name] = in
	}
	line, _, err := in.lines.Next()
	if err != nil {
		return 0, nil
	}
	a.record = string(line)
	return 1, nil
}

// openInput returns nil if there is no such file.
func (a *awkRun) openInput(mode, name string) (*awkInput, error) {
	if mode == "|" {
		r, w := stream.NewPipe()
		p, err := a.command(name, a.c.Env.Stdin, w)
		if err != nil {
			return nil, err
		}
		done := make(chan int, 1)
		go func() {
			done <- p.Wait()
			w.Close()
		}()
		return &awkInput{stream.NewLines(a.c.Reader(r)), func() int {
			r.Close()
			return <-done
		}}, nil
	}
	f, err := a.c.Open(name)
	if err != nil {
		return nil, nil
	}
	return &awkInput{stream.NewLines(f), func() int { f.Close(); return 0 }}, nil
}

func (a *awkRun) closeStream(name string) int {
	result := -1
	if o := a.outputs[name]; o != nil {
		delete(a.outputs, name)
		a.flush()
		o.w.Close()
		result = o.wait()
	}
	if in := a.inputs[name]; in != nil {
		delete(a.inputs, name)
		result = in.close()
	}
	return result
}

var awkAssignment = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*=`)

// isFile notes an argument that is to be read, and reports whether it has to be replaced.
func (a *awkRun) isFile(arg string) int {
	if arg == "" || awkAssignment.MatchString(arg) {
		return 0
	}
	a.files = append(a.files, arg)
	if arg == "-" {
		return 0
	}
	return 1
}

// mainInput is what the program takes for standard input: one file after the other, each with an end
// of its own.
func (a *awkRun) mainInput() io.Reader { return awkStdin{a} }

type awkStdin struct{ a *awkRun }

func (in awkStdin) Read(p []byte) (int, error) {
	a := in.a
	if a.skip && a.reading != nil {
		a.reading.Close()
		a.reading, a.skip = nil, false
	}
	if a.reading == nil {
		name := "-"
		if len(a.files) > 0 {
			name, a.files = a.files[0], a.files[1:]
		}
		f, err := a.c.Open(name)
		if err != nil {
			return 0, a.fail("can't open '%s': %s", name, tool.Reason(err))
		}
		if a.reading, a.name = f, name; name == "-" {
			a.name = ""
		}
	}
	n, err := a.reading.Read(p)
	if err != nil {
		a.reading.Close()
		if a.reading = nil; err != io.EOF {
			return n, a.fail("%s: %s", a.name, tool.Reason(err))
		}
	}
	return n, err
}

func (a *awkRun) strftime(args ...string) string {
	format, when := "%c", time.Now()
	if len(args) > 0 {
		format = args[0]
	}
	if len(args) > 1 {
		var seconds float64
		fmt.Sscan(args[1], &seconds)
		when = time.Unix(int64(seconds), 0)
	}
	return tool.Strftime(when.In(tool.Location(a.c.Env)), format)
}

// mktime reads "YYYY MM DD HH MM SS".
func (a *awkRun) mktime(text string) float64 {
	var y, mo, d, h, mi, s int
	if n, _ := fmt.Sscan(text, &y, &mo, &d, &h, &mi, &s); n < 6 {
		return -1
	}
	return float64(time.Date(y, time.Month(mo), d, h, mi, s, 0, tool.Location(a.c.Env)).Unix())
}

// gensub is GNU's: it replaces the how-th match, or all if that begins with g.
func gensub(expr, replacement, how, target string) (string, error) {
	re, err := regex.Compile(expr, regex.Extended, regex.Options{Escapes: true})
	if err != nil {
		return "", err
	}
	s := &substitution{nth: 1, global: strings.HasPrefix(how, "g") || strings.HasPrefix(how, "G")}
	if !s.global {
		fmt.Sscan(how, &s.nth)
		s.nth = max(s.nth, 1)
	}
	p := &sedParser{src: replacement + "\x00"}
	if s.parts, err = p.replacement(0); err != nil {
		return "", err
	}
	result, _ := s.apply(re, target)
	return result, nil
}
