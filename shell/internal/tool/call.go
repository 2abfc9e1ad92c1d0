package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// Call is one use of a tool. It belongs to the goroutine that Run is called on.
type Call struct {
	Env   *kit.Env
	Name  string // for messages
	Args  []string
	Opts  Options
	Out   *Output
	Stdin io.Reader // ends the tool when the context does

	tool   *Tool
	status int
	meter  Meter
	holder *kit.Holder
}

func newCall(ctx context.Context, t *Tool, env *kit.Env) *Call {
	c := &Call{Env: env, Name: t.Name, tool: t, meter: Meter{CPU: env.CPU}, holder: kit.NewHolder(env)}
	c.Out = newOutput(ctx, c, env.Stdout)
	c.Stdin = &source{ctx, c, stream.Reader(env.Stdin)}
	return c
}

// Warn prints a message to standard error, after the tool's name, and makes the exit code at least 1.
func (c *Call) Warn(format string, args ...any) {
	c.Out.Flush()
	fmt.Fprintf(c.Env.Stderr, "%s: %s\n", c.Name, fmt.Sprintf(format, args...))
	c.status = max(c.status, 1)
}

// Note prints to standard error without a prefix.
func (c *Call) Note(format string, args ...any) {
	c.Out.Flush()
	fmt.Fprintf(c.Env.Stderr, format, args...)
}

// Fail prints a message and returns the error that ends the tool with a code.
func (c *Call) Fail(code int, format string, args ...any) error {
	c.Warn(format, args...)
	return kit.Exit(code)
}

// SetStatus sets the exit code of a tool that returns nil.
func (c *Call) SetStatus(code int) { c.status = code }

// Usage prints how the tool is used and returns the error that ends it.
func (c *Call) Usage() error {
	c.help(c.Env.Stderr)
	return kit.Exit(max(c.tool.UsageCode, 1))
}

func (c *Call) help(w io.Writer) {
	fmt.Fprintf(w, "%s multi-call binary.\n\nUsage: %s %s\n", Version, c.tool.Name, c.tool.Args)
	if c.tool.Help != "" {
		fmt.Fprintf(w, "\n%s\n", c.tool.Help)
	}
}

// Context is the context of the call, for where it cannot be passed.
func (c *Call) Context() context.Context { return c.Out.ctx }

// Stopped ends the tool if the context has ended.
func Stopped(ctx context.Context) {
	if ctx.Err() != nil {
		panic(stopped{ctx.Err()})
	}
}

// Work states that n bytes were worked upon, so that a tool that is busy uses processor time.
func (c *Call) Work(n int) {
	if err := c.meter.Spend(c.Out.ctx, time.Duration(n)*byteCost); err != nil {
		panic(stopped{err})
	}
}

// Reason is an error in the C library's words: "No such file or directory".
func Reason(err error) string {
	if err == nil {
		return "Success"
	}
	text := err.Error()
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		text = errno.Error()
	} else if p, ok := errors.AsType[*fs.PathError](err); ok {
		text = p.Err.Error()
	}
	r, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(r)) + text[n:]
}

// Base is the last element of a path, as basename(1) has it.
func Base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// Join puts a name below a directory without cleaning it, so that messages show what was typed.
func Join(dir, name string) string {
	if strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
