// Package kubeproxy routes traffic to services, as kube-proxy's rules do on a real node: a
// connection to a cluster IP, a node port, an external address or a host port goes to a ready
// endpoint, drawn anew for each connection from the network's random numbers.
//
// A [Proxy] is a [vnet.Router] that is kept current by informers:
//
//	p := kubeproxy.New(network)
//	synced, err := p.Watch(factory)
//	factory.Start(ctx.Done())
//	cache.WaitFor(ctx, "", synced...)
//	network.SetRouter(p)
package kubeproxy

import (
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

var _ vnet.Keeper = (*Proxy)(nil)

// Proxy knows where services lead. It is safe for concurrent use.
type Proxy struct {
	network *vnet.Network

	mu       sync.RWMutex
	services map[types.NamespacedName]*v1.Service
	slices   map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice // by service and name
	routes   map[key]*route
	owned    map[types.NamespacedName]map[key]*route // the routes of a service
	nodes    map[string]node
	hostPort map[types.UID]map[key]*route // the routes of a pod
}

// key is an address traffic can be sent to. A zero address stands for every node's. A loopback
// address is that of one node.
type key struct {
	protocol string
	addr     netip.Addr
	port     uint16
	node     netip.Addr // of a loopback address
}

// node is what the proxy knows of a node.
type node struct {
	addrs []netip.Addr
	pods  []netip.Prefix
	zone  string
}

// route is one port of a service.
type route struct {
	name      string // of the service and its port
	endpoints endpoints
	local     bool          // only endpoints on the sender's node count
	external  bool          // it was reached from outside, so local means the addressed node
	affinity  time.Duration // for how long a client keeps its endpoint; 0 is not at all

	mu     sync.Mutex
	sticky map[netip.Addr]choice
}

type choice struct {
	endpoint netip.AddrPort
	used     time.Time
}

// serviceProxyName is the label of services that have a proxy of their own.
const serviceProxyName = "service.kubernetes.io/service-proxy-name"

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// New returns a proxy without services.
func New(n *vnet.Network) *Proxy {
	return &Proxy{
		network:  n,
		services: map[types.NamespacedName]*v1.Service{},
		slices:   map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice{},
		routes:   map[key]*route{}, owned: map[types.NamespacedName]map[key]*route{},
		nodes: map[string]node{}, hostPort: map[types.UID]map[key]*route{},
	}
}

// Watch keeps the proxy current with the factory's informers, which the caller starts. All of synced are done when
// the proxy knows everything there is.
func (p *Proxy) Watch(f informers.SharedInformerFactory) (synced []cache.DoneChecker, err error) {
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		update   func(obj any, gone bool)
	}{
		{f.Core().V1().Services().Informer(), p.onService},
		{f.Discovery().V1().EndpointSlices().Informer(), p.onSlice},
		{f.Core().V1().Nodes().Informer(), p.onNode},
		{f.Core().V1().Pods().Informer(), p.onPod},
	} {
		handler, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.update(obj, false) },
			UpdateFunc: func(_, obj any) { w.update(obj, false) },
			DeleteFunc: func(obj any) {
				if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = d.Obj
				}
				w.update(obj, true)
			},
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, handler.HasSyncedChecker())
	}
	return synced, nil
}

func (p *Proxy) onService(obj any, gone bool) {
	s, ok := obj.(*v1.Service)
	if !ok {
		return
	}
	name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	// Another proxy than this one cares for such a service.
	_, others := s.Labels[serviceProxyName]
	p.mu.Lock()
	if gone || others {
		delete(p.services, name)
	} else {
		p.services[name] = s
	}
	p.rebuild(name)
	p.mu.Unlock()
	p.network.Changed()
}

func (p *Proxy) onSlice(obj any, gone bool) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok || s.AddressType != discoveryv1.AddressTypeIPv4 {
		return
	}
	name := types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
	p.mu.Lock()
	if p.slices[name] == nil {
		p.slices[name] = map[string]*discoveryv1.EndpointSlice{}
	}
	// Such endpoints are for those who look the service up, not for its proxy.
	_, headless := s.Labels[v1.IsHeadlessService]
	if gone || headless {
		delete(p.slices[name], s.Name)
	} else {
		p.slices[name][s.Name] = s
	}
	if len(p.slices[name]) == 0 {
		delete(p.slices, name)
	}
	p.rebuild(name)
	p.mu.Unlock()
	p.network.Changed()
}

