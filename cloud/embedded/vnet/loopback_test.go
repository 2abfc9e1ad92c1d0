package vnet

import (
	"net/netip"
	"testing"
)

// A router may lead a host's loopback address elsewhere, as a host port bound to it does. The other
// side sees the host.
func TestRoutedLoopback(t *testing.T) {
	n, client, server := pair(t)
	l := listen(t, server, ":8080")
	local := netip.MustParseAddrPort("127.0.0.1:80")
	n.SetRouter(routes{local: endpoint})
	c := dial(t, client, local.String())
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RemoteAddr().String(); got != local.String() {
		t.Errorf("the client sees %s, want %s", got, local)
	}
	if got := s.LocalAddr().String(); got != endpoint.String() {
		t.Errorf("the server sees itself as %s, want %s", got, endpoint)
	}
	if got := netip.MustParseAddrPort(s.RemoteAddr().String()).Addr(); got != client.Host().Addr() {
		t.Errorf("the server sees %s, want %s", got, client.Host().Addr())
	}
}
