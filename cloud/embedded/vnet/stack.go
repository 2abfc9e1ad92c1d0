package vnet

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// synRetries is how often the kernel repeats an unanswered SYN, after 1, 2, 4, ... seconds.
const synRetries = 6

// closer is what a Stack keeps track of. abort must be idempotent and must not block.
type closer interface{ abort() }

// Stack opens sockets on a host and remembers them until they are closed. A container has one of
// its own, so that its sockets end with it.
type Stack struct {
	host  *Host
	calls atomic.Pointer[func(call string) syscall.Errno] // see OnCall

	mu     sync.Mutex
	open   map[closer]struct{}
	closed bool
}

// Host returns the host the sockets are on.
func (s *Stack) Host() *Host { return s.host }

// Close closes the listeners and resets the connections opened through s, and refuses new ones.
func (s *Stack) Close() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		c.abort()
	}
	s.host.mu.Lock()
	delete(s.host.stacks, s)
	s.host.mu.Unlock()
}

// remember notes an open socket. It reports false, having aborted it, if the stack is closed.
func (s *Stack) remember(c closer) bool {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		c.abort()
	}
	return !closed
}

func (s *Stack) forget(c closer) {
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

// parse reads a numeric host:port. An empty host is the wildcard, "localhost" is 127.0.0.1.
func parse(network, address string) (netip.AddrPort, error) {
	fail := func(msg string) (netip.AddrPort, error) {
		return netip.AddrPort{}, &net.AddrError{Err: msg, Addr: address}
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		p, err := net.LookupPort(network, service)
		if err != nil {
			return fail("invalid port")
		}
		port = uint64(p)
	}
	switch host {
	case "", "::":
		return netip.AddrPortFrom(netip.Addr{}, uint16(port)), nil
	case "localhost", "::1":
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fail("not a numeric address")
	}
	if addr = addr.Unmap(); addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	return netip.AddrPortFrom(addr, uint16(port)), nil
}

// tcpAddr and udpAddr return kernel-type addresses; the wildcard reads [::], as package net has it.
func tcpAddr(a netip.AddrPort) *net.TCPAddr {
	if !a.Addr().IsValid() {
		return &net.TCPAddr{IP: net.IPv6zero, Port: int(a.Port())}
	}
	return net.TCPAddrFromAddrPort(a)
}

func udpAddr(a netip.AddrPort) *net.UDPAddr {
	if !a.Addr().IsValid() {
		return &net.UDPAddr{IP: net.IPv6zero, Port: int(a.Port())}
	}
	return net.UDPAddrFromAddrPort(a)
}

// bindable reports whether addr is one of the host's.
func (h *Host) bindable(addr netip.Addr) bool {
	return !addr.IsValid() || addr == h.addr || addr.IsLoopback()
}

// DialContext connects to a numeric address. network is "tcp" or "udp", or one of these with a 4
// appended.
func (s *Stack) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := parse(network, address)
	if err != nil {
		return nil, opError("dial", network, nil, nil, err)
	}
	if !to.Addr().IsValid() {
		to = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to.Port())
	}
	switch network {
	case "tcp", "tcp4":
		c, err := s.dialTCP(ctx, to)
		if err != nil {
			return nil, opError("dial", "tcp", nil, tcpAddr(to), err)
		}
		return c, nil
	case "udp", "udp4":
		return s.dialUDP(to)
	}
	return nil, opError("dial", network, nil, nil, net.UnknownNetworkError(network))
}

