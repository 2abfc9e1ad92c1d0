package coredns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// forward answers for a name below a cluster domain. It reports whether the name exists.
func (c *cluster) forward(r *request, zone string) bool {
	rest := strings.TrimSuffix(strings.TrimSuffix(r.name, zone), ".")
	if rest == "" {
		if r.kind == dns.TypeSOA {
			r.msg.Answer = append(r.msg.Answer, c.soa(zone))
		}
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

// exposed reports whether a namespace exists and is answered for.
func (c *cluster) exposed(namespace string) bool {
	_, err := c.spaces.Get(namespace)
	return err == nil && (len(c.only) == 0 || slices.Contains(c.only, namespace))
}

// service answers for namespace[, service[, endpoint | protocol, port]].
func (c *cluster) service(r *request, zone string, part []string) bool {
	if len(part) == 0 {
		return true
	}
	if !c.exposed(part[0]) {
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
		c.alias(r, dns.Fqdn(svc.Spec.ExternalName))
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
	targets := c.addresses(svc)
	for _, t := range targets {
		r.address(t.addr, c.ttl)
	}
	return svc.Spec.ClusterIP != v1.ClusterIPNone || len(targets) > 0
}

// alias answers with another name and, for an address, with what that leads to.
func (c *cluster) alias(r *request, target string) {
	switch r.kind {
	case dns.TypeA, dns.TypeAAAA, dns.TypeCNAME:
		r.add(&dns.CNAME{Hdr: header(dns.TypeCNAME, c.ttl), Target: target})
	}
	if r.kind == dns.TypeA || r.kind == dns.TypeAAAA {
		r.msg.Answer = append(r.msg.Answer, r.resolve(target)...)
	}
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
				list = append(list, target{a, c.label(&e, ip), s.Ports})
			}
		}
	}
	return list
}

// label is the name of an endpoint below its service.
func (c *cluster) label(e *discoveryv1.Endpoint, ip string) string {
	switch {
	case ptr.Deref(e.Hostname, "") != "":
		return *e.Hostname
	case c.podNames && e.TargetRef != nil && e.TargetRef.Name != "":
		return e.TargetRef.Name
	}
	return strings.NewReplacer(".", "-", ":", "-").Replace(ip)
}

// endpoint answers for one endpoint of a service by its name.
func (c *cluster) endpoint(r *request, svc *v1.Service, label string) bool {
	found := false
	for _, t := range c.endpoints(svc.Namespace, svc.Name) {
		if t.name == label {
			found = true
			r.address(t.addr, c.ttl)
		}
	}
	return found
}

// srv answers for the named ports of a service; empty names mean all.
func (c *cluster) srv(r *request, svc *v1.Service, domain, port, protocol string) bool {
	found := false
	hosts := map[string]bool{}
	var records []*dns.SRV
	add := func(name, proto string, number int32, host string, addr netip.Addr) {
		if port != "" && !(port == name && strings.EqualFold(protocol, proto)) {
			return
		}
		found = true
		if r.kind != dns.TypeSRV {
			return
		}
		records = append(records, &dns.SRV{Hdr: header(dns.TypeSRV, c.ttl), Port: uint16(number), Target: host})
		if !hosts[host] {
			hosts[host] = true
			h := header(dns.TypeA, c.ttl)
			h.Name = host
			r.msg.Extra = append(r.msg.Extra, &dns.A{Hdr: h, A: addr.AsSlice()})
		}
	}
	for _, t := range c.addresses(svc) {
		if svc.Spec.ClusterIP != v1.ClusterIPNone {
			for _, p := range svc.Spec.Ports {
				add(p.Name, string(p.Protocol), p.Port, domain, t.addr)
			}
			continue
		}
		for _, p := range t.ports {
			add(ptr.Deref(p.Name, ""), string(ptr.Deref(p.Protocol, v1.ProtocolTCP)), ptr.Deref(p.Port, 0),
				t.name+"."+domain, t.addr)
		}
	}
	for _, rr := range records {
		rr.Weight = uint16(max(1, 100/len(records)))
		r.add(rr)
	}
	return found
}

// pod answers for namespace, a-b-c-d.
func (c *cluster) pod(r *request, part []string) bool {
	if c.pods == podsDisabled || len(part) == 0 {
		return false
	}
	if !c.exposed(part[0]) {
		return false
	}
	if len(part) == 1 {
		return true
	}
	addr, err := netip.ParseAddr(strings.ReplaceAll(part[1], "-", "."))
	if err != nil || len(part) > 2 || c.pods == podsVerified && !c.isPod(part[0], addr) {
		return false
	}
	r.address(addr, c.ttl)
	return true
}

// isPod reports whether a pod of a namespace has an address.
func (c *cluster) isPod(namespace string, addr netip.Addr) bool {
	pods, _ := c.podList.GetIndexer().ByIndex(byAddress, addr.String())
	return slices.ContainsFunc(pods, func(obj any) bool { return obj.(*v1.Pod).Namespace == namespace })
}

// reverse answers for an address.
func (c *cluster) reverse(r *request) bool {
	octets := strings.Split(strings.TrimSuffix(r.name, ".in-addr.arpa."), ".")
	slices.Reverse(octets)
	addr, err := netip.ParseAddr(strings.Join(octets, "."))
	if err != nil {
		return false
	}
	names := c.namesOf(addr)
	for _, name := range names {
		if r.kind == dns.TypePTR {
			r.add(&dns.PTR{Hdr: header(dns.TypePTR, c.ttl), Ptr: name})
		}
	}
	return len(names) > 0
}

// namesOf returns the name of the service an address belongs to, or those of the endpoints.
func (c *cluster) namesOf(addr netip.Addr) (names []string) {
	services, _ := c.services.List(labels.Everything())
	for _, s := range services {
		if slices.Contains(s.Spec.ClusterIPs, addr.String()) && c.exposed(s.Namespace) {
			return []string{s.Name + "." + s.Namespace + ".svc." + c.domain()}
		}
	}
	objs, _ := c.slices.GetIndexer().ByIndex(byAddress, addr.String())
	for _, obj := range objs {
		s := obj.(*discoveryv1.EndpointSlice)
		service := s.Labels[discoveryv1.LabelServiceName]
		if !c.exposed(s.Namespace) {
			continue
		}
		for _, t := range c.endpoints(s.Namespace, service) {
			name := t.name + "." + service + "." + s.Namespace + ".svc." + c.domain()
			if t.addr == addr && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
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
