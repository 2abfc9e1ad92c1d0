package vnet

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	clientAddr = netip.MustParseAddr("10.244.0.2")
	serverAddr = netip.MustParseAddr("10.244.1.3")
)

// pair returns a network with two hosts, each with one stack.
func pair(t testing.TB) (n *Network, client, server *Stack) {
	t.Helper()
	n = New(Config{
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		Virtual: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
	})
	return n, addStack(t, n, clientAddr), addStack(t, n, serverAddr)
}

func addStack(t testing.TB, n *Network, addr netip.Addr) *Stack {
	t.Helper()
	h, err := n.AddHost(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h.NewStack()
}

func listen(t testing.TB, s *Stack, addr string) net.Listener {
	t.Helper()
	l, err := s.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t testing.TB, s *Stack, addr string) net.Conn {
	t.Helper()
	c, err := s.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connected returns both ends of a connection.
func connected(t testing.TB, client, server *Stack) (c, s net.Conn) {
	t.Helper()
	l := listen(t, server, ":0")
	defer l.Close()
	c = dial(t, client, netip.AddrPortFrom(server.host.addr, uint16(l.Addr().(*net.TCPAddr).Port)).String())
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// routes is a Router that knows a fixed set of services.
type routes map[netip.AddrPort]any // netip.AddrPort or error

func (r routes) Route(_ netip.Addr, _ string, dst netip.AddrPort) (netip.AddrPort, error) {
	switch v := r[dst].(type) {
	case netip.AddrPort:
		return v, nil
	case error:
		return netip.AddrPort{}, v
	}
	return dst, nil
}

// admitFunc adapts a function to Admitter.
type admitFunc func(src netip.Addr, dst netip.AddrPort) bool

func (f admitFunc) Admit(src netip.Addr, _ string, dst netip.AddrPort) bool { return f(src, dst) }
