package interp

import (
	"context"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// file is an open file as descriptors refer to it. It is closed when the last of them is. It is safe
// for concurrent use.
type file struct {
	r     stream.ContextReader // nil if it cannot be read
	w     io.Writer            // nil if it cannot be written
	close func()
	refs  atomic.Int32
}

var (
	_ stream.ContextReader = (*file)(nil)
	_ stream.ContextWriter = (*file)(nil)
)

// newFile returns a file with one reference. Any argument may be nil.
func newFile(r io.Reader, w io.Writer, close func()) *file {
	f := &file{w: w, close: close}
	if r != nil {
		f.r = stream.Reader(r)
	}
	f.refs.Store(1)
	return f
}

func (f *file) retain() *file {
	f.refs.Add(1)
	return f
}

func (f *file) release() {
	if f.refs.Add(-1) == 0 && f.close != nil {
		f.close()
	}
}

func (f *file) Read(p []byte) (int, error) { return f.ReadContext(context.Background(), p) }

func (f *file) ReadContext(ctx context.Context, p []byte) (int, error) {
	if f.r == nil {
		return 0, syscall.EBADF
	}
	return f.r.ReadContext(ctx, p)
}

func (f *file) Write(p []byte) (int, error) { return f.WriteContext(context.Background(), p) }

func (f *file) WriteContext(ctx context.Context, p []byte) (int, error) {
	if f.w == nil {
		return 0, syscall.EBADF
	}
	if w, ok := f.w.(stream.ContextWriter); ok {
		return w.WriteContext(ctx, p)
	}
	return f.w.Write(p)
}

// Terminal returns the terminal that the file is, or nil.
func (f *file) Terminal() *tty.Terminal {
	for _, side := range []any{f.r, f.w} {
		if t, ok := side.(interface{ Terminal() *tty.Terminal }); ok {
			return t.Terminal()
		}
	}
	return nil
}

// lockedWriter lets the parts of a script write to one stream without mixing within a write.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// shareable makes a stream of the program safe for the concurrent use a shell makes of it.
func shareable(w io.Writer, mu *sync.Mutex) io.Writer {
	switch w.(type) {
	case *file, *stream.PipeWriter:
		return w
	}
	if tty.IsTerminal(w) {
		return w
	}
	return lockedWriter{mu, w}
}

// standardFiles are the descriptors a shell starts with.
func standardFiles(env *kit.Env) map[int]*file {
	out, errs := new(sync.Mutex), new(sync.Mutex)
	if t := reflect.TypeOf(env.Stdout); t != nil && t.Comparable() && env.Stdout == env.Stderr {
		errs = out
	}
	return map[int]*file{
		0: newFile(env.Stdin, nil, nil),
		1: newFile(nil, shareable(env.Stdout, out), nil),
		2: newFile(nil, shareable(env.Stderr, errs), nil),
	}
}

// setFD makes a descriptor refer to f, whose reference it takes over; nil closes it.
func (s *Shell) setFD(n int, f *file) {
	old := s.fds[n]
	if f == nil {
		delete(s.fds, n)
	} else {
		s.fds[n] = f
	}
	if old != nil {
		old.release()
	}
}

// fd returns what a descriptor refers to. One that is closed fails on every use.
func (s *Shell) fd(n int) *file {
	if f := s.fds[n]; f != nil {
		return f
	}
	return &file{}
}
