package box

import "sync"

const (
	maxKept = 8 << 20  // bytes of an output that are kept from its beginning
	maxTail = 64 << 10 // bytes that are kept of the end of a longer one
)

// output collects what a command prints, both streams in the order they come. It takes nothing more
// once it is closed: what a command left behind may go on for a moment.
type output struct {
	mu     sync.Mutex
	head   []byte
	tail   []byte
	total  int64
	closed bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	o.total += int64(len(p))
	rest := p
	if room := maxKept - len(o.head); room > 0 {
		n := min(room, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	o.tail = append(o.tail, rest...)
	if len(o.tail) > 2*maxTail {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-maxTail:]...)
	}
	return len(p), nil
}

// close returns what was written: all of it, or the beginning and the end.
func (o *output) close() (text string, lost int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	lost = o.total - int64(len(o.head)) - int64(len(o.tail))
	return string(o.head) + string(o.tail), lost
}
