package cri

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	maxHeard = 5  // addresses that are told of one command
	maxEars  = 32 // commands of a container that are listened to
)

// ear notes where a command in a container has connected to, outside of its pod: what it said there is in no file of
// the container.
type ear struct {
	command []string

	mu    sync.Mutex
	heard []string
}

func (e *ear) hear(address string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.heard) < maxHeard && !slices.Contains(e.heard, address) {
		e.heard = append(e.heard, address)
	}
}

// Elsewhere is where the command has connected to that the container was kept for.
func (k *Kept) Elsewhere() []string {
	k.ear.mu.Lock()
	defer k.ear.mu.Unlock()
	return slices.Clone(k.ear.heard)
}

// listen has an ear on commands that are run from now on.
func (c *Container) listen(e *ear) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ears = append(c.ears, e)
	c.ears = c.ears[max(0, len(c.ears)-maxEars):]
}

// overheard is the network of a command from outside.
func (c *Container) overheard(argv []string, n kit.Network) kit.Network {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, ok := n.(network)
	for _, e := range slices.Backward(c.ears) {
		if ok && slices.Equal(e.command, argv) {
			return overheard{own, e}
		}
	}
	return n
}

// overheard is a network with an ear on it.
type overheard struct {
	network
	ear *ear
}

var (
	_ kit.Pinger       = overheard{}
	_ kit.SocketLister = overheard{}
)

func (o overheard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := o.network.DialContext(ctx, network, address)
	if err == nil {
		o.note(c.RemoteAddr(), address)
	}
	return c, err
}

func (o overheard) ListenPacket(network, address string) (net.PacketConn, error) {
	c, err := o.network.ListenPacket(network, address)
	if err != nil {
		return nil, err
	}
	return overheardPackets{c, o}, nil
}

// note tells of an address, unless it is the pod's own or answers questions about names.
func (o overheard) note(at net.Addr, called string) {
	a, err := netip.ParseAddrPort(at.String())
	const dns = 53
	if err == nil && (a.Addr().IsLoopback() || a.Addr() == o.stack.Host().Addr() || a.Port() == dns) {
		return
	}
	o.ear.hear(called)
}

type overheardPackets struct {
	net.PacketConn
	on overheard
}

func (p overheardPackets) WriteTo(b []byte, at net.Addr) (int, error) {
	p.on.note(at, at.String())
	return p.PacketConn.WriteTo(b, at)
}
