package kafka

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
)

// maxConns is how many clients are served at a time.
const maxConns = 500

// connBytes is what a connection takes besides what it carries.
const connBytes = 24 << 10

// merged is the one listener of kfake: it has the connections to all addresses, and those of the broker to itself.
// Its address is what clients are told.
type merged struct {
	conns   chan net.Conn
	ready   chan struct{} // closed when the broker can be used
	done    chan struct{}
	once    sync.Once
	sources []net.Listener
	addr    advertised
	open    atomic.Int64

	mu    sync.Mutex
	gates map[*gate]struct{}
}

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

func (m *merged) Addr() net.Addr { return m.addr }

func (m *merged) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *merged) Close() error {
	m.once.Do(func() {
		close(m.done)
		for _, ln := range m.sources {
			ln.Close()
		}
	})
	return nil
}

// hangUp closes all connections, which kfake leaves to those who wait for a client.
func (m *merged) hangUp() {
	m.mu.Lock()
	open := make([]*gate, 0, len(m.gates))
	for g := range m.gates {
		open = append(open, g)
	}
	m.mu.Unlock()
	for _, g := range open {
		g.Close()
	}
}

// dial connects the broker to itself. Nobody looks at what comes this way.
func (m *merged) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case m.conns <- there:
		return here, nil
	case <-m.done:
	case <-ctx.Done():
	}
	here.Close()
	there.Close()
	return nil, net.ErrClosed
}

// listen opens all addresses.
func (b *broker) listen(ctx context.Context, wg *sync.WaitGroup) (*merged, error) {
	m := &merged{
		conns: make(chan net.Conn), ready: make(chan struct{}), done: make(chan struct{}), gates: map[*gate]struct{}{},
		addr: advertised(net.JoinHostPort(b.settings.host, b.settings.port)),
	}
	add := func(address string, keys map[int16]bool) error {
		ln, err := b.env.Net.Listen("tcp", address)
		if err != nil {
			return err
		}
		m.sources = append(m.sources, ln)
		b.log.info(classAccept, "Awaiting socket connections on %s", ln.Addr())
		wg.Go(func() {
			select {
			case <-m.ready:
			case <-m.done:
				return
			}
			inlet.Serve(ctx, ln, func(c net.Conn) { b.admit(ctx, m, c, keys) }, func(err error) {
				b.log.fail(classAccept, "Error while accepting connection: %v", err)
			})
		})
		return nil
	}
	for _, a := range b.settings.listen {
		if err := add(a, served); err != nil {
			m.Close()
			return nil, err
		}
	}
	for _, a := range b.settings.controller {
		if err := add(a, servedByController); err != nil {
			m.Close()
			return nil, err
		}
	}
	return m, nil
}

// admit gives a connection to the broker, if there is room for it.
func (b *broker) admit(ctx context.Context, m *merged, c net.Conn, keys map[int16]bool) {
	if m.open.Add(1) > maxConns {
		m.open.Add(-1)
		c.Close()
		b.log.warn(classAccept, "Rejected connection from %s, there are %d", c.RemoteAddr(), maxConns)
		return
	}
	if b.holder.Add(connBytes) != nil {
		m.open.Add(-1)
		c.Close()
		return
	}
	g := newGate(ctx, b, c, keys)
	m.mu.Lock()
	m.gates[g] = struct{}{}
	m.mu.Unlock()
	select {
	case m.conns <- g:
	case <-m.done:
		g.Close()
	}
}

// forget is called once for each connection that was closed.
func (m *merged) forget(g *gate) {
	m.mu.Lock()
	delete(m.gates, g)
	m.mu.Unlock()
	m.open.Add(-1)
}