// dialTCP repeats the SYN until it is answered, as the kernel does.
func (s *Stack) dialTCP(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	n := s.host.net
	if err := s.check("socket", "connect"); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, contextError(ctx.Err())
		}
		change := n.change()
		c, err := s.syn(ctx, to)
		if c != nil || err != nil {
			return c, err
		}
		if try > synRetries {
			return nil, sysError("connect", syscall.ETIMEDOUT)
		}
		t := time.NewTimer(time.Second << try)
		select {
		case <-t.C:
		case <-change:
			try = -1 // What dropped it may be gone.
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// syn makes one attempt. No connection and no error means that it was not answered.
func (s *Stack) syn(ctx context.Context, to netip.AddrPort) (c *Conn, err error) {
	h, n := s.host, s.host.net
	refused := sysError("connect", syscall.ECONNREFUSED)
	dst, err := n.route(h.addr, "tcp", to)
	switch {
	case err == ErrDrop:
		return nil, nil
	case err != nil:
		return nil, refused
	}
	target := h
	if !dst.Addr().IsLoopback() {
		target = n.Host(dst.Addr())
		if target == nil {
			return nil, s.unreachable(ctx, dst.Addr())
		}
		if !n.admit(h.addr, "tcp", dst) {
			return nil, nil
		}
		answered, err := s.handshake(ctx, target)
		if !answered || err != nil {
			return nil, err
		}
	}
	l := target.listener(dst)
	if l == nil {
		return nil, refused
	}
	h.mu.Lock()
	port, ok := h.freePort(func(p uint16) bool { return h.listeners[binding{port: p}] != nil })
	h.mu.Unlock()
	if !ok {
		return nil, sysError("connect", syscall.EADDRNOTAVAIL)
	}
	c, peer := connect(s, l, port, tcpAddr(to))
	if !s.remember(c) {
		return nil, sysError("connect", syscall.ENETDOWN)
	}
	if !l.stack.remember(peer) {
		c.abort()
		return nil, refused
	}
	select {
	case l.queue <- peer:
	default: // The backlog is full; the kernel drops the SYN.
		c.abort()
		peer.abort()
		return nil, nil
	}
	if isClosed(l.done) { // It closed while we were queued, and may not have seen us.
		c.abort()
		peer.abort()
		return nil, refused
	}
	return c, nil
}

// handshake lets SYN and SYN-ACK travel the links. It reports false if one of them was lost.
func (s *Stack) handshake(ctx context.Context, dst *Host) (bool, error) {
	n, src := s.host.net, s.host
	there, back := &path{net: n, src: src, dst: dst}, &path{net: n, src: dst, dst: src}
	out, in := there.disturbances(), back.disturbances()
	if len(out) == 0 && len(in) == 0 {
		return true, nil
	}
	d := there.shared("syn")
	if there.dropped(out, d, 0) || back.dropped(in, d, 0) {
		return false, nil
	}
	now := time.Now()
	arrival := back.transit(in, d, 0, there.transit(out, d, 0, now))
	t := time.NewTimer(arrival.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return false, contextError(ctx.Err())
	}
}

// unreachable is what dialling an address that no host has comes to. It returns nil if the packet
// simply vanishes.
func (s *Stack) unreachable(ctx context.Context, addr netip.Addr) error {
	cfg := s.host.net.cfg
	if contains(cfg.Virtual, addr) {
		return nil
	}
	if !contains(cfg.Subnets, addr) {
		return sysError("connect", syscall.ENETUNREACH)
	}
	t := time.NewTimer(cfg.HostTimeout)
	defer t.Stop()
	select {
	case <-t.C:
		return sysError("connect", syscall.EHOSTUNREACH)
	case <-ctx.Done():
		return contextError(ctx.Err())
	}
}

// Listen announces on a local numeric address; port 0 picks a free one.
func (s *Stack) Listen(network, address string) (net.Listener, error) {
	if network != "tcp" && network != "tcp4" {
		return nil, opError("listen", network, nil, nil, net.UnknownNetworkError(network))
	}
	at, err := parse(network, address)
	if err != nil {
		return nil, opError("listen", network, nil, nil, err)
	}
	if err := s.check("socket", "bind", "listen"); err != nil {
		return nil, opError("listen", "tcp", nil, tcpAddr(at), err)
	}
	l, errno := s.bindListener(at)
	if errno != 0 {
		return nil, opError("listen", "tcp", nil, tcpAddr(at), sysError("bind", errno))
	}
	if !s.remember(l) {
		return nil, opError("listen", "tcp", nil, tcpAddr(at), sysError("bind", syscall.ENETDOWN))
	}
	return l, nil
}

func (s *Stack) bindListener(at netip.AddrPort) (*listener, syscall.Errno) {
	h := s.host
	if !h.bindable(at.Addr()) {
		return nil, syscall.EADDRNOTAVAIL
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := func(port uint16) bool {
		for b := range h.listeners {
			if b.port == port && (b.addr == at.Addr() || !b.addr.IsValid() || !at.Addr().IsValid()) {
				return true
			}
		}
		return false
	}
	port := at.Port()
	if port == 0 {
		port, _ = h.freePort(taken)
	}
	if port == 0 || taken(port) {
		return nil, syscall.EADDRINUSE
	}
	l := newListener(s, netip.AddrPortFrom(at.Addr(), port))
	h.listeners[l.binding] = l
	return l, 0
}
