package vnet

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Ephemeral ports are taken from the kernel's default range.
const (
	firstEphemeral = 32768
	lastEphemeral  = 60999
)

// Host is one address on the network with its ports, as a network namespace is.
type Host struct {
	net  *Network
	addr netip.Addr
	kind string // what it is one of; guarded by net.mu
	name string // its kind and which one; guarded by net.mu

	mu        sync.Mutex
	closed    bool
	stacks    map[*Stack]struct{}
	listeners map[binding]*listener
	packets   map[binding]*PacketConn
	nextPort  uint16

	counters Counters
}

// binding is a local address something is bound to. The zero address is the wildcard.
type binding struct {
	addr netip.Addr
	port uint16
}

// Counters are the interface counters of a host.
type Counters struct {
	ReceivedBytes, ReceivedPackets, ReceivedDropped atomic.Uint64
	SentBytes, SentPackets, SentDropped             atomic.Uint64
}

func newHost(n *Network, addr netip.Addr) *Host {
	return &Host{
		net: n, addr: addr,
		stacks:    map[*Stack]struct{}{},
		listeners: map[binding]*listener{},
		packets:   map[binding]*PacketConn{},
		nextPort:  uint16(firstEphemeral + rand.IntN(lastEphemeral-firstEphemeral+1)), // as a kernel does
	}
}

// Detached returns a host that is on no network; it only remembers its address.
func Detached(addr netip.Addr) *Host {
	h := newHost(New(Config{}), addr)
	h.closed = true
	return h
}

// Listens reports whether a program accepts connections on a port from outside the host.
func (h *Host) Listens(port uint16) bool { return h.listener(netip.AddrPortFrom(h.addr, port)) != nil }

// Addr returns the host's address.
func (h *Host) Addr() netip.Addr { return h.addr }

// Counters returns the host's counters, which go on counting.
func (h *Host) Counters() *Counters { return &h.counters }

// NewStack returns a new owner of sockets on h.
func (h *Host) NewStack() *Stack {
	s := &Stack{host: h, open: map[closer]struct{}{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.closed = true
	} else {
		h.stacks[s] = struct{}{}
	}
	return s
}

// Close removes the host from the network and resets all its connections.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	stacks := h.stacks
	h.stacks = nil
	h.mu.Unlock()
	for s := range stacks {
		s.Close()
	}
	h.net.removeHost(h)
}

// listener finds who accepts connections to addr, which is the host's own or a loopback address.
func (h *Host) listener(addr netip.AddrPort) *listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.listeners[binding{addr.Addr(), addr.Port()}]; l != nil {
		return l
	}
	return h.listeners[binding{port: addr.Port()}]
}

// packetConn finds who receives datagrams for addr.
func (h *Host) packetConn(addr netip.AddrPort) *PacketConn {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.packets[binding{addr.Addr(), addr.Port()}]; c != nil {
		return c
	}
	return h.packets[binding{port: addr.Port()}]
}

// freePort returns an ephemeral port for which taken is false. It is called with h.mu held.
func (h *Host) freePort(taken func(port uint16) bool) (uint16, bool) {
	for range lastEphemeral - firstEphemeral + 1 {
		p := h.nextPort
		if h.nextPort++; h.nextPort > lastEphemeral {
			h.nextPort = firstEphemeral
		}
		if !taken(p) {
			return p, true
		}
	}
	return 0, false
}

func (h *Host) sent(n int) {
	h.counters.SentBytes.Add(uint64(n))
	h.counters.SentPackets.Add(uint64((n + segmentSize - 1) / segmentSize))
}

func (h *Host) received(n int) {
	h.counters.ReceivedBytes.Add(uint64(n))
	h.counters.ReceivedPackets.Add(uint64((n + segmentSize - 1) / segmentSize))
}

// Socket is an open socket of a host.
type Socket struct {
	Network       string // "tcp" or "udp"
	Local, Remote net.Addr
	Listening     bool
}

// Sockets lists what is open on the host.
func (h *Host) Sockets() []Socket {
	h.mu.Lock()
	stacks := make([]*Stack, 0, len(h.stacks))
	for s := range h.stacks {
		stacks = append(stacks, s)
	}
	h.mu.Unlock()
	var list []Socket
	for _, s := range stacks {
		s.mu.Lock()
		for c := range s.open {
			switch c := c.(type) {
			case *listener:
				list = append(list, Socket{Network: "tcp", Local: c.addr, Listening: true})
			case *Conn:
				list = append(list, Socket{Network: "tcp", Local: c.local, Remote: c.remote})
			case *PacketConn:
				list = append(list, Socket{Network: "udp", Local: c.local, Remote: c.RemoteAddr()})
			}
		}
		s.mu.Unlock()
	}
	return list
}
