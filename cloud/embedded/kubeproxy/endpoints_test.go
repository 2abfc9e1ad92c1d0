package kubeproxy

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// hinted is a slice whose endpoints have the given hints: for zones z1, z2, or for nodes n1, n2.
func hinted(words, hints []string) *discoveryv1.EndpointSlice {
	s := slice("web-1", words...)
	for i, hint := range hints {
		switch {
		case hint == "":
		case hint[0] == 'z':
			s.Endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: hint}}}
		default: // Whoever hints at a node also hints at its zone.
			s.Endpoints[i].Hints = &discoveryv1.EndpointHints{
				ForNodes: []discoveryv1.ForNode{{Name: hint}}, ForZones: []discoveryv1.ForZone{{Name: "z" + hint[1:]}},
			}
		}
	}
	return s
}

// TestHints: traffic stays where the hints of its endpoints keep it, as long as they cover it.
func TestHints(t *testing.T) {
	const a, b, c = "10.244.1.3@n1", "10.244.2.4@n2", "10.244.3.5@n3"
	to := func(words ...string) (list []string) {
		for _, w := range words {
			list = append(list, w[:10]+":8080")
		}
		return list
	}
	all := []string{a, b, c}
	// n1 is in z1; n2 and n3 are in z2.
	inOne, inTwo := client, netip.MustParseAddr("10.244.3.9")
	for _, tt := range []struct {
		name      string
		endpoints []string
		hints     []string
		src       netip.Addr
		want      []string
	}{
		{"no hints", all, nil, inOne, to(a, b, c)},
		{"its zone", all, []string{"z1", "z2", "z2"}, inOne, to(a)},
		{"another zone", all, []string{"z1", "z2", "z2"}, inTwo, to(b, c)},
		{"one has no hint", all, []string{"z1", "z2", ""}, inOne, to(a, b, c)},
		{"nobody is for its zone", all, []string{"z2", "z2", "z2"}, inOne, to(a, b, c)},
		{"nobody in its zone is ready", []string{a + "!", b, c}, []string{"z1", "z2", "z2"}, inOne, to(b, c)},
		{"a hint that is not ready is none", []string{a, b, c + "!"}, []string{"z1", "z2", ""}, inOne, to(a)},
		{"all terminate", []string{a + "~", b + "~"}, []string{"z2", "z1"}, inOne, to(a, b)},
		{"its node", all, []string{"n1", "n2", "n3"}, inTwo, to(c)},
		{"nobody is for its node", []string{a, b}, []string{"n1", "n2"}, inTwo, to(b)},
		{"from no node", all, []string{"z1", "z2", "z2"}, netip.MustParseAddr("172.18.0.2"), to(a, b, c)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProxy()
			for name, zone := range map[string]string{"n1": "z1", "n2": "z2", "n3": "z2"} {
				p.onNode(&v1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: zone}},
					Spec:       v1.NodeSpec{PodCIDRs: []string{"10.244." + name[1:] + ".0/24"}},
				}, false)
			}
			p.onService(service(nil), false)
			p.onSlice(hinted(tt.endpoints, tt.hints), false)
			got := slices.Sorted(maps.Keys(targets(t, p, tt.src, "tcp", "10.96.0.20:80")))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLabels: what others are to look after is not the proxy's, from when the label is there until it
// is gone.
func TestLabels(t *testing.T) {
	p := newProxy()
	reaches := func(what, want string) {
		t.Helper()
		if got := targets(t, p, client, "tcp", "10.96.0.20:80"); len(got) != 1 || !got[want] {
			t.Errorf("%s: leads to %v, want %s", what, got, want)
		}
	}
	plain, endpoints := service(nil), slice("web-1", "10.244.1.3@n1")
	p.onService(plain, false)
	p.onSlice(endpoints, false)
	reaches("a service", "10.244.1.3:8080")

	others := plain.DeepCopy()
	others.Labels = map[string]string{serviceProxyName: "mine"}
	p.onService(others, false)
	reaches("a service of another proxy", "10.96.0.20:80")
	p.onService(plain, false)
	reaches("a service again", "10.244.1.3:8080")

	headless := endpoints.DeepCopy()
	headless.Labels[v1.IsHeadlessService] = ""
	p.onSlice(headless, false)
	reaches("headless endpoints", vnet.ErrReject.Error())
	p.onSlice(endpoints, false)
	reaches("endpoints again", "10.244.1.3:8080")
}

