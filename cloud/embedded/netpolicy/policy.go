// Package netpolicy enforces NetworkPolicies on an in-memory network.
//
// A [Policy] is a [vnet.Admitter] that is kept current by informers. Traffic is judged when a
// connection is opened, by the addresses of both ends; what is refused is dropped, as most network
// plug-ins do. Traffic from a node to the pods on it is always admitted, so that probes work, and so
// is that of a pod with itself.
package netpolicy

import (
	"net/netip"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// Policy knows the cluster's policies and pods. It is safe for concurrent use.
type Policy struct {
	network *vnet.Network

	mu         sync.RWMutex
	policies   map[types.UID]*networkingv1.NetworkPolicy
	pods       map[netip.Addr]*v1.Pod
	addrs      map[types.UID]netip.Addr // of the pods
	namespaces map[string]labels.Set
}

// New returns a policy that admits everything until it has seen otherwise.
func New(n *vnet.Network) *Policy {
	return &Policy{
		network: n, policies: map[types.UID]*networkingv1.NetworkPolicy{},
		pods: map[netip.Addr]*v1.Pod{}, addrs: map[types.UID]netip.Addr{}, namespaces: map[string]labels.Set{},
	}
}

// Watch keeps the policy current with the factory's informers, which the caller starts. All of synced are done
// when the policy knows everything there is.
func (p *Policy) Watch(f informers.SharedInformerFactory) (synced []cache.DoneChecker, err error) {
	for _, i := range []cache.SharedIndexInformer{
		f.Networking().V1().NetworkPolicies().Informer(),
		f.Core().V1().Namespaces().Informer(),
		f.Core().V1().Pods().Informer(),
	} {
		handler, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { p.update(obj, false) },
			UpdateFunc: func(_, obj any) { p.update(obj, false) },
			DeleteFunc: func(obj any) {
				if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = d.Obj
				}
				p.update(obj, true)
			},
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, handler.HasSyncedChecker())
	}
	return synced, nil
}

func (p *Policy) update(obj any, gone bool) {
	p.mu.Lock()
	changed := len(p.policies) > 0
	switch o := obj.(type) {
	case *networkingv1.NetworkPolicy:
		changed = true
		if gone {
			delete(p.policies, o.UID)
		} else {
			p.policies[o.UID] = o
		}
	case *v1.Namespace:
		if gone {
			delete(p.namespaces, o.Name)
		} else {
			p.namespaces[o.Name] = o.Labels
		}
	case *v1.Pod:
		p.updatePod(o, gone)
	}
	p.mu.Unlock()
	if changed {
		p.network.Changed()
	}
}

func (p *Policy) updatePod(pod *v1.Pod, gone bool) {
	// A pod that starts over has another address.
	if old, ok := p.addrs[pod.UID]; ok {
		if p.pods[old].UID == pod.UID {
			delete(p.pods, old)
		}
		delete(p.addrs, pod.UID)
	}
	addr, err := netip.ParseAddr(pod.Status.PodIP)
	over := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if gone || over || err != nil || pod.Spec.HostNetwork {
		return
	}
	p.pods[addr], p.addrs[pod.UID] = pod, addr
}

// Admit implements vnet.Admitter.
func (p *Policy) Admit(src netip.Addr, protocol string, dst netip.AddrPort) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if len(p.policies) == 0 {
		return true
	}
	from, to := p.pods[src], p.pods[dst.Addr()]
	if to != nil && (to == from || to.Status.HostIP == src.String()) {
		return true // Nobody is kept from itself, nor a node from its pods.
	}
	t := traffic{src: src, dst: dst, protocol: protocol, from: from, to: to}
	return p.egress(&t) && p.ingress(&t)
}

// traffic is a connection to be judged. from and to are nil if the end is not a pod.
type traffic struct {
	src      netip.Addr
	dst      netip.AddrPort
	protocol string
	from, to *v1.Pod
}

// ingress asks the policies that select the receiving pod.
func (p *Policy) ingress(t *traffic) bool {
	if t.to == nil {
		return true
	}
	isolated := false
	for _, np := range p.policies {
		if !applies(np, t.to, networkingv1.PolicyTypeIngress) {
			continue
		}
		isolated = true
		for _, rule := range np.Spec.Ingress {
			if t.ports(rule.Ports) && p.peers(np, rule.From, t.from, t.src) {
				return true
			}
		}
	}
	return !isolated
}

// egress asks the policies that select the sending pod.
func (p *Policy) egress(t *traffic) bool {
	if t.from == nil {
		return true
	}
	isolated := false
	for _, np := range p.policies {
		if !applies(np, t.from, networkingv1.PolicyTypeEgress) {
			continue
		}
		isolated = true
		for _, rule := range np.Spec.Egress {
			if t.ports(rule.Ports) && p.peers(np, rule.To, t.to, t.dst.Addr()) {
				return true
			}
		}
	}
	return !isolated
}

func applies(np *networkingv1.NetworkPolicy, pod *v1.Pod, kind networkingv1.PolicyType) bool {
	if np.Namespace != pod.Namespace || !selects(&np.Spec.PodSelector, pod.Labels) {
		return false
	}
	for _, t := range np.Spec.PolicyTypes {
		if t == kind {
			return true
		}
	}
	return false
}

func selects(s *metav1.LabelSelector, set labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(set)
}

// peers reports whether one end of the traffic is among those a rule names; none means all.
func (p *Policy) peers(np *networkingv1.NetworkPolicy, list []networkingv1.NetworkPolicyPeer, pod *v1.Pod,
	addr netip.Addr,
) bool {
	if len(list) == 0 {
		return true
	}
	for _, peer := range list {
		if b := peer.IPBlock; b != nil {
			if inBlock(b, addr) {
				return true
			}
			continue
		}
		if pod == nil {
			continue
		}
		if peer.NamespaceSelector == nil && pod.Namespace != np.Namespace {
			continue
		}
		if peer.NamespaceSelector != nil && !selects(peer.NamespaceSelector, p.namespaces[pod.Namespace]) {
			continue
		}
		if peer.PodSelector == nil || selects(peer.PodSelector, pod.Labels) {
			return true
		}
	}
	return false
}

func inBlock(b *networkingv1.IPBlock, addr netip.Addr) bool {
	prefix, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !prefix.Contains(addr) {
		return false
	}
	for _, e := range b.Except {
		if except, err := netip.ParsePrefix(e); err == nil && except.Contains(addr) {
			return false
		}
	}
	return true
}

// ports reports whether the traffic's port is among those a rule names; none means all.
func (t *traffic) ports(list []networkingv1.NetworkPolicyPort) bool {
	if len(list) == 0 {
		return true
	}
	for _, port := range list {
		protocol := v1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		if !strings.EqualFold(string(protocol), t.protocol) {
			continue
		}
		if port.Port == nil {
			return true
		}
		first := t.number(port.Port, protocol)
		last := first
		if port.EndPort != nil {
			last = *port.EndPort
		}
		if n := int32(t.dst.Port()); first > 0 && n >= first && n <= last {
			return true
		}
	}
	return false
}

// number resolves a port by the names the receiving pod gives its ports.
func (t *traffic) number(port *intstr.IntOrString, protocol v1.Protocol) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	if t.to == nil {
		return 0
	}
	for _, c := range t.to.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.StrVal && (p.Protocol == protocol || p.Protocol == "" && protocol == v1.ProtocolTCP) {
				return p.ContainerPort
			}
		}
	}
	return 0
}
