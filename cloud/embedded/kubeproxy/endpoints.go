package kubeproxy

import (
	"net/netip"
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// endpoint is where a port of a service may lead.
type endpoint struct {
	addr         netip.AddrPort
	node         string
	zones, nodes []string // hints: where the traffic for it should come from
}

// endpoints are the endpoints of a port of a service.
type endpoints struct {
	ready    []endpoint
	draining []endpoint       // they still serve while they terminate
	serving  []netip.AddrPort // what was sent to these goes on to them
	// Hints count only if every ready endpoint has one: else they are about to change.
	zoned, noded bool
}

// endpoints returns where a port of a service leads.
func (p *Proxy) endpoints(name types.NamespacedName, port *v1.ServicePort) endpoints {
	all := endpoints{zoned: true, noded: true}
	for _, s := range p.slices[name] {
		for _, sp := range s.Ports {
			if ptr.Deref(sp.Name, "") != port.Name || sp.Port == nil {
				continue
			}
			for i := range s.Endpoints {
				all.add(&s.Endpoints[i], uint16(*sp.Port))
			}
		}
	}
	return all
}

func (all *endpoints) add(e *discoveryv1.Endpoint, port uint16) {
	for _, a := range e.Addresses {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		ep := endpoint{addr: netip.AddrPortFrom(addr, port), node: ptr.Deref(e.NodeName, "")}
		if e.Hints != nil {
			for _, z := range e.Hints.ForZones {
				ep.zones = append(ep.zones, z.Name)
			}
			for _, n := range e.Hints.ForNodes {
				ep.nodes = append(ep.nodes, n.Name)
			}
		}
		serving := ptr.Deref(e.Conditions.Serving, true)
		switch {
		case ptr.Deref(e.Conditions.Ready, true):
			all.ready = append(all.ready, ep)
			all.zoned = all.zoned && len(ep.zones) > 0
			all.noded = all.noded && len(ep.nodes) > 0
		case serving && ptr.Deref(e.Conditions.Terminating, false):
			all.draining = append(all.draining, ep)
		}
		if serving {
			all.serving = append(all.serving, ep.addr)
		}
	}
}

// none reports whether there is nothing to send traffic to, from anywhere.
func (all *endpoints) none() bool { return len(all.ready) == 0 && len(all.draining) == 0 }

// on returns those that are on a node: the ready ones or, if there is none, those that drain.
func (all *endpoints) on(node string) []endpoint {
	here := func(e endpoint) bool { return node != "" && e.node == node }
	if found := filter(all.ready, here); len(found) > 0 {
		return found
	}
	return filter(all.draining, here)
}

// near returns those that traffic from a node should go to: those that hints keep for the node, for
// its zone, or all that are ready. It is what kube-proxy's topologyModeFromHints decides.
func (all *endpoints) near(node, zone string) []endpoint {
	if len(all.ready) == 0 {
		return all.draining
	}
	if all.noded {
		if found := filter(all.ready, func(e endpoint) bool { return slices.Contains(e.nodes, node) }); len(found) > 0 {
			return found
		}
	}
	if all.zoned {
		if found := filter(all.ready, func(e endpoint) bool { return slices.Contains(e.zones, zone) }); len(found) > 0 {
			return found
		}
	}
	return all.ready
}

func filter(list []endpoint, keep func(endpoint) bool) (kept []endpoint) {
	for _, e := range list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}
