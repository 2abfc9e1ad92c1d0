package kit

import (
	"context"
	"net"
	"net/http"
	"time"
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

// Pinger is an optional power of a Network: an ICMP echo.
type Pinger interface {
	// Ping resolves a host and returns the round-trip time to it.
	Ping(ctx context.Context, host string) (net.IP, time.Duration, error)
}

// SocketLister is an optional power of a Network: what netstat shows.
type SocketLister interface {
	Sockets() []Socket
}

// Socket is an open socket of the program's host.
type Socket struct {
	Network string // "tcp" or "udp"
	Local   net.Addr
	Remote  net.Addr // nil unless connected
	State   string   // "LISTEN", "ESTABLISHED"; empty for UDP
}

// HTTPTransport returns a transport that dials through the program's network. It is the caller's
// to close its idle connections.
func (e *Env) HTTPTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = e.Net.DialContext
	t.Proxy = nil
	return t
}
