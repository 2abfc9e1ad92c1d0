package box

import (
	"bytes"
	"io"
)

// hider takes a text out of a stream, wherever the stream is cut: the scratch directory out of what
// programs print, which leaves the agent's own paths.
type hider struct {
	w    io.Writer
	what []byte
	held []byte // the end of what was written, which may be a part of it
	err  error
}

func (h *hider) Write(p []byte) (int, error) {
	if h.err != nil {
		return 0, h.err
	}
	data := bytes.ReplaceAll(append(h.held, p...), h.what, nil)
	keep := overlap(data, h.what)
	h.held = bytes.Clone(data[len(data)-keep:])
	if len(data) > keep {
		if _, h.err = h.w.Write(data[:len(data)-keep]); h.err != nil {
			return 0, h.err
		}
	}
	return len(p), nil
}

// flush writes what was held back.
func (h *hider) flush() {
	if len(h.held) > 0 && h.err == nil {
		_, h.err = h.w.Write(h.held)
	}
	h.held = nil
}

// overlap is the length of the longest end of data that is a proper beginning of what.
func overlap(data, what []byte) int {
	for n := min(len(data), len(what)-1); n > 0; n-- {
		if bytes.Equal(data[len(data)-n:], what[:n]) {
			return n
		}
	}
	return 0
}
