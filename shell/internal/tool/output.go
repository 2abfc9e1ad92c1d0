package tool

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// Output is where a tool writes. It is buffered, and flushed whenever the tool is about to wait for
// input or to print a message. A write that fails ends the tool.
type Output struct {
	ctx context.Context
	buf *bufio.Writer
}

func newOutput(ctx context.Context, c *Call, w io.Writer) *Output {
	return &Output{ctx, bufio.NewWriterSize(&sink{ctx, c, w}, 32<<10)}
}

// sink writes through, unless the context has ended. It keeps the context because an io.Writer is
// given none.
type sink struct {
	ctx context.Context
	c   *Call
	w   io.Writer
}

func (s *sink) Write(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	s.c.Work(len(p))
	if w, ok := s.w.(stream.ContextWriter); ok {
		return w.WriteContext(s.ctx, p)
	}
	return s.w.Write(p)
}

// writeError is an error of the output, which tools name so.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func (o *Output) check(err error) {
	if err != nil {
		panic(stopped{writeError{err}})
	}
}

// Write never fails; it ends the tool instead.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.buf.Write(p)
	o.check(err)
	return n, nil
}

// WriteString is Write for a string.
func (o *Output) WriteString(s string) (int, error) {
	n, err := o.buf.WriteString(s)
	o.check(err)
	return n, nil
}

// WriteByte is Write for a byte.
func (o *Output) WriteByte(b byte) error {
	o.check(o.buf.WriteByte(b))
	return nil
}

// Printf formats like package fmt.
func (o *Output) Printf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

// Line writes a line.
func (o *Output) Line(s string) {
	o.WriteString(s)
	o.WriteByte('\n')
}

// Flush passes everything on.
func (o *Output) Flush() { o.check(o.buf.Flush()) }
