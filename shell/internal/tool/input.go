package tool

import (
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// standardStream returns the number of the standard stream that a name such as /dev/stdin means.
func standardStream(name string) (fd int, ok bool) {
	switch name {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if n, found := strings.CutPrefix(name, dir); found {
			fd, err := strconv.Atoi(n)
			return fd, err == nil && fd <= 2
		}
	}
	return 0, false
}

// Open opens a file for reading; "-" is standard input. Reading from it ends the tool when the
// context does.
func (c *Call) Open(name string) (io.ReadCloser, error) {
	if fd, ok := standardStream(name); name == "-" || ok && fd == 0 {
		return &holding{io.NopCloser(c.Stdin), c, false}, nil
	}
	f, err := c.Env.FS.OpenFile(c.Env.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return &openFile{source{c.Out.ctx, c, stream.Reader(f)}, f}, nil
}

type openFile struct {
	source
	io.Closer
}

// Create opens a file for writing. "-" is not special.
func (c *Call) Create(name string, flag int, perm fs.FileMode) (io.WriteCloser, error) {
	if fd, ok := standardStream(name); ok {
		if fd == 2 {
			return nopWriteCloser{c.Env.Stderr}, nil
		}
		return nopWriteCloser{c.Out}, nil
	}
	f, err := c.Env.FS.OpenFile(c.Env.Path(name), flag, perm)
	if err != nil {
		return nil, err
	}
	return createdFile{&sink{c.Out.ctx, c, f}, f}, nil
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

type createdFile struct {
	*sink
	io.Closer
}

// Input is a file that a tool was told to read.
type Input struct {
	Name string
	io.Reader
}

// Hold states what is kept of the file.
func (in Input) Hold(n int) {
	if h, ok := in.Reader.(interface{ Hold(n int) }); ok {
		h.Hold(n)
	}
}

// EachInput calls f for every file, or for standard input if there are none. Files that cannot be
// opened or read are reported and passed over; another error of f ends it.
func (c *Call) EachInput(names []string, f func(in Input) error) error {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		r, err := c.Open(name)
		if err != nil {
			c.Warn("can't open '%s': %s", name, Reason(err))
			continue
		}
		err = f(Input{name, r})
		r.Close()
		if _, ok := err.(*fs.PathError); ok {
			c.Warn("read error: %s", Reason(err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// EachLine calls f for every line of the files, or of standard input. ended is false for a last line
// without newline. The line is only valid during the call.
func (c *Call) EachLine(names []string, f func(line []byte, ended bool) error) error {
	return c.EachInput(names, func(in Input) error {
		lines := stream.NewLines(in)
		for {
			line, ended, err := lines.Next()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := f(line, ended); err != nil {
				return err
			}
		}
	})
}

// ReadAll returns the whole of a file; "-" is standard input.
func (c *Call) ReadAll(name string) ([]byte, error) {
	r, err := c.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return c.Keep(r)
}

// Keep reads a source to its end, which counts as memory of the tool.
func (c *Call) Keep(r io.Reader) ([]byte, error) {
	if c.tool.Holds {
		return io.ReadAll(r) // It counts already.
	}
	return io.ReadAll(&holding{io.NopCloser(r), c, true})
}

// holding is an input of a tool that states what is kept of it: all, or what Hold is told.
type holding struct {
	io.ReadCloser
	c   *Call
	all bool
}

func (h *holding) Hold(n int) { h.c.Hold(n) }

func (h *holding) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if h.all {
		h.c.Hold(holdFactor * n)
	}
	return n, err
}

// Reader makes a source end the tool when the context does, as its own input does.
func (c *Call) Reader(r stream.ContextReader) io.Reader { return &source{c.Out.ctx, c, r} }
