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
	if !isClosed(l.done) {
		select {
		case c := <-l.queue:
			return c, nil
		case <-l.done:
		}
	}
	return nil, opError("accept", "tcp", nil, l.addr, errClosed)
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
