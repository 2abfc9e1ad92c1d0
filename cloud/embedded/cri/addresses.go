package cri

import (
	"fmt"
	"net/netip"
	"regexp"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// addresses hands out the pod addresses of a node. It goes round, so that a stale address does not
// soon lead to another pod.
type addresses struct {
	prefix netip.Prefix

	mu    sync.Mutex
	next  netip.Addr
	taken map[netip.Addr]bool
}

func newAddresses(p netip.Prefix) *addresses {
	a := &addresses{prefix: p.Masked(), taken: map[netip.Addr]bool{}}
	a.next = a.first()
	return a
}

// first is the first address for a pod: the one before it is the bridge's.
func (a *addresses) first() netip.Addr { return a.prefix.Addr().Next().Next() }

// take joins a new host to the network, one of a kind.
func (a *addresses) take(n *vnet.Network, kind string) (*vnet.Host, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := 1 << (32 - a.prefix.Bits())
	for range size {
		addr := a.next
		if a.next = addr.Next(); !a.prefix.Contains(a.next.Next()) { // The last one is for broadcasts.
			a.next = a.first()
		}
		if a.taken[addr] {
			continue
		}
		h, err := n.AddHost(addr)
		if err != nil {
			continue
		}
		a.taken[addr] = true
		h.SetKind(kind)
		return h, nil
	}
	return nil, fmt.Errorf("no IP addresses available in range %s", a.prefix)
}

// claim joins a host with a given address, which a restored pod had.
func (a *addresses) claim(n *vnet.Network, addr netip.Addr, kind string) (*vnet.Host, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, err := n.AddHost(addr)
	if err == nil {
		a.taken[addr] = true
		h.SetKind(kind)
	}
	return h, err
}

// suffix is what controllers put behind the names of pods that are all the same.
var suffix = regexp.MustCompile("-[bcdfghjklmnpqrstvwxz2456789]{5}$")

// kindOf says what a pod is one of. Its name without what is random in it is the same in every run.
func kindOf(p *runtimeapi.PodSandboxMetadata) string {
	return p.GetNamespace() + "/" + suffix.ReplaceAllString(p.GetName(), "")
}

func (a *addresses) release(addr netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.taken, addr)
}
