package coredns

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// newServer returns a server with a kubernetes plug-in that has seen the given objects.
func newServer(t *testing.T, config string, objects ...any) *server {
	t.Helper()
	blocks, err := parse("Corefile", ".:53 {\n kubernetes "+config+"\n}")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseCluster(blocks[0].directives[0], blocks[0].zones)
	if err != nil {
		t.Fatal(err)
	}
	f := informers.NewSharedInformerFactory(nil, 0) // Its informers are filled, not started.
	if _, err := c.watch(f); err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		var i cache.SharedIndexInformer
		switch obj.(type) {
		case *v1.Service:
			i = f.Core().V1().Services().Informer()
		case *v1.Namespace:
			i = f.Core().V1().Namespaces().Informer()
		case *v1.Pod:
			i = f.Core().V1().Pods().Informer()
		default:
			i = c.slices
		}
		if err := i.GetIndexer().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &server{blocks: []*site{{block: blocks[0], plugins: []plugin{c.serve}}}}
}

// ask returns the reply to a question as text: the code, the answers, the additional records.
func ask(s *server, question string) string {
	name, kind, _ := strings.Cut(question, " ")
	m := &dns.Msg{}
	s.answer(m, dns.Question{Name: dns.Fqdn(name), Qtype: dns.StringToType[kind], Qclass: dns.ClassINET}, "53", maxAliases)
	out := []string{dns.RcodeToString[m.Rcode]}
	for _, list := range [][]dns.RR{m.Answer, m.Extra} {
		var lines []string
		for _, rr := range list {
			lines = append(lines, strings.ReplaceAll(rr.String(), "\t", " "))
		}
		slices.Sort(lines)
		out = append(out, lines...)
	}
	// A reply that says no must carry the SOA, for how long resolvers may remember it.
	if hasSOA := len(m.Ns) == 1 && m.Ns[0].Header().Rrtype == dns.TypeSOA; hasSOA != (len(m.Answer) == 0) {
		out = append(out, "wrong authority")
	}
	return strings.Join(out, "; ")
}

func namespace(name string) *v1.Namespace {
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func service(name, ip string, ports ...v1.ServicePort) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec:       v1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Ports: ports},
	}
}

func slice(service, name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("db"), Port: ptr.To[int32](5432), Protocol: ptr.To(v1.ProtocolTCP)}},
		Endpoints:   endpoints,
	}
}

func endpoint(ip, hostname string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: &v1.ObjectReference{Kind: "Pod", Name: "pod-" + strings.ReplaceAll(ip, ".", "-")},
	}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func objects() []any {
	external := service("out", "")
	external.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: "web.shop.svc.cluster.local"}
	away := service("away", "")
	away.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: "example.com"}
	loop := service("loop", "")
	loop.Spec = v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: "loop.shop.svc.cluster.local"}
	return []any{
		namespace("shop"), namespace("empty"),
		service("web", "10.96.0.20", v1.ServicePort{Name: "http", Port: 80, Protocol: v1.ProtocolTCP}, v1.ServicePort{Name: "dns", Port: 53, Protocol: v1.ProtocolUDP}),
		service("db", v1.ClusterIPNone), service("none", v1.ClusterIPNone), external, away, loop,
		slice("web", "web-1", endpoint("10.244.0.9", "", true)),
		slice("db", "db-1", endpoint("10.244.0.5", "db-0", true), endpoint("10.244.0.6", "", true)),
		slice("db", "db-2", endpoint("10.244.0.5", "db-0", true), endpoint("10.244.0.7", "db-2", false)),
		slice("none", "none-1", endpoint("10.244.0.8", "", false)),
		&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop"}, Status: v1.PodStatus{PodIP: "10.244.0.5"}},
	}
}

