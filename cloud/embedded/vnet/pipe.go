package vnet

import (
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	// window is how many bytes one direction of a connection holds before a writer has to wait.
	window = 256 << 10
	// pressure is how many bytes all connections may hold before windows shrink, as the kernel's tcp_mem
	// has it. There can be many connections that nobody reads from.
	pressure    = 128 << 20
	smallWindow = 4 << 10
)

// pipe is one direction of a connection: a bounded queue of segments with one end to write and one
// to read. Data that travels a disturbed path waits in it until it has arrived.
type pipe struct {
	path *path

	mu       sync.Mutex
	sends    fate // of what is sent for the first time
	resends  fate // of what is sent again, when the reader waits for it
	segments []*segment
	size     int  // bytes in segments
	ignored  bool // size no longer counts in what the network holds
	finished bool // the writer is done: the reader gets EOF after the last segment
	deaf     bool // the reader is gone: writing is pointless
	reset    bool // the connection was aborted

	readable chan struct{} // has a token when a reader should look again
	writable chan struct{} // has a token when a writer should look again
	writing  chan struct{} // holds a token while a Write is under way: writes do not interleave
}

// segment is data that was sent together.
type segment struct {
	data       []byte // what the reader has not taken yet
	arrived    bool
	at         time.Time // if not arrived: when it does, or is sent again
	tries      int       // transmissions lost so far
	generation uint64    // of the network, when it was last looked at
}

func newPipe(p *path) *pipe {
	return &pipe{
		path:     p,
		readable: make(chan struct{}, 1),
		writable: make(chan struct{}, 1),
		writing:  make(chan struct{}, 1),
	}
}

// grow changes the size.
func (p *pipe) grow(n int) {
	p.size += n
	if !p.ignored {
		p.path.net.held.Add(int64(n))
	}
}

// room is how much can be written. It may be nothing, or less if windows have shrunk.
func (p *pipe) room() int {
	if p.path.net.held.Load() > pressure {
		return max(0, smallWindow-p.size)
	}
	return window - p.size
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read fills b with what has arrived and waits if there is nothing. Its errors are io.EOF,
// ECONNRESET, and those of the caller's deadline and closed channel.
func (p *pipe) read(b []byte, d *deadline, closed <-chan struct{}) (int, error) {
	for {
		if isClosed(closed) {
			return 0, errClosed
		}
		if d.expired() {
			return 0, errDeadline
		}
		if len(b) == 0 {
			return 0, nil
		}
		p.mu.Lock()
		n, wait, err := p.take(b)
		p.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		var arrival <-chan time.Time
		var change <-chan struct{}
		if wait > 0 {
			arrival, change = time.After(wait), p.path.net.change()
		}
		select {
		case <-p.readable:
		case <-arrival:
		case <-change:
		case <-d.done():
		case <-closed:
		}
	}
}

// take copies arrived data to b. A zero result with a positive wait means that data is on its way.
func (p *pipe) take(b []byte) (n int, wait time.Duration, err error) {
	for n < len(b) && len(p.segments) > 0 {
		s := p.segments[0]
		if wait := p.transit(s); wait > 0 {
			if n > 0 {
				break
			}
			return 0, wait, nil
		}
		c := copy(b[n:], s.data)
		n += c
		s.data = s.data[c:]
		if len(s.data) == 0 {
			p.segments[0] = nil
			p.segments = p.segments[1:]
		}
	}
	p.grow(-n)
	switch {
	case n > 0:
		wake(p.writable)
	case p.reset:
		err = syscall.ECONNRESET
	case p.finished && len(p.segments) == 0:
		err = io.EOF
	}
	if len(p.segments) > 0 || p.finished || p.reset {
		wake(p.readable) // Another reader may be waiting for the rest.
	}
	return n, 0, err
}

// transit moves a segment along its path and returns how long it is still under way.
func (p *pipe) transit(s *segment) time.Duration {
	if s.arrived {
		return 0
	}
	rules := p.path.disturbances()
	generation, now := p.path.net.generation.Load(), time.Now()
	changed := s.generation != generation
	s.generation = generation
	switch {
	case changed && len(rules) == 0:
		s.arrived = true // The link was repaired.
	case now.Before(s.at) && !(changed && s.tries > 0):
		return s.at.Sub(now)
	case s.tries > 0 && p.path.dropped(rules, p.resends.dice(p.path, "tcp again"), len(s.data)):
		s.tries++
		s.at = now.Add(rto(s.tries))
		return s.at.Sub(now)
	default:
		s.arrived = true
	}
	return 0
}

// write queues b and waits while the window is full. It returns how much it queued; its errors are
// EPIPE, ECONNRESET, and those of the caller's deadline and closed channel.
func (p *pipe) write(b []byte, d *deadline, closed <-chan struct{}) (n int, err error) {
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-d.done():
		return 0, errDeadline
	case <-closed:
		return 0, errClosed
	}
	for {
		if isClosed(closed) {
			return n, errClosed
		}
		if d.expired() {
			return n, errDeadline
		}
		p.mu.Lock()
		switch {
		case p.reset:
			err = syscall.ECONNRESET
		case p.deaf, p.finished:
			err = syscall.EPIPE
		default:
			c := min(len(b)-n, p.room())
			p.put(b[n : n+c])
			n += c
		}
		p.mu.Unlock()
		if err != nil || n == len(b) {
			return n, err
		}
		select {
		case <-p.writable:
		case <-d.done():
		case <-closed:
		}
	}
}

// put queues a copy of b.
func (p *pipe) put(b []byte) {
	if len(b) == 0 {
		return
	}
	p.grow(len(b))
	wake(p.readable)
	rules := p.path.disturbances()
	if last := len(p.segments) - 1; last >= 0 && len(rules) == 0 {
		if s := p.segments[last]; s.arrived && cap(s.data)-len(s.data) >= len(b) {
			s.data = append(s.data, b...)
			return
		}
	}
	s := &segment{data: append(make([]byte, 0, max(len(b), 512)), b...), arrived: len(rules) == 0}
	if !s.arrived {
		d := p.sends.dice(p.path, "tcp")
		s.at = p.path.transit(rules, d, len(b), time.Now())
		s.generation = p.path.net.generation.Load()
		if p.path.dropped(rules, d, len(b)) {
			s.tries = 1
			s.at = s.at.Add(rto(1))
		}
	}
	p.segments = append(p.segments, s)
}

// finish ends the stream: the reader gets EOF after what is queued.
func (p *pipe) finish() {
	p.mu.Lock()
	p.finished = true
	p.mu.Unlock()
	wake(p.readable)
	wake(p.writable)
}

// deafen is called when the reader goes away. It reports whether data was lost by it.
func (p *pipe) deafen() (lost bool) {
	p.mu.Lock()
	lost = p.size > 0
	p.grow(-p.size)
	p.deaf, p.segments = true, nil
	p.mu.Unlock()
	wake(p.writable)
	return lost
}

// abort resets the connection: both sides fail from now on. Like with the kernel, what has arrived
// can still be read; what is under way is lost.
func (p *pipe) abort() {
	p.mu.Lock()
	p.reset = true
	for i, s := range p.segments {
		if p.transit(s) > 0 {
			for _, lost := range p.segments[i:] {
				p.grow(-len(lost.data))
			}
			p.segments = p.segments[:i]
			break
		}
	}
	if !p.ignored { // Nobody may ever read the rest.
		p.path.net.held.Add(-int64(p.size))
		p.ignored = true
	}
	p.mu.Unlock()
	wake(p.readable)
	wake(p.writable)
}
