package vnet

import (
	"net"
	"net/netip"
	"sync"
)

// backlog is how many connections wait for Accept before more are dropped.
const backlog = 128

type listener struct {
	stack   *Stack
	binding binding
	addr    *net.TCPAddr
	queue   chan *Conn

	mu      sync.Mutex
	waiting *Conn // taken from the queue by an Accept that failed

	closeOnce sync.Once
	done      chan struct{}
}

func newListener(s *Stack, at netip.AddrPort) *listener {
	return &listener{
		stack:   s,
		binding: binding{at.Addr(), at.Port()},
		addr:    tcpAddr(at),
		queue:   make(chan *Conn, backlog),
		done:    make(chan struct{}),
	}
}

func (l *listener) Accept() (net.Conn, error) {
	if isClosed(l.done) {
		return nil, opError("accept", "tcp", nil, l.addr, errClosed)
	}
	decides := l.stack.calls.Load()
	if errno := l.stack.fault("accept"); errno != 0 {
		return nil, opError("accept", "tcp", nil, l.addr, sysError("accept4", errno))
	}
	if c := l.hold(nil); c != nil {
		return c, nil
	}
	select {
	case c := <-l.queue:
		if l.stack.calls.Load() == decides {
			return c, nil
		}
		// What was decided is out of date. The kernel decides when a connection is there, and leaves
		// it in the queue if the call fails.
		errno := l.stack.fault("accept")
		if errno == 0 {
			return c, nil
		}
		if c = l.hold(c); c == nil && isClosed(l.done) {
			c = l.hold(nil)
		}
		if c != nil {
			c.abort()
		}
		return nil, opError("accept", "tcp", nil, l.addr, sysError("accept4", errno))
	case <-l.done:
	}
	return nil, opError("accept", "tcp", nil, l.addr, errClosed)
}

// hold puts a connection before the queue, or none, and returns the one that was there.
func (l *listener) hold(c *Conn) *Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.waiting
	l.waiting = c
	return was
}

func (l *listener) Addr() net.Addr { return l.addr }

// Close stops listening and resets the connections nobody has accepted yet.
func (l *listener) Close() error {
	err := opError("close", "tcp", nil, l.addr, errClosed)
	l.closeOnce.Do(func() {
		err = nil
		h := l.stack.host
		h.mu.Lock()
		delete(h.listeners, l.binding)
		h.mu.Unlock()
		l.stack.forget(l)
		close(l.done)
		if c := l.hold(nil); c != nil {
			c.abort()
		}
		for {
			select {
			case c := <-l.queue:
				c.abort()
				continue
			default:
			}
			return
		}
	})
	return err
}

func (l *listener) abort() { _ = l.Close() }
