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

type datagram struct {
	from netip.AddrPort
	data []byte
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

// send delivers a copy of b to wherever to leads.
func (c *PacketConn) send(b []byte, to netip.AddrPort) error {
	h, n := c.stack.host, c.stack.host.net
	switch {
	case isClosed(c.closed):
		return errClosed
	case c.writeDeadline.expired():
		return errDeadline
	case len(b) > maxDatagram:
		return sysError("sendto", syscall.EMSGSIZE)
	}
	if errno := c.stack.fault("write"); errno != 0 {
		return sysError("write", errno)
	}
	h.sent(max(len(b), 1))
	from, target, dst := c.source(to.Addr()), h, to
	if to.Addr().IsLoopback() {
		c.deliver(target, dst, from, append([]byte(nil), b...))
		return nil
	}
	dst, err := c.translate(to)
	if err == ErrReject {
		c.unreachable()
		return nil
	}
	if err != nil {
		h.counters.SentDropped.Add(1)
		return nil
	}
	if target = n.Host(dst.Addr()); target == nil {
		if !contains(n.cfg.Subnets, dst.Addr()) && !contains(n.cfg.Virtual, dst.Addr()) {
			return sysError("sendto", syscall.ENETUNREACH)
		}
		return nil
	}
	if !n.admit(h.addr, "udp", dst) {
		return nil
	}
	c.transmit(target, dst, from, append([]byte(nil), b...))
	return nil
}

// transmit sends a datagram over the link to target, which may lose, damage, repeat or delay it.
func (c *PacketConn) transmit(target *Host, dst, from netip.AddrPort, data []byte) {
	h := c.stack.host
	p := &path{net: h.net, src: h, dst: target}
	rules := p.disturbances()
	if len(rules) == 0 {
		c.deliver(target, dst, from, data)
		return
	}
	lost := func(l Link) float64 {
		if l.Down {
			return 1
		}
		return l.Loss
	}
	d := p.shared("udp")
	if p.chance(rules, d, lost) {
		h.counters.SentDropped.Add(1)
		return
	}
	if p.chance(rules, d, func(l Link) float64 { return l.Corrupt }) {
		target.counters.ReceivedDropped.Add(1) // The checksum does not match.
		return
	}
	copies := 1
	if p.chance(rules, d, func(l Link) float64 { return l.Duplicate }) {
		copies = 2
	}
	for range copies {
		now := time.Now()
		if wait := p.transit(rules, d, len(data), now).Sub(now); wait > 0 {
			time.AfterFunc(wait, func() { c.deliver(target, dst, from, data) })
		} else {
			c.deliver(target, dst, from, data)
		}
	}
}

// translate routes a destination. Like conntrack it keeps sending to the backend it chose first, until
// that is gone or the router ends the flow.
func (c *PacketConn) translate(to netip.AddrPort) (netip.AddrPort, error) {
	n, src := c.stack.host.net, c.stack.host.addr
	c.mu.Lock()
	b, ok := c.backends[to]
	c.mu.Unlock()
	if ok {
		if n.keeps(src, "udp", to, b) {
			return b, nil
		}
		c.mu.Lock()
		delete(c.backends, to)
		if c.services[b] == to {
			delete(c.services, b)
		}
		c.mu.Unlock()
	}
	b, err := n.route(src, "udp", to)
	if err != nil || b == to {
		return b, err
	}
	c.mu.Lock()
	c.backends[to], c.services[b] = b, to
	c.mu.Unlock()
	return b, nil
}

// deliver puts a datagram in the queue of the socket at dst, or tells the sender there is none.
func (c *PacketConn) deliver(target *Host, dst, from netip.AddrPort, data []byte) {
	r := target.packetConn(dst)
	if r == nil {
		c.unreachable()
		return
	}
	target.received(max(len(data), 1))
	r.mu.Lock()
	if s, ok := r.services[from]; ok {
		from = s
	}
	if r.remote.IsValid() && r.remote != from || len(r.queue) >= packetQueue {
		r.mu.Unlock()
		target.counters.ReceivedDropped.Add(1)
		return
	}
	r.queue = append(r.queue, datagram{from, data})
	r.mu.Unlock()
	wake(r.readable)
}

// unreachable makes the next operation of a dialled socket fail; others never learn of it.
func (c *PacketConn) unreachable() {
	if !c.remote.IsValid() {
		return
	}
	c.mu.Lock()
	c.refused = true
	c.mu.Unlock()
	wake(c.readable)
}

// takeRefusal returns a pending port-unreachable, once.
func (c *PacketConn) takeRefusal(call string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.refused {
		return nil
	}
	c.refused = false
	return sysError(call, syscall.ECONNREFUSED)
}

func (c *PacketConn) receive(b []byte) (int, netip.AddrPort, error) {
	if errno := c.stack.fault("read"); errno != 0 {
		return 0, netip.AddrPort{}, sysError("read", errno)
	}
	for {
		if isClosed(c.closed) {
			return 0, netip.AddrPort{}, errClosed
		}
		if c.readDeadline.expired() {
			return 0, netip.AddrPort{}, errDeadline
		}
		if err := c.takeRefusal("read"); err != nil {
			return 0, netip.AddrPort{}, err
		}
		c.mu.Lock()
		if len(c.queue) > 0 {
			d := c.queue[0]
			c.queue[0] = datagram{}
			c.queue = c.queue[1:]
			more := len(c.queue) > 0
			c.mu.Unlock()
			if more {
				wake(c.readable)
			}
			return copy(b, d.data), d.from, nil
		}
		c.mu.Unlock()
		select {
		case <-c.readable:
		case <-c.readDeadline.done():
		case <-c.closed:
		}
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
