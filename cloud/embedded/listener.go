package embedded

import (
	"net"
	"sync"
)

// listeners accepts from several listeners, so that one server serves the host's loopback and the
// cluster's network alike.
type listeners struct {
	all   []net.Listener
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func listenAll(all ...net.Listener) *listeners {
	l := &listeners{all: all, conns: make(chan net.Conn), done: make(chan struct{})}
	for _, in := range all {
		go func() {
			for {
				c, err := in.Accept()
				if err != nil {
					return
				}
				select {
				case l.conns <- c:
				case <-l.done:
					c.Close()
					return
				}
			}
		}()
	}
	return l
}

func (l *listeners) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Addr returns the first listener's address.
func (l *listeners) Addr() net.Addr { return l.all[0].Addr() }

func (l *listeners) Close() error {
	l.once.Do(func() {
		close(l.done)
		for _, in := range l.all {
			in.Close()
		}
	})
	return nil
}
