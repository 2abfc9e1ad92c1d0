package chaos

import (
	"context"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// networkKind disturbs the traffic of pods: all that goes through their interface, whoever is at the
// other end, the node's probes included. What a pod says to itself does not.
type networkKind struct {
	engine *Engine
	spec   *cloud.NetworkChaos

	ends   atomic.Pointer[ends]
	link   vnet.Link
	remove func() // nil while nothing is disturbed
}

// addresses is a set of them.
type addresses map[netip.Addr]bool

// ends are the addresses between which traffic is disturbed.
type ends struct {
	selected addresses
	targets  addresses // nil is anybody
}

func (e *ends) equal(o *ends) bool {
	return o != nil && maps.Equal(e.selected, o.selected) && maps.Equal(e.targets, o.targets)
}

func addressesOf(pods []*v1.Pod) addresses {
	set := addresses{}
	for _, p := range pods {
		for _, ip := range p.Status.PodIPs {
			if a, err := netip.ParseAddr(ip.IP); err == nil {
				set[a.Unmap()] = true
			}
		}
	}
	return set
}

func (k *networkKind) apply(_ context.Context, pods []*v1.Pod, degree float64) (time.Duration, error) {
	now := &ends{selected: addressesOf(pods)}
	if k.spec.Target != nil {
		now.targets = addressesOf(k.engine.current().selected(*k.spec.Target))
	}
	moved := !now.equal(k.ends.Load())
	if moved {
		k.ends.Store(now)
	}
	link := linkOf(k.spec, degree)
	switch {
	case degree == 0:
		k.end()
	case k.remove == nil || link != k.link:
		old := k.remove
		k.link, k.remove = link, k.engine.cfg.Network.Disturb(k.match, link)
		if old != nil { // Only now: nothing slips through in between.
			old()
		}
	case moved:
		k.engine.cfg.Network.Changed()
	}
	return 0, nil
}

func (k *networkKind) end() {
	if k.remove != nil {
		k.remove()
		k.remove = nil
	}
}

// match reports whether what src sends to dst is disturbed.
func (k *networkKind) match(src, dst netip.Addr) bool {
	if src == dst {
		return false
	}
	e := k.ends.Load()
	to := e.selected[src] && (e.targets == nil || e.targets[dst])
	from := e.selected[dst] && (e.targets == nil || e.targets[src])
	switch k.spec.Direction {
	case cloud.From:
		return from
	case cloud.Both:
		return to || from
	}
	return to
}

// linkOf scales a disturbance. Half a limit of bandwidth is one twice as high. A partition has no
// halves.
func linkOf(s *cloud.NetworkChaos, degree float64) vnet.Link {
	l := vnet.Link{
		Down: s.Partition, Loss: s.Loss * degree, Corrupt: s.Corrupt * degree, Duplicate: s.Duplicate * degree,
		Delay: scale(s.Delay, degree), Jitter: scale(s.Jitter, degree),
	}
	if s.Bandwidth > 0 && degree > 0 {
		l.Bandwidth = max(1, int64(float64(s.Bandwidth)/degree))
	}
	return l
}

func scale(d time.Duration, degree float64) time.Duration {
	return time.Duration(float64(d) * degree)
}
