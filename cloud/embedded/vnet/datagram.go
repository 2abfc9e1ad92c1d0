package vnet

import (
	"net/netip"
	"syscall"
	"time"
)

type datagram struct {
	from netip.AddrPort
	data []byte
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
