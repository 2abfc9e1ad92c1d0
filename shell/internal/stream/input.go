package stream

import (
	"context"
	"io"
	"io/fs"
	"sync"
)

// ContextReader is a reader whose reads can be abandoned. A read that is abandoned loses no data: a
// later one gets it.
type ContextReader interface {
	io.Reader
	ReadContext(ctx context.Context, p []byte) (int, error)
}

// ContextWriter is a writer whose writes can be abandoned.
type ContextWriter interface {
	io.Writer
	WriteContext(ctx context.Context, p []byte) (int, error)
}

// Reader returns src itself if its reads can be abandoned or never wait, as those of a regular file,
// and an [Input] of it otherwise.
func Reader(src io.Reader) ContextReader {
	switch s := src.(type) {
	case nil:
		return empty{}
	case ContextReader:
		return s
	case fs.File:
		if fi, err := s.Stat(); err == nil && (fi.Mode().IsRegular() || fi.IsDir()) {
			return prompt{s}
		}
	}
	return &Input{src: src, changed: make(chan struct{})}
}

type empty struct{}

func (empty) Read([]byte) (int, error)                         { return 0, io.EOF }
func (empty) ReadContext(context.Context, []byte) (int, error) { return 0, io.EOF }

// prompt is a source that never waits.
type prompt struct{ io.Reader }

func (r prompt) ReadContext(ctx context.Context, p []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return r.Read(p)
}

// inputChunk is how much an Input asks its source for.
const inputChunk = 4096

// Input reads a source that cannot be interrupted. A goroutine does the waiting, and outlives the
// readers that give up; what it gets is kept for those to come. It only runs while somebody wants
// data, so a source that nobody reads is left alone. Input is safe for concurrent use.
type Input struct {
	src io.Reader

	mu      sync.Mutex
	buf     []byte // read from src and not yet handed out
	err     error
	reading bool
	changed chan struct{} // closed, and replaced, when buf or err changed
}

var _ ContextReader = (*Input)(nil)

// Read is ReadContext without an end.
func (in *Input) Read(p []byte) (int, error) { return in.ReadContext(context.Background(), p) }

// ReadContext waits for data, the end of the source, or the end of ctx.
func (in *Input) ReadContext(ctx context.Context, p []byte) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		in.mu.Lock()
		if len(in.buf) > 0 || len(p) == 0 {
			n := copy(p, in.buf)
			in.buf = in.buf[n:]
			in.mu.Unlock()
			return n, nil
		}
		if in.err != nil {
			defer in.mu.Unlock()
			return 0, in.err
		}
		if !in.reading {
			in.reading = true
			go in.fetch()
		}
		changed := in.changed
		in.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (in *Input) fetch() {
	chunk := make([]byte, inputChunk)
	n, err := in.src.Read(chunk)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.buf, in.err, in.reading = append(in.buf, chunk[:n]...), err, false
	close(in.changed)
	in.changed = make(chan struct{})
}
