package stream

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
)

// pipeCapacity is the kernel's: 16 pages.
const pipeCapacity = 64 << 10

// pipe is a bounded buffer between a reader and a writer.
type pipe struct {
	mu           sync.Mutex
	buf          []byte
	readerClosed bool
	writerClosed bool
	changed      chan struct{} // closed, and replaced, when any of the above changed
}

// PipeReader is the end of a pipe that is read.
type PipeReader struct{ p *pipe }

// PipeWriter is the end of a pipe that is written.
type PipeWriter struct{ p *pipe }

var (
	_ ContextReader = (*PipeReader)(nil)
	_ ContextWriter = (*PipeWriter)(nil)
)

// NewPipe returns both ends of a pipe with the kernel's manners: a writer waits while it is full, and
// gets EPIPE once the reader is closed; a reader gets EOF once the writer is closed and everything
// was read. Both ends are safe for concurrent use, and so is closing them.
func NewPipe() (*PipeReader, *PipeWriter) {
	p := &pipe{changed: make(chan struct{})}
	return &PipeReader{p}, &PipeWriter{p}
}

// wake tells everybody who waits that something changed. It is called with p.mu held.
func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Read is ReadContext without an end.
func (r *PipeReader) Read(b []byte) (int, error) { return r.ReadContext(context.Background(), b) }

// ReadContext waits for data, the close of either end, or the end of ctx.
func (r *PipeReader) ReadContext(ctx context.Context, b []byte) (int, error) {
	p := r.p
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p.mu.Lock()
		switch {
		case p.readerClosed:
			p.mu.Unlock()
			return 0, os.ErrClosed
		case len(p.buf) > 0 || len(b) == 0:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			p.wake()
			p.mu.Unlock()
			return n, nil
		case p.writerClosed:
			p.mu.Unlock()
			return 0, io.EOF
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Close makes writers fail from now on.
func (r *PipeReader) Close() error {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	if !r.p.readerClosed {
		r.p.readerClosed, r.p.buf = true, nil
		r.p.wake()
	}
	return nil
}

// Write is WriteContext without an end.
func (w *PipeWriter) Write(b []byte) (int, error) { return w.WriteContext(context.Background(), b) }

// WriteContext waits until all of b is in the pipe, for the close of either end, or the end of ctx.
func (w *PipeWriter) WriteContext(ctx context.Context, b []byte) (n int, err error) {
	p := w.p
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		p.mu.Lock()
		switch {
		case p.writerClosed:
			p.mu.Unlock()
			return n, os.ErrClosed
		case p.readerClosed:
			p.mu.Unlock()
			return n, syscall.EPIPE
		}
		if room := pipeCapacity - len(p.buf); room > 0 && n < len(b) {
			c := min(room, len(b)-n)
			p.buf = append(p.buf, b[n:n+c]...)
			n += c
			p.wake()
		}
		changed := p.changed
		p.mu.Unlock()
		if n == len(b) {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Close ends the stream: the reader gets EOF after what is in the pipe.
func (w *PipeWriter) Close() error {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if !w.p.writerClosed {
		w.p.writerClosed = true
		w.p.wake()
	}
	return nil
}
