package page

import (
	"errors"
	"sync"

	"golang.org/x/term"
)

const (
	// maxKeys is how much may be typed, or pasted, ahead of what is read. What is more is lost.
	maxKeys = 64 << 10
	// maxPast is how many lines can be brought back.
	maxPast = 200
)

// past are the lines that were typed in a game, in whichever terminal. It is a [term.History].
type past struct {
	mu    sync.Mutex
	lines []string
}

var _ term.History = (*past)(nil)

// Add remembers a line.
func (p *past) Add(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.lines); line == "" || n > 0 && p.lines[n-1] == line {
		return
	}
	p.lines = append(p.lines, line)
	p.lines = p.lines[max(0, len(p.lines)-maxPast):]
}

// Len is how many there are.
func (p *past) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// At is one of them, the latest first.
func (p *past) At(i int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i >= len(p.lines) { // Another terminal has made room.
		return ""
	}
	return p.lines[len(p.lines)-1-i]
}

// keys is what was typed and not read yet. Reading waits for more.
type keys struct {
	mu     sync.Mutex
	more   *sync.Cond
	buf    []byte
	closed bool
}

func newKeys() *keys {
	k := &keys{}
	k.more = sync.NewCond(&k.mu)
	return k
}

func (k *keys) add(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buf = append(k.buf, b[:min(len(b), maxKeys-len(k.buf))]...)
	k.more.Signal()
}

// drop forgets what was typed ahead.
func (k *keys) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.buf = nil
}

func (k *keys) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.more.Signal()
}

// Read waits for keys.
func (k *keys) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.buf) == 0 && !k.closed {
		k.more.Wait()
	}
	if len(k.buf) == 0 || len(b) == 0 { // There is no room for an escape sequence that does not end.
		return 0, errHungUp
	}
	n := copy(b, k.buf)
	k.buf = k.buf[n:]
	return n, nil
}

var errHungUp = errors.New("the terminal was closed")