func (p *Proxy) onNode(obj any, gone bool) {
	n, ok := obj.(*v1.Node)
	if !ok {
		return
	}
	info := node{zone: n.Labels[v1.LabelTopologyZone]}
	for _, a := range n.Status.Addresses {
		if addr, err := netip.ParseAddr(a.Address); err == nil {
			info.addrs = append(info.addrs, addr)
		}
	}
	for _, c := range n.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(c); err == nil {
			info.pods = append(info.pods, prefix)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if gone {
		delete(p.nodes, n.Name)
	} else {
		p.nodes[n.Name] = info
	}
}

// onPod keeps the host ports of pods.
func (p *Proxy) onPod(obj any, gone bool) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(p.hostPort[pod.UID])
	delete(p.hostPort, pod.UID)
	addr, err := netip.ParseAddr(pod.Status.PodIP)
	over := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if gone || over || err != nil || pod.Spec.HostNetwork {
		return
	}
	routes := map[key]*route{}
	for _, c := range pod.Spec.Containers {
		for _, port := range c.Ports {
			if port.HostPort == 0 {
				continue
			}
			to := endpoint{addr: netip.AddrPortFrom(addr, uint16(port.ContainerPort)), node: pod.Spec.NodeName}
			r := &route{
				name:      "hostPort",
				endpoints: endpoints{ready: []endpoint{to}, serving: []netip.AddrPort{to.addr}},
			}
			for _, k := range hostKeys(pod, port) {
				routes[k] = r
			}
		}
	}
	if len(routes) > 0 {
		p.hostPort[pod.UID] = routes
		maps.Copy(p.routes, routes)
	}
}

// remove takes routes away, unless somebody else's took their place.
func (p *Proxy) remove(routes map[key]*route) {
	for k, r := range routes {
		if p.routes[k] == r {
			delete(p.routes, k)
		}
	}
}

// hostKeys are the addresses of a pod's node that a host port is open on.
func hostKeys(pod *v1.Pod, port v1.ContainerPort) []key {
	node, err := netip.ParseAddr(pod.Status.HostIP)
	if err != nil {
		return nil
	}
	k := key{protocol: strings.ToLower(string(port.Protocol)), addr: node, port: uint16(port.HostPort)}
	local := k
	local.addr, local.node = loopback, node
	switch a, err := netip.ParseAddr(port.HostIP); {
	case err != nil || a.IsUnspecified():
		return []key{k, local}
	case a.IsLoopback():
		local.addr = a
		return []key{local}
	default:
		k.addr = a
		return []key{k}
	}
}

// rebuild computes the routes of one service anew. It is called with p.mu held.
func (p *Proxy) rebuild(name types.NamespacedName) {
	old := p.owned[name]
	p.remove(old)
	delete(p.owned, name)
	s := p.services[name]
	if s == nil || s.Spec.Type == v1.ServiceTypeExternalName {
		return
	}
	routes := map[key]*route{}
	p.owned[name] = routes
	var affinity time.Duration
	if s.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		affinity = time.Duration(v1.DefaultClientIPServiceAffinitySeconds) * time.Second
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil {
			affinity = time.Duration(ptr.Deref(c.ClientIP.TimeoutSeconds,
				v1.DefaultClientIPServiceAffinitySeconds)) * time.Second
		}
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		endpoints := p.endpoints(name, port)
		add := func(addr netip.Addr, number int32, local, external bool) {
			k := key{protocol: strings.ToLower(string(port.Protocol)), addr: addr, port: uint16(number)}
			r := &route{
				name: name.String() + ":" + k.protocol + strconv.Itoa(int(port.Port)), endpoints: endpoints,
				local: local, external: external, affinity: affinity, sticky: map[netip.Addr]choice{},
			}
			if o := old[k]; o != nil {
				r.sticky = o.sticky // Nobody uses o any more: that takes p.mu.
			}
			routes[k], p.routes[k] = r, r
		}
		inside := ptr.Deref(s.Spec.InternalTrafficPolicy,
			v1.ServiceInternalTrafficPolicyCluster) == v1.ServiceInternalTrafficPolicyLocal
		outside := s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
		for _, ip := range s.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil {
				add(a, port.Port, inside, false)
			}
		}
		external := append([]string(nil), s.Spec.ExternalIPs...)
		for _, in := range s.Status.LoadBalancer.Ingress {
			external = append(external, in.IP)
		}
		for _, ip := range external {
			if a, err := netip.ParseAddr(ip); err == nil {
				add(a, port.Port, false, true)
			}
		}
		if port.NodePort != 0 {
			add(netip.Addr{}, port.NodePort, outside, true)
		}
	}
}
