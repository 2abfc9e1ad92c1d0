package vnet

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

const (
	maxDatagram = 65507 // bytes of payload UDP can carry
	packetQueue = 256   // datagrams a socket holds before it drops more
)

// PacketConn is a UDP socket. One that was dialled also has the methods of net.Conn. It is safe for
// concurrent use.
type PacketConn struct {
	stack   *Stack
	binding binding
	local   *net.UDPAddr
	remote  netip.AddrPort // of a dialled socket; else zero

	readDeadline, writeDeadline deadline

	mu       sync.Mutex
	queue    []datagram
	refused  bool                              // an ICMP port-unreachable came back
	backends map[netip.AddrPort]netip.AddrPort // service address -> where its datagrams go
	services map[netip.AddrPort]netip.AddrPort // the reverse, to translate replies

	readable  chan struct{}
	closeOnce sync.Once
	closed    chan struct{}
}

var (
	_ net.PacketConn = (*PacketConn)(nil)
	_ net.Conn       = (*PacketConn)(nil)
)

// ListenPacket opens a UDP socket on a local numeric address; port 0 picks a free one.
func (s *Stack) ListenPacket(network, address string) (net.PacketConn, error) {
	if network != "udp" && network != "udp4" {
		return nil, opError("listen", network, nil, nil, net.UnknownNetworkError(network))
	}
	at, err := parse(network, address)
	if err != nil {
		return nil, opError("listen", network, nil, nil, err)
	}
	err = s.check("socket", "bind")
	var c *PacketConn
	if err == nil {
		c, err = s.bindPacket(at, netip.AddrPort{})
	}
	if err != nil {
		return nil, opError("listen", "udp", nil, udpAddr(at), err)
	}
	return c, nil
}

func (s *Stack) dialUDP(to netip.AddrPort) (net.Conn, error) {
	local := s.host.addr
	if to.Addr().IsLoopback() {
		local = to.Addr()
	}
	err := s.check("socket", "connect")
	var c *PacketConn
	if err == nil {
		c, err = s.bindPacket(netip.AddrPortFrom(local, 0), to)
	}
	if err != nil {
		return nil, opError("dial", "udp", nil, udpAddr(to), err)
	}
	return c, nil
}

func (s *Stack) bindPacket(at, remote netip.AddrPort) (*PacketConn, error) {
	h := s.host
	if !h.bindable(at.Addr()) {
		return nil, sysError("bind", syscall.EADDRNOTAVAIL)
	}
	h.mu.Lock()
	taken := func(port uint16) bool {
		return h.packets[binding{at.Addr(), port}] != nil || h.packets[binding{port: port}] != nil
	}
	port := at.Port()
	if port == 0 {
		port, _ = h.freePort(taken)
	}
	if port == 0 || taken(port) {
		h.mu.Unlock()
		return nil, sysError("bind", syscall.EADDRINUSE)
	}
	c := &PacketConn{
		stack:    s,
		binding:  binding{at.Addr(), port},
		local:    udpAddr(netip.AddrPortFrom(at.Addr(), port)),
		remote:   remote,
		backends: map[netip.AddrPort]netip.AddrPort{},
		services: map[netip.AddrPort]netip.AddrPort{},
		readable: make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	h.packets[c.binding] = c
	h.mu.Unlock()
	if !s.remember(c) {
		return nil, sysError("bind", syscall.ENETDOWN)
	}
	return c, nil
}

// source is the address the socket's datagrams carry when sent to dst.
func (c *PacketConn) source(dst netip.Addr) netip.AddrPort {
	switch {
	case dst.IsLoopback():
		return netip.AddrPortFrom(dst, c.binding.port)
	default:
		return netip.AddrPortFrom(c.stack.host.addr, c.binding.port)
	}
}

// ReadFrom reads one datagram; what does not fit in b is lost.
func (c *PacketConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.receive(b)
	if err != nil {
		return 0, nil, c.failure("read", err)
	}
	return n, net.UDPAddrFromAddrPort(from), nil
}

// WriteTo sends b as one datagram.
func (c *PacketConn) WriteTo(b []byte, addr net.Addr) (int, error) {
	if c.remote.IsValid() {
		return 0, opError("write", "udp", c.local, addr, net.ErrWriteToConnected)
	}
	u, ok := addr.(*net.UDPAddr)
	if !ok {
		return 0, opError("write", "udp", c.local, addr, syscall.EINVAL)
	}
	to := u.AddrPort()
	if err := c.send(b, netip.AddrPortFrom(to.Addr().Unmap(), to.Port())); err != nil {
		return 0, opError("write", "udp", c.local, addr, err)
	}
	return len(b), nil
}

func (c *PacketConn) Read(b []byte) (int, error) {
	n, _, err := c.receive(b)
	if err != nil {
		return 0, c.failure("read", err)
	}
	return n, nil
}

func (c *PacketConn) Write(b []byte) (int, error) {
	err := c.takeRefusal("write")
	if err == nil && !c.remote.IsValid() {
		err = sysError("write", syscall.EDESTADDRREQ)
	}
	if err == nil {
		err = c.send(b, c.remote)
	}
	if err != nil {
		return 0, c.failure("write", err)
	}
	return len(b), nil
}

func (c *PacketConn) failure(op string, err error) error {
	return opError(op, "udp", c.local, c.RemoteAddr(), err)
}

func (c *PacketConn) Close() error {
	err := c.failure("close", errClosed)
	c.closeOnce.Do(func() {
		err = nil
		close(c.closed)
		h := c.stack.host
		h.mu.Lock()
		if h.packets[c.binding] == c {
			delete(h.packets, c.binding)
		}
		h.mu.Unlock()
		c.stack.forget(c)
	})
	return err
}

func (c *PacketConn) abort() { _ = c.Close() }

func (c *PacketConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns nil unless the socket was dialled.
func (c *PacketConn) RemoteAddr() net.Addr {
	if !c.remote.IsValid() {
		return nil
	}
	return net.UDPAddrFromAddrPort(c.remote)
}

func (c *PacketConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *PacketConn) SetReadDeadline(t time.Time) error {
	c.readDeadline.set(t)
	return nil
}

func (c *PacketConn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.set(t)
	return nil
}
