package coredns

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app/incluster"
)

// cluster answers for the names of a cluster.
type cluster struct {
	zones    []string
	ttl      uint32
	pods     bool // answer for pods by their address
	pass     []string
	services corelisters.ServiceLister
	spaces   corelisters.NamespaceLister
	slices   cache.SharedIndexInformer
	sync     []cache.InformerSynced

	once sync.Once
	quit chan struct{}
}

const byService, byAddress = "service", "address"

// newCluster reads the configuration of the kubernetes plug-in and starts to watch the cluster.
func (s *server) newCluster(d directive) (*cluster, error) {
	c := &cluster{ttl: 5, quit: make(chan struct{})}
	for _, z := range d.args {
		c.zones = append(c.zones, dns.Fqdn(strings.ToLower(z)))
	}
	for _, line := range d.body {
		switch line[0] {
		case "pods":
			c.pods = len(line) > 1 && line[1] != "disabled"
		case "ttl":
			n, err := strconv.ParseUint(strings.Join(line[1:], ""), 10, 32)
			if err != nil || n > 3600 {
				return nil, fmt.Errorf("ttl must be in range [0, 3600]: %s", strings.Join(line[1:], " "))
			}
			c.ttl = uint32(n)
		case "fallthrough":
			c.pass = append([]string{}, line[1:]...)
			if len(c.pass) == 0 {
				c.pass = []string{"."}
			}
		case "endpoint_pod_names", "upstream", "noendpoints", "namespaces", "labels", "kubeconfig", "endpoint", "tls", "namespace_labels", "ignore", "startup_timeout", "apiserver_qps":
		default:
			return nil, fmt.Errorf("unknown property '%s'", line[0])
		}
	}
	config, err := incluster.Config(s.env)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if m, err := meta.Accessor(obj); err == nil {
			m.SetManagedFields(nil)
			m.SetAnnotations(nil)
		}
		return obj, nil
	}))
	core := f.Core().V1()
	c.services, c.spaces = core.Services().Lister(), core.Namespaces().Lister()
	c.slices = f.Discovery().V1().EndpointSlices().Informer()
	if err := c.slices.AddIndexers(cache.Indexers{byService: serviceOf, byAddress: addressesOf}); err != nil {
		return nil, err
	}
	for _, i := range []cache.SharedIndexInformer{core.Services().Informer(), core.Namespaces().Informer(), c.slices} {
		if err := i.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			fmt.Fprintf(s.env.Stdout, "[ERROR] plugin/kubernetes: Failed to watch %s: %v\n", r.TypeDescription(), err)
		}); err != nil {
			return nil, err
		}
		c.sync = append(c.sync, i.HasSynced)
	}
	f.Start(c.quit)
	return c, nil
}

