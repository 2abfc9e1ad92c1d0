package nesting

import "io"

// readerFrames is how much the stack of a parser may grow while it reads. A level of nesting takes
// from three to some twenty frames.
const readerFrames = 10_000

// NewReader returns a reader for a parser that calls itself: reading fails with ErrDepth once the
// stack has grown too far since NewReader was called. A parser that reads a kilobyte at a time cannot
// get far beyond that.
func NewReader(r io.Reader) io.Reader { return &reader{r, frames()} }

type reader struct {
	r    io.Reader
	base int
}

func (r *reader) Read(p []byte) (int, error) {
	if Deep(r.base + readerFrames) {
		return 0, ErrDepth
	}
	return r.r.Read(p)
}

// frames returns the depth of the stack, to the next power of two.
func frames() int {
	n := 256
	for Deep(n) {
		n *= 2
	}
	return n
}
