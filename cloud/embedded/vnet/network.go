package vnet

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/chance"
)

// Config configures a Network. Its zero value is usable.
type Config struct {
	// Subnets are the prefixes in which hosts live. Dialling an address in them that no host has
	// fails with EHOSTUNREACH after HostTimeout, as an unanswered ARP request does.
	Subnets []netip.Prefix
	// Virtual are the prefixes whose addresses exist only through the Router (service addresses).
	// What the Router does not know there is dropped. Anything else is ENETUNREACH.
	Virtual []netip.Prefix
	// HostTimeout defaults to three seconds, the kernel's.
	HostTimeout time.Duration
}

// Router rewrites destinations before traffic leaves a host, as kube-proxy does.
type Router interface {
	// Route returns where traffic from src to dst goes; dst itself if it is not a service.
	// protocol is "tcp" or "udp". The error is ErrReject or ErrDrop. It must not block. Connections
	// to a loopback address, which is src's own, pass here too; such datagrams do not.
	Route(src netip.Addr, protocol string, dst netip.AddrPort) (netip.AddrPort, error)
}

// Keeper is an optional interface of a Router that ends flows of datagrams. A socket's datagrams to dst go to the
// destination that Route chose first as long as Keeps reports true; after that they are routed anew. Without a
// Keeper they go there as long as somebody listens. It must not block.
type Keeper interface {
	Keeps(src netip.Addr, protocol string, dst, backend netip.AddrPort) bool
}

// Admitter decides whether traffic may pass, as a network policy does. dst is a host's address
// after routing. What it refuses is dropped without notice. It must not block.
type Admitter interface {
	Admit(src netip.Addr, protocol string, dst netip.AddrPort) bool
}

// What a Router may answer instead of a destination.
var (
	ErrReject error = syscall.ECONNREFUSED
	ErrDrop         = fmt.Errorf("vnet: dropped by the router")
)

// Network is a set of hosts that can reach each other. It is safe for concurrent use.
type Network struct {
	cfg Config

	mu    sync.RWMutex
	hosts map[netip.Addr]*Host
	born  map[string]int // how many hosts of a kind there have been
	rules []*rule

	held atomic.Int64 // bytes that were sent and not read yet, on all connections

	router   atomic.Pointer[Router]
	admitter atomic.Pointer[Admitter]

	// generation counts changes that may let through what was dropped, or the reverse. Whoever
	// waits for a retransmission also waits for waiters to be closed.
	generation atomic.Uint64
	waitMu     sync.Mutex
	waiters    chan struct{}

	chance chance.Source // what is random
}

// New returns an empty network.
func New(cfg Config) *Network {
	if cfg.HostTimeout == 0 {
		cfg.HostTimeout = 3 * time.Second
	}
	n := &Network{
		cfg:     cfg,
		hosts:   map[netip.Addr]*Host{},
		born:    map[string]int{},
		waiters: make(chan struct{}),
	}
	n.generation.Store(1) // A path's zero generation is always stale.
	return n
}

// SetRouter installs the router; nil removes it.
func (n *Network) SetRouter(r Router) {
	if r == nil {
		n.router.Store(nil)
	} else {
		n.router.Store(&r)
	}
	n.changed()
}

// SetAdmitter installs the admitter; nil removes it.
func (n *Network) SetAdmitter(a Admitter) {
	if a == nil {
		n.admitter.Store(nil)
	} else {
		n.admitter.Store(&a)
	}
	n.changed()
}

// Changed tells the network that its router or admitter would now answer differently, so that
// dials which are being dropped are tried again at once.
func (n *Network) Changed() { n.changed() }

func (n *Network) changed() {
	n.generation.Add(1)
	n.waitMu.Lock()
	close(n.waiters)
	n.waiters = make(chan struct{})
	n.waitMu.Unlock()
}

func (n *Network) change() <-chan struct{} {
	n.waitMu.Lock()
	defer n.waitMu.Unlock()
	return n.waiters
}

// AddHost gives an address to a new host.
func (n *Network) AddHost(addr netip.Addr) (*Host, error) {
	addr = addr.Unmap()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[addr] != nil {
		return nil, fmt.Errorf("vnet: address %s is taken", addr)
	}
	h := newHost(n, addr)
	n.hosts[addr] = h
	n.count(h)
	return h, nil
}

// Host returns the host with the given address, or nil.
func (n *Network) Host(addr netip.Addr) *Host {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.hosts[addr.Unmap()]
}

func (n *Network) removeHost(h *Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts[h.addr] == h {
		delete(n.hosts, h.addr)
	}
}

func (n *Network) route(src netip.Addr, protocol string, dst netip.AddrPort) (netip.AddrPort, error) {
	if r := n.router.Load(); r != nil {
		return (*r).Route(src, protocol, dst)
	}
	return dst, nil
}

// keeps reports whether datagrams go on to the backend that they were routed to.
func (n *Network) keeps(src netip.Addr, protocol string, dst, backend netip.AddrPort) bool {
	if h := n.Host(backend.Addr()); h == nil || h.packetConn(backend) == nil {
		return false
	}
	if r := n.router.Load(); r != nil {
		if k, ok := (*r).(Keeper); ok {
			return k.Keeps(src, protocol, dst, backend)
		}
	}
	return true
}

func (n *Network) admit(src netip.Addr, protocol string, dst netip.AddrPort) bool {
	a := n.admitter.Load()
	return a == nil || src == dst.Addr() || (*a).Admit(src, protocol, dst)
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
