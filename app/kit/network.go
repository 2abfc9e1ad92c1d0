package kit

import (
	"context"
	"net"
	"net/http"
)

// Network is a program's way to other programs.
type Network interface {
	// Listen and ListenPacket announce on a local address, like their namesakes in package net.
	Listen(network, address string) (net.Listener, error)
	ListenPacket(network, address string) (net.PacketConn, error)
	// DialContext connects to host:port, resolving the host's name.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// LookupHost resolves a name to addresses. Its error is a *net.DNSError.
	LookupHost(ctx context.Context, host string) ([]string, error)
	// Addrs returns the program's own addresses, loopback not included.
	Addrs() []net.IP
}

// HTTPTransport returns a transport that dials through the program's network. It is the caller's
// to close its idle connections.
func (e *Env) HTTPTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = e.Net.DialContext
	t.Proxy = nil
	return t
}
