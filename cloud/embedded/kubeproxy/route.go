package kubeproxy

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/chance"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// Route implements vnet.Router.
func (p *Proxy) Route(src netip.Addr, protocol string, dst netip.AddrPort) (netip.AddrPort, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	r, from := p.find(src, protocol, dst)
	if r == nil {
		return dst, nil
	}
	if r.endpoints.none() {
		return dst, vnet.ErrReject
	}
	name, zone := p.nodeOf(from)
	if !r.local {
		return p.choose(r, src, r.endpoints.near(name, zone)), nil
	}
	candidates := r.endpoints.on(name)
	if len(candidates) == 0 {
		return dst, vnet.ErrDrop
	}
	return p.choose(r, src, candidates), nil
}

// Keeps implements vnet.Keeper: datagrams go on to an endpoint that serves, whatever traffic policy
// and hints say by now. kube-proxy removes the other flows from the kernel's table.
func (p *Proxy) Keeps(src netip.Addr, protocol string, dst, backend netip.AddrPort) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	r, _ := p.find(src, protocol, dst)
	return r != nil && slices.Contains(r.endpoints.serving, backend)
}

// find returns the route that traffic takes, if there is one, and the address whose node decides what
// is near.
func (p *Proxy) find(src netip.Addr, protocol string, dst netip.AddrPort) (r *route, from netip.Addr) {
	k, addressed := key{protocol: protocol, addr: dst.Addr(), port: dst.Port()}, dst.Addr()
	if dst.Addr().IsLoopback() {
		k.node, addressed = src, src
	}
	if r := p.routes[k]; r != nil {
		return r, src
	}
	if !p.isNode(addressed) {
		return nil, src
	}
	r = p.routes[key{protocol: protocol, port: dst.Port()}]
	if r != nil && r.external {
		return r, addressed // The node that was addressed decides.
	}
	return r, src
}

func (p *Proxy) choose(r *route, src netip.Addr, candidates []endpoint) netip.AddrPort {
	if r.affinity > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c, ok := r.sticky[src]; ok && time.Since(c.used) < r.affinity {
			for _, e := range candidates {
				if e.addr == c.endpoint {
					r.sticky[src] = choice{c.endpoint, time.Now()}
					return c.endpoint
				}
			}
		}
	}
	e := p.draw(r, src, candidates)
	if r.affinity > 0 {
		r.sticky[src] = choice{e, time.Now()}
	}
	return e
}

// draw gives each endpoint a number, by its name, and takes the one with the greatest. So the choice
// depends neither on their addresses nor on their order, and a client's choices do not depend on those
// of others.
func (p *Proxy) draw(r *route, src netip.Addr, candidates []endpoint) (chosen netip.AddrPort) {
	if len(candidates) == 1 {
		return candidates[0].addr
	}
	salt := math.Float64bits(p.network.Chance().Draw("proxy " + p.network.NameOf(src) + " > " + r.name))
	var greatest uint64
	for _, c := range candidates {
		number := rand.NewPCG(salt, chance.Hash(p.network.NameOf(c.addr.Addr()))).Uint64()
		if number >= greatest {
			chosen, greatest = c.addr, number
		}
	}
	return chosen
}

func (p *Proxy) isNode(a netip.Addr) bool {
	for _, n := range p.nodes {
		for _, addr := range n.addrs {
			if addr == a {
				return true
			}
		}
	}
	return false
}

// nodeOf returns the node an address is on and its zone, or "".
func (p *Proxy) nodeOf(a netip.Addr) (name, zone string) {
	for name, n := range p.nodes {
		for _, addr := range n.addrs {
			if addr == a {
				return name, n.zone
			}
		}
		for _, prefix := range n.pods {
			if prefix.Contains(a) {
				return name, n.zone
			}
		}
	}
	return "", ""
}
