package cli

import (
	"bytes"
	"io"
	"sync"
)

// lines passes on what several processes write, each line in one piece.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// writer is for one of the processes. What it writes without an end of line is not passed on.
func (l *lines) writer() io.Writer { return &lineWriter{to: l} }

type lineWriter struct {
	to   *lines
	rest []byte // a line that is not whole yet
}

func (w *lineWriter) Write(b []byte) (int, error) {
	i := bytes.LastIndexByte(b, '\n') + 1
	if i == 0 {
		w.rest = append(w.rest, b...)
		return len(b), nil
	}
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	_, err := w.to.w.Write(append(w.rest, b[:i]...))
	w.rest = append([]byte(nil), b[i:]...)
	return len(b), err
}