// dnsService is a UDP service.
func dnsService() *v1.Service {
	return service(func(s *v1.ServiceSpec) {
		s.Ports = []v1.ServicePort{{Name: "dns", Port: 53, Protocol: v1.ProtocolUDP}}
	})
}

func dnsSlice(words ...string) *discoveryv1.EndpointSlice {
	s := slice("web-1", words...)
	s.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("dns"), Port: ptr.To[int32](5353), Protocol: ptr.To(v1.ProtocolUDP)}}
	return s
}

// TestDatagramsFollowEndpoints is a client that has one UDP socket for good, as a resolver or a
// statistics client has, while the pods behind the service come and go.
func TestDatagramsFollowEndpoints(t *testing.T) {
	n := vnet.New(vnet.Config{})
	p := New(n)
	n.SetRouter(p)
	host := func(addr string) *vnet.Stack {
		h, err := n.AddHost(netip.MustParseAddr(addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		return h.NewStack()
	}
	for _, addr := range []string{"10.244.1.3", "10.244.2.4"} { // Each answers with its address.
		conn, err := host(addr).ListenPacket("udp", ":5353")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for buf := make([]byte, 10); ; {
				_, from, err := conn.ReadFrom(buf)
				if err != nil {
					return
				}
				_, _ = conn.WriteTo([]byte(addr), from)
			}
		}()
	}
	socket, err := host(client.String()).ListenPacket("udp", ":4000")
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		t.Helper()
		if _, err := socket.WriteTo([]byte("?"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.96.0.20:53"))); err != nil {
			t.Fatal(err)
		}
		// What is refused or dropped is so before WriteTo returns: only an answer takes a while.
		if to, err := p.Route(client, "udp", netip.MustParseAddrPort("10.96.0.20:53")); err != nil || to.Port() == 53 {
			return ""
		}
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 20)
		k, from, err := socket.ReadFrom(buf)
		if err != nil || from.String() != "10.96.0.20:53" {
			t.Fatalf("an answer from %v: %v", from, err)
		}
		return string(buf[:k])
	}
	for _, step := range []struct {
		name      string
		endpoints []string
		want      string
	}{
		{"no endpoint at first", nil, ""},
		{"its first endpoint", []string{"10.244.1.3@n1"}, "10.244.1.3"},
		{"a second one does not move it", []string{"10.244.1.3@n1", "10.244.2.4@n2"}, "10.244.1.3"},
		// The first still listens, as a pod does that fails its probe or lost its label.
		{"the first is not ready", []string{"10.244.1.3@n1!", "10.244.2.4@n2"}, "10.244.2.4"},
		{"it does not move back", []string{"10.244.1.3@n1", "10.244.2.4@n2"}, "10.244.2.4"},
		{"it stays while the pod drains", []string{"10.244.1.3@n1", "10.244.2.4@n2~"}, "10.244.2.4"},
		{"the second is gone", []string{"10.244.1.3@n1"}, "10.244.1.3"},
		{"nobody is left", nil, ""},
		{"the second is back", []string{"10.244.2.4@n2"}, "10.244.2.4"},
	} {
		p.onService(dnsService(), false)
		p.onSlice(dnsSlice(step.endpoints...), false)
		for range 8 {
			if got := ask(); got != step.want {
				t.Fatalf("%s: answered by %q, want %q", step.name, got, step.want)
			}
		}
	}
}