func serviceOf(obj any) ([]string, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

func addressesOf(obj any) (list []string, err error) {
	if s, ok := obj.(*discoveryv1.EndpointSlice); ok {
		for _, e := range s.Endpoints {
			list = append(list, e.Addresses...)
		}
	}
	return list, nil
}

func (c *cluster) stop() { c.once.Do(func() { close(c.quit) }) }

func (c *cluster) synced() bool {
	for _, done := range c.sync {
		if !done() {
			return false
		}
	}
	return true
}

// serve is the plug-in.
func (c *cluster) serve(r *request) bool {
	zone := ""
	for _, z := range c.zones {
		if dns.IsSubDomain(z, r.name) && len(z) > len(zone) {
			zone = z
		}
	}
	if zone == "" {
		return false
	}
	if !c.synced() {
		return r.done(dns.RcodeServerFailure)
	}
	r.msg.Authoritative = true
	var found bool
	if strings.HasSuffix(zone, "arpa.") {
		found = c.reverse(r)
	} else {
		found = c.forward(r, zone)
	}
	if found {
		if len(r.msg.Answer) == 0 {
			r.msg.Ns = append(r.msg.Ns, c.soa(zone))
		}
		return r.done(dns.RcodeSuccess)
	}
	for _, z := range c.pass {
		if dns.IsSubDomain(dns.Fqdn(z), r.name) {
			return false
		}
	}
	r.msg.Ns = append(r.msg.Ns, c.soa(zone))
	return r.done(dns.RcodeNameError)
}

func (c *cluster) soa(zone string) dns.RR {
	h := header(dns.TypeSOA, c.ttl)
	h.Name = zone
	return &dns.SOA{Hdr: h, Ns: "ns.dns." + zone, Mbox: "hostmaster." + zone, Serial: 1, Refresh: 7200, Retry: 1800, Expire: 86400, Minttl: c.ttl}
}

// forward answers for a name below a cluster domain. It reports whether the name exists.
func (c *cluster) forward(r *request, zone string) bool {
	rest := strings.TrimSuffix(strings.TrimSuffix(r.name, zone), ".")
	if rest == "" {
		return true
	}
	if rest == "dns-version" {
		if r.kind == dns.TypeTXT {
			r.add(&dns.TXT{Hdr: header(dns.TypeTXT, c.ttl), Txt: []string{"1.1.0"}})
		}
		return true
	}
	part := strings.Split(rest, ".")
	slices.Reverse(part) // svc, namespace, service, ...
	switch part[0] {
	case "svc":
		return c.service(r, zone, part[1:])
	case "pod":
		return c.pod(r, part[1:])
	}
	return false
}

// service answers for namespace[, service[, endpoint | protocol, port]].
func (c *cluster) service(r *request, zone string, part []string) bool {
	if len(part) == 0 {
		return true
	}
	if _, err := c.spaces.Get(part[0]); err != nil {
		return false
	}
	if len(part) == 1 {
		return true
	}
	svc, err := c.services.Services(part[0]).Get(part[1])
	if err != nil {
		return false
	}
	domain := part[1] + "." + part[0] + ".svc." + zone
	switch {
	case svc.Spec.Type == v1.ServiceTypeExternalName:
		if len(part) != 2 {
			return false
		}
		r.add(&dns.CNAME{Hdr: header(dns.TypeCNAME, c.ttl), Target: dns.Fqdn(svc.Spec.ExternalName)})
		return true
	case len(part) == 4 && strings.HasPrefix(part[2], "_") && strings.HasPrefix(part[3], "_"):
		return c.srv(r, svc, domain, strings.TrimPrefix(part[3], "_"), strings.TrimPrefix(part[2], "_"))
	case len(part) == 3:
		return c.endpoint(r, svc, part[2])
	case len(part) > 3:
		return false
	case r.kind == dns.TypeSRV:
		return c.srv(r, svc, domain, "", "")
	}
	for _, a := range c.addresses(svc) {
		if r.kind == dns.TypeA {
			r.add(&dns.A{Hdr: header(dns.TypeA, c.ttl), A: a.addr.AsSlice()})
		}
	}
	return svc.Spec.ClusterIP != v1.ClusterIPNone || len(c.addresses(svc)) > 0
}

// target is an address of a service and the name it has below it.
type target struct {
	addr  netip.Addr
	name  string
	ports []discoveryv1.EndpointPort
}

// addresses returns a service's own address or, if it is headless, those of its endpoints.
func (c *cluster) addresses(svc *v1.Service) (list []target) {
	if svc.Spec.ClusterIP != v1.ClusterIPNone {
		for _, ip := range svc.Spec.ClusterIPs {
			if a, err := netip.ParseAddr(ip); err == nil {
				list = append(list, target{addr: a})
			}
		}
		return list
	}
	return c.endpoints(svc.Namespace, svc.Name)
}

func (c *cluster) endpoints(namespace, name string) (list []target) {
	objs, err := c.slices.GetIndexer().ByIndex(byService, namespace+"/"+name)
	if err != nil {
		return nil
	}
	seen := map[netip.Addr]bool{}
	for _, obj := range objs {
		s := obj.(*discoveryv1.EndpointSlice)
		for _, e := range s.Endpoints {
			if !ptr.Deref(e.Conditions.Ready, true) {
				continue
			}
			for _, ip := range e.Addresses {
				a, err := netip.ParseAddr(ip)
				if err != nil || seen[a] {
					continue
				}
				seen[a] = true
				label := ptr.Deref(e.Hostname, "")
				if label == "" {
					label = strings.ReplaceAll(ip, ".", "-")
				}
				list = append(list, target{a, label, s.Ports})
			}
		}
	}
	return list
}

// endpoint answers for one endpoint of a service by its host name or address.
func (c *cluster) endpoint(r *request, svc *v1.Service, label string) bool {
	found := false
	for _, t := range c.endpoints(svc.Namespace, svc.Name) {
		if t.name != label && strings.ReplaceAll(t.addr.String(), ".", "-") != label {
			continue
		}
		found = true
		if r.kind == dns.TypeA {
			r.add(&dns.A{Hdr: header(dns.TypeA, c.ttl), A: t.addr.AsSlice()})
		}
	}
	return found
}

// srv answers for the named ports of a service; empty names mean all.
func (c *cluster) srv(r *request, svc *v1.Service, domain, port, protocol string) bool {
	found := false
	add := func(name, proto string, number int32, host string, addr netip.Addr) {
		if port != "" && !(port == name && strings.EqualFold(protocol, proto)) {
			return
		}
		found = true
		if r.kind != dns.TypeSRV {
			return
		}
		r.add(&dns.SRV{Hdr: header(dns.TypeSRV, c.ttl), Weight: 100, Port: uint16(number), Target: host})
		h := header(dns.TypeA, c.ttl)
		h.Name = host
		r.msg.Extra = append(r.msg.Extra, &dns.A{Hdr: h, A: addr.AsSlice()})
	}
	for _, t := range c.addresses(svc) {
		if svc.Spec.ClusterIP != v1.ClusterIPNone {
			for _, p := range svc.Spec.Ports {
				add(p.Name, string(p.Protocol), p.Port, domain, t.addr)
			}
			continue
		}
		for _, p := range t.ports {
			add(ptr.Deref(p.Name, ""), string(ptr.Deref(p.Protocol, v1.ProtocolTCP)), ptr.Deref(p.Port, 0), t.name+"."+domain, t.addr)
		}
	}
	return found
}

// pod answers for namespace, a-b-c-d.
func (c *cluster) pod(r *request, part []string) bool {
	if !c.pods || len(part) == 0 {
		return false
	}
	if _, err := c.spaces.Get(part[0]); err != nil {
		return false
	}
	if len(part) == 1 {
		return true
	}
	ip := net.ParseIP(strings.ReplaceAll(part[1], "-", "."))
	if ip == nil || len(part) > 2 {
		return false
	}
	if r.kind == dns.TypeA {
		r.add(&dns.A{Hdr: header(dns.TypeA, c.ttl), A: ip})
	}
	return true
}

// reverse answers for an address.
func (c *cluster) reverse(r *request) bool {
	octets := strings.Split(strings.TrimSuffix(r.name, ".in-addr.arpa."), ".")
	slices.Reverse(octets)
	addr, err := netip.ParseAddr(strings.Join(octets, "."))
	if err != nil {
		return false
	}
	var names []string
	all, _ := c.services.List(labels.Everything())
	for _, s := range all {
		if slices.Contains(s.Spec.ClusterIPs, addr.String()) {
			names = append(names, s.Name+"."+s.Namespace+".svc."+c.domain())
		}
	}
	if len(names) == 0 {
		objs, _ := c.slices.GetIndexer().ByIndex(byAddress, addr.String())
		for _, obj := range objs {
			s := obj.(*discoveryv1.EndpointSlice)
			name := s.Labels[discoveryv1.LabelServiceName]
			for _, t := range c.endpoints(s.Namespace, name) {
				if t.addr == addr {
					names = append(names, t.name+"."+name+"."+s.Namespace+".svc."+c.domain())
				}
			}
		}
	}
	for _, name := range names {
		if r.kind == dns.TypePTR {
			r.add(&dns.PTR{Hdr: header(dns.TypePTR, c.ttl), Ptr: name})
		}
	}
	return len(names) > 0
}

// domain is the first zone that is not a reverse one.
func (c *cluster) domain() string {
	for _, z := range c.zones {
		if !strings.HasSuffix(z, "arpa.") {
			return z
		}
	}
	return "cluster.local."
}
