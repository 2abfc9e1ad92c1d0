package vnet

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"github.com/aiopslab/aiopslab/cloud/embedded/chance"
)

// dice gives the next number between 0 and 1.
type dice func() float64

// Chance is where the network's random numbers come from. Others may draw from it, too.
func (n *Network) Chance() *chance.Source { return &n.chance }

// Seed starts all random numbers from the beginning: those for loss, jitter, and whatever else draws from
// [Network.Chance]. It also counts hosts from the beginning, so that names do not depend on what happened before.
func (n *Network) Seed(seed uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	hosts := make([]*Host, 0, len(n.hosts))
	for _, h := range n.hosts {
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b *Host) int { return a.addr.Compare(b.addr) })
	clear(n.born)
	for _, h := range hosts {
		n.count(h)
	}
	n.chance.Seed(seed)
}

// NameOf returns a name for an address that stays the same in another run, where addresses may differ: the kind of
// its host, and a number. An address without a host is its own name.
func (n *Network) NameOf(addr netip.Addr) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if h := n.hosts[addr]; h != nil {
		return h.name
	}
	return addr.String()
}

// SetKind says which group a host belongs to, such as the pods of a Deployment. Without a kind, a host is named by
// its address.
func (h *Host) SetKind(kind string) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.kind = kind
	h.net.count(h)
}

// count gives a host its name. It is called with n.mu held.
func (n *Network) count(h *Host) {
	kind := cmp.Or(h.kind, h.addr.String())
	h.name = kind + "#" + strconv.Itoa(n.born[kind])
	n.born[kind]++
}

// name is the name of the traffic on a path.
func (p *path) name(what string) string {
	p.net.mu.RLock()
	defer p.net.mu.RUnlock()
	return what + " " + p.src.name + " > " + p.dst.name
}

// shared is the dice of all traffic of a sort between two hosts.
func (p *path) shared(what string) dice {
	name := p.name(what)
	return func() float64 { return p.net.chance.Draw(name) }
}

// fate is the dice of one connection's direction. Connections between two hosts are told apart by the
// order in which they first need it. It is for one goroutine at a time.
type fate struct {
	stream *chance.Stream // nil before the first number
	epoch  uint64
}

func (f *fate) dice(p *path, what string) dice {
	return func() float64 {
		if f.stream == nil || f.epoch != p.net.chance.Epoch() {
			f.stream, f.epoch = p.net.chance.Fork(p.name(what))
		}
		return f.stream.Float64()
	}
}