func TestKubernetesRecords(t *testing.T) {
	s := newServer(t, "cluster.local in-addr.arpa {\n pods insecure\n}", objects()...)
	tests := []struct{ name, question, want string }{
		{"service", "web.shop.svc.cluster.local A", "NOERROR; web.shop.svc.cluster.local. 5 IN A 10.96.0.20"},
		{"in any case", "WEB.shop.svc.Cluster.Local A", "NOERROR; WEB.shop.svc.Cluster.Local. 5 IN A 10.96.0.20"},
		{"no such type", "web.shop.svc.cluster.local AAAA", "NOERROR"},
		{"no such service", "wep.shop.svc.cluster.local A", "NXDOMAIN"},
		{"no such namespace", "web.shops.svc.cluster.local A", "NXDOMAIN"},
		{"of another namespace", "web.empty.svc.cluster.local A", "NXDOMAIN"},
		// What the search path of a pod tries first.
		{"search path", "web.shop.svc.cluster.local.shop.svc.cluster.local A", "NXDOMAIN"},
		{"search path, outside", "example.com.svc.cluster.local A", "NXDOMAIN"},
		{"search path, short", "web.shop.cluster.local A", "NXDOMAIN"},

		{"headless", "db.shop.svc.cluster.local A", "NOERROR; db.shop.svc.cluster.local. 5 IN A 10.244.0.5; db.shop.svc.cluster.local. 5 IN A 10.244.0.6"},
		{"headless, nothing ready", "none.shop.svc.cluster.local A", "NXDOMAIN"},
		{"endpoint by host name", "db-0.db.shop.svc.cluster.local A", "NOERROR; db-0.db.shop.svc.cluster.local. 5 IN A 10.244.0.5"},
		{"endpoint by address", "10-244-0-6.db.shop.svc.cluster.local A", "NOERROR; 10-244-0-6.db.shop.svc.cluster.local. 5 IN A 10.244.0.6"},
		{"endpoint with a host name by address", "10-244-0-5.db.shop.svc.cluster.local A", "NXDOMAIN"},
		{"endpoint, not ready", "db-2.db.shop.svc.cluster.local A", "NXDOMAIN"},
		{"endpoint of a service with an address", "10-244-0-9.web.shop.svc.cluster.local A", "NOERROR; 10-244-0-9.web.shop.svc.cluster.local. 5 IN A 10.244.0.9"},

		{
			"port", "_http._tcp.web.shop.svc.cluster.local SRV",
			"NOERROR; _http._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 100 80 web.shop.svc.cluster.local.; web.shop.svc.cluster.local. 5 IN A 10.96.0.20",
		},
		{
			"all ports", "web.shop.svc.cluster.local SRV",
			"NOERROR; web.shop.svc.cluster.local. 5 IN SRV 0 50 53 web.shop.svc.cluster.local.; web.shop.svc.cluster.local. 5 IN SRV 0 50 80 web.shop.svc.cluster.local.; web.shop.svc.cluster.local. 5 IN A 10.96.0.20",
		},
		{
			"ports of endpoints", "_db._tcp.db.shop.svc.cluster.local SRV",
			"NOERROR; _db._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 5432 10-244-0-6.db.shop.svc.cluster.local.; _db._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 5432 db-0.db.shop.svc.cluster.local.; " +
				"10-244-0-6.db.shop.svc.cluster.local. 5 IN A 10.244.0.6; db-0.db.shop.svc.cluster.local. 5 IN A 10.244.0.5",
		},
		{"port of another protocol", "_http._udp.web.shop.svc.cluster.local SRV", "NXDOMAIN"},
		{"no such port", "_https._tcp.web.shop.svc.cluster.local SRV", "NXDOMAIN"},
		{"too long", "a._http._tcp.web.shop.svc.cluster.local SRV", "NXDOMAIN"},

		{"alias", "out.shop.svc.cluster.local A", "NOERROR; out.shop.svc.cluster.local. 5 IN CNAME web.shop.svc.cluster.local.; web.shop.svc.cluster.local. 5 IN A 10.96.0.20"},
		{"alias only", "out.shop.svc.cluster.local CNAME", "NOERROR; out.shop.svc.cluster.local. 5 IN CNAME web.shop.svc.cluster.local."},
		{"alias of another type", "out.shop.svc.cluster.local TXT", "NOERROR"},
		{"alias outside", "away.shop.svc.cluster.local A", "NOERROR; away.shop.svc.cluster.local. 5 IN CNAME example.com."},
		{"below an alias", "x.out.shop.svc.cluster.local A", "NXDOMAIN"},
		{"service without alias", "web.shop.svc.cluster.local CNAME", "NOERROR"},

		{"pod", "10-244-9-9.shop.pod.cluster.local A", "NOERROR; 10-244-9-9.shop.pod.cluster.local. 5 IN A 10.244.9.9"},
		{"pod, no address", "nginx.shop.pod.cluster.local A", "NXDOMAIN"},
		{"pod, no namespace", "10-244-9-9.shops.pod.cluster.local A", "NXDOMAIN"},
		{"pods of a namespace", "shop.pod.cluster.local A", "NOERROR"},

		{"reverse, service", "20.0.96.10.in-addr.arpa PTR", "NOERROR; 20.0.96.10.in-addr.arpa. 5 IN PTR web.shop.svc.cluster.local."},
		{"reverse, endpoint", "5.0.244.10.in-addr.arpa PTR", "NOERROR; 5.0.244.10.in-addr.arpa. 5 IN PTR db-0.db.shop.svc.cluster.local."},
		{"reverse, unknown", "1.0.0.10.in-addr.arpa PTR", "NXDOMAIN"},
		{"reverse, nonsense", "x.10.in-addr.arpa PTR", "NXDOMAIN"},

		{"zone", "cluster.local A", "NOERROR"},
		{"services", "svc.cluster.local A", "NOERROR"},
		{"namespace", "shop.svc.cluster.local A", "NOERROR"},
		{"version", "dns-version.cluster.local TXT", `NOERROR; dns-version.cluster.local. 5 IN TXT "1.1.0"`},
		{"neither service nor pod", "x.cluster.local A", "NXDOMAIN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ask(s, tt.question)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := ask(s, "loop.shop.svc.cluster.local A"); strings.Count(got, "CNAME") != maxAliases+1 {
		t.Errorf("an alias of itself: %s", got)
	}
	if got := ask(s, "cluster.local SOA"); !strings.Contains(got, "SOA ns.dns.cluster.local. hostmaster.cluster.local.") {
		t.Errorf("SOA: %s", got)
	}
	if got := ask(s, "example.com A"); !strings.HasPrefix(got, "SERVFAIL") {
		t.Errorf("a name that no plug-in knows: %s", got)
	}
}

func TestKubernetesOptions(t *testing.T) {
	tests := []struct{ name, config, question, want string }{
		{"zones of the block", "{\n}", "web.shop.svc A", "NOERROR; web.shop.svc. 5 IN A 10.96.0.20"},
		{"ttl", "cluster.local {\n ttl 30\n}", "web.shop.svc.cluster.local A", "NOERROR; web.shop.svc.cluster.local. 30 IN A 10.96.0.20"},
		{"pods disabled", "cluster.local", "10-244-0-5.shop.pod.cluster.local A", "NXDOMAIN"},
		{"pods verified", "cluster.local {\n pods verified\n}", "10-244-0-5.shop.pod.cluster.local A", "NOERROR; 10-244-0-5.shop.pod.cluster.local. 5 IN A 10.244.0.5"},
		{"pods verified, no such pod", "cluster.local {\n pods verified\n}", "10-244-0-6.shop.pod.cluster.local A", "NXDOMAIN"},
		{"pods verified, of another namespace", "cluster.local {\n pods verified\n}", "10-244-0-5.empty.pod.cluster.local A", "NXDOMAIN"},
		{"names of pods", "cluster.local {\n endpoint_pod_names\n}", "pod-10-244-0-6.db.shop.svc.cluster.local A", "NOERROR; pod-10-244-0-6.db.shop.svc.cluster.local. 5 IN A 10.244.0.6"},
		{"other namespaces", "cluster.local {\n namespaces empty\n}", "web.shop.svc.cluster.local A", "NXDOMAIN"},
		{"other namespaces, reverse", "cluster.local in-addr.arpa {\n namespaces empty\n}", "20.0.96.10.in-addr.arpa PTR", "NXDOMAIN"},
		{"fall through", "cluster.local in-addr.arpa {\n fallthrough in-addr.arpa\n}", "1.0.0.10.in-addr.arpa PTR", "SERVFAIL; wrong authority"},
		{"fall through elsewhere", "cluster.local in-addr.arpa {\n fallthrough in-addr.arpa\n}", "x.shop.svc.cluster.local A", "NXDOMAIN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ask(newServer(t, tt.config, objects()...), tt.question)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for line, want := range map[string]string{
		"pods maybe":       "wrong value for pods: maybe,  only 'disabled', 'verified', 'insecure'",
		"ttl 3601":         "ttl must be in range [0, 3600]: 3601",
		"ttl":              "ttl must be in range [0, 3600]: ",
		"labels app=x":     "property 'labels' is not supported",
		"resyncperiod 10s": "unknown property 'resyncperiod'",
	} {
		if _, err := parseCluster(directive{body: [][]string{strings.Fields(line)}}, nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v", line, err)
		}
	}
}
