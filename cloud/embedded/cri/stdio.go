package cri

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/kit"
)

// tee passes a program's output to the log and to everybody attached.
type tee struct {
	log    io.Writer
	resize chan kit.TerminalSize

	mu       sync.Mutex
	attached map[*attachment]struct{}
	closed   bool
}

// attachment is one attached client's side of a stream.
type attachment struct {
	w    io.Writer
	gone chan struct{} // closed when the stream has ended
}

func newTee(log io.Writer) *tee {
	return &tee{log: log, resize: make(chan kit.TerminalSize, 1), attached: map[*attachment]struct{}{}}
}

func (t *tee) Write(p []byte) (int, error) {
	n, err := t.log.Write(p)
	t.mu.Lock()
	clients := make([]*attachment, 0, len(t.attached))
	for a := range t.attached {
		clients = append(clients, a)
	}
	t.mu.Unlock()
	for _, a := range clients {
		if _, werr := a.w.Write(p); werr != nil {
			t.detach(a)
		}
	}
	return n, err
}

// attach adds a client. Its channel is closed when the program's output ends.
func (t *tee) attach(w io.Writer) *attachment {
	a := &attachment{w: w, gone: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		close(a.gone)
	} else {
		t.attached[a] = struct{}{}
	}
	return a
}

func (t *tee) detach(a *attachment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.attached[a]; ok {
		delete(t.attached, a)
		close(a.gone)
	}
}

func (t *tee) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.attached {
		close(a.gone)
	}
	t.attached, t.closed = map[*attachment]struct{}{}, true
}

// stdin is the input of a container that has one: what attached clients send, one after the other.
type stdin struct {
	once bool // the first client's end is the input's end
	r    *io.PipeReader
	w    *io.PipeWriter
}

func newStdin(once bool) *stdin {
	r, w := io.Pipe()
	return &stdin{once: once, r: r, w: w}
}

func (s *stdin) Read(p []byte) (int, error) { return s.r.Read(p) }

// feed copies a client's input until it ends.
func (s *stdin) feed(r io.Reader) {
	_, _ = io.Copy(s.w, r)
	if s.once {
		s.w.Close()
	}
}

// gate is output of one program to a stream that outlives it.
type gate struct {
	w    *tee
	shut atomic.Bool
}

func (g *gate) Write(p []byte) (int, error) {
	if g.shut.Load() {
		return 0, os.ErrClosed
	}
	return g.w.Write(p)
}
