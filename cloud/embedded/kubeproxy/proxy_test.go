package kubeproxy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a pod on node n1.
var client = netip.MustParseAddr("10.244.1.9")

// newProxy returns a proxy of two nodes.
func newProxy() *Proxy {
	p := New(vnet.New(vnet.Config{}))
	for name, cidr := range map[string]string{"n1": "10.244.1.0/24", "n2": "10.244.2.0/24"} {
		p.onNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1.NodeSpec{PodCIDRs: []string{cidr}},
			Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}, {Type: v1.NodeInternalIP, Address: "192.168.0." + name[1:]}}},
		}, false)
	}
	return p
}

func service(change func(*v1.ServiceSpec)) *v1.Service {
	s := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: v1.ServiceSpec{
		ClusterIP: "10.96.0.20", ClusterIPs: []string{"10.96.0.20"},
		Ports: []v1.ServicePort{{Name: "http", Port: 80, Protocol: v1.ProtocolTCP, NodePort: 30080}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// slice makes endpoints of words: ADDRESS@NODE, with ! if it is not ready, ~ if it terminates.
func slice(name string, words ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(v1.ProtocolTCP)}},
	}
	for _, w := range words {
		addr, node, _ := strings.Cut(strings.Trim(w, "!~"), "@")
		terminating := strings.HasSuffix(w, "~")
		ready := !terminating && !strings.HasSuffix(w, "!")
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{addr}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{
			Ready: &ready, Serving: ptr.To(ready || terminating), Terminating: &terminating,
		}})
	}
	return s
}

// targets returns all endpoints that connections reach, or the error.
func targets(t *testing.T, p *Proxy, src netip.Addr, protocol, dst string) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for range 64 {
		to, err := p.Route(src, protocol, netip.MustParseAddrPort(dst))
		if err != nil {
			return map[string]bool{err.Error(): true}
		}
		seen[to.String()] = true
	}
	return seen
}

func TestRoute(t *testing.T) {
	const a, b = "10.244.1.3@n1", "10.244.2.4@n2"
	reject, drop := vnet.ErrReject.Error(), vnet.ErrDrop.Error()
	local := func(s *v1.ServiceSpec) {
		s.InternalTrafficPolicy = ptr.To(v1.ServiceInternalTrafficPolicyLocal)
		s.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
	}
	tests := []struct {
		name      string
		change    func(*v1.ServiceSpec)
		endpoints []string
		dst       string
		want      []string
	}{
		{"cluster address", nil, []string{a, b}, "10.96.0.20:80", []string{"10.244.1.3:8080", "10.244.2.4:8080"}},
		{"another port", nil, []string{a, b}, "10.96.0.20:81", []string{"10.96.0.20:81"}},
		{"another address", nil, []string{a, b}, "10.244.2.4:80", []string{"10.244.2.4:80"}},
		{"no endpoint", nil, nil, "10.96.0.20:80", []string{reject}},
		{"not ready", nil, []string{a + "!", b}, "10.96.0.20:80", []string{"10.244.2.4:8080"}},
		{"nobody ready", nil, []string{a + "!"}, "10.96.0.20:80", []string{reject}},
		{"terminating", nil, []string{a + "~", b}, "10.96.0.20:80", []string{"10.244.2.4:8080"}},
		{"all terminating", nil, []string{a + "~", b + "!"}, "10.96.0.20:80", []string{"10.244.1.3:8080"}},
		{"the port has another name", func(s *v1.ServiceSpec) { s.Ports[0].Name = "web" }, []string{a}, "10.96.0.20:80", []string{reject}},
		{"headless", func(s *v1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "None", []string{"None"} }, []string{a}, "10.96.0.20:80", []string{"10.96.0.20:80"}},
		{"external name", func(s *v1.ServiceSpec) { s.Type = v1.ServiceTypeExternalName }, []string{a}, "10.96.0.20:80", []string{"10.96.0.20:80"}},
		{"node port", nil, []string{a, b}, "192.168.0.2:30080", []string{"10.244.1.3:8080", "10.244.2.4:8080"}},
		{"node port elsewhere", nil, []string{a, b}, "192.168.0.3:30080", []string{"192.168.0.3:30080"}},
		{"external address", func(s *v1.ServiceSpec) { s.ExternalIPs = []string{"203.0.113.5"} }, []string{a}, "203.0.113.5:80", []string{"10.244.1.3:8080"}},
		{"local", local, []string{a, b}, "10.96.0.20:80", []string{"10.244.1.3:8080"}},
		{"local, nobody here", local, []string{b}, "10.96.0.20:80", []string{drop}},
		{"local, nobody at all", local, nil, "10.96.0.20:80", []string{reject}},
		// The node that was addressed decides, not the sender's.
		{"local node port", local, []string{a, b}, "192.168.0.2:30080", []string{"10.244.2.4:8080"}},
		{"local node port, nobody there", local, []string{a}, "192.168.0.2:30080", []string{drop}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProxy()
			p.onSlice(slice("web-1", tt.endpoints...), false) // Either may come first.
			p.onService(service(tt.change), false)
			got := slices.Sorted(maps.Keys(targets(t, p, client, "tcp", tt.dst)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoutesFollowChanges(t *testing.T) {
	p := newProxy()
	p.onService(service(nil), false)
	p.onSlice(slice("web-1", "10.244.1.3@n1"), false)
	p.onSlice(slice("web-2", "10.244.2.4@n2"), false)
	if got := targets(t, p, client, "tcp", "10.96.0.20:80"); len(got) != 2 {
		t.Errorf("two slices: %v", got)
	}
	p.onSlice(slice("web-1"), true)
	if got := targets(t, p, client, "tcp", "10.96.0.20:80"); len(got) != 1 || !got["10.244.2.4:8080"] {
		t.Errorf("one slice: %v", got)
	}
	p.onService(service(func(s *v1.ServiceSpec) { s.Ports[0].Port = 81 }), false)
	if got := targets(t, p, client, "tcp", "10.96.0.20:80"); !got["10.96.0.20:80"] {
		t.Errorf("the old port: %v", got)
	}
	p.onSlice(slice("web-2"), true)
	p.onService(service(nil), true)
	if len(p.routes)+len(p.owned)+len(p.slices)+len(p.services) != 0 {
		t.Errorf("something is left: %v %v %v %v", p.routes, p.owned, p.slices, p.services)
	}
}

func TestAffinity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProxy()
		p.onService(service(func(s *v1.ServiceSpec) {
			s.SessionAffinity = v1.ServiceAffinityClientIP
			s.SessionAffinityConfig = &v1.SessionAffinityConfig{ClientIP: &v1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)}}
		}), false)
		all := []string{"10.244.1.3@n1", "10.244.2.4@n2", "10.244.2.5@n2", "10.244.2.6@n2"}
		p.onSlice(slice("web-1", all...), false)
		first := targets(t, p, client, "tcp", "10.96.0.20:80")
		if len(first) != 1 {
			t.Errorf("one client reaches %v", first)
		}
		time.Sleep(59 * time.Second)
		p.onSlice(slice("web-1", all...), false) // The choice survives other changes.
		for to := range targets(t, p, client, "tcp", "10.96.0.20:80") {
			if !first[to] {
				t.Errorf("the client moved from %v to %s", first, to)
			}
		}
		others := map[string]bool{}
		for i := range byte(32) {
			for to := range targets(t, p, netip.AddrFrom4([4]byte{10, 244, 2, 100 + i}), "tcp", "10.96.0.20:80") {
				others[to] = true
			}
		}
		if len(others) != len(all) {
			t.Errorf("32 clients reach %v", others)
		}
		// A choice is forgotten after a minute without connections.
		moved := map[string]bool{}
		for range 32 {
			time.Sleep(60 * time.Second)
			for to := range targets(t, p, client, "tcp", "10.96.0.20:80") {
				moved[to] = true
			}
		}
		if len(moved) < 2 {
			t.Errorf("the client stays at %v for good", moved)
		}
		p.onSlice(slice("web-1", "10.244.9.9@n2"), false)
		if got := targets(t, p, client, "tcp", "10.96.0.20:80"); !got["10.244.9.9:8080"] {
			t.Errorf("the endpoint is gone, and the client still reaches %v", got)
		}
	})
}

func pod(uid, ip string, phase v1.PodPhase) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)},
		Spec: v1.PodSpec{NodeName: "n2", Containers: []v1.Container{{Ports: []v1.ContainerPort{
			{ContainerPort: 53, HostPort: 5353, Protocol: v1.ProtocolUDP},
			{ContainerPort: 8080, HostPort: 8081, Protocol: v1.ProtocolTCP, HostIP: "0.0.0.0"},
			{ContainerPort: 9090, HostPort: 9090, Protocol: v1.ProtocolTCP, HostIP: "127.0.0.1"},
			{ContainerPort: 7070, Protocol: v1.ProtocolTCP},
		}}}},
		Status: v1.PodStatus{Phase: phase, PodIP: ip, HostIP: "192.168.0.2"},
	}
}

func TestHostPortsFollowPods(t *testing.T) {
	p := newProxy()
	reaches := func(protocol, dst, want string) {
		t.Helper()
		if got := targets(t, p, client, protocol, dst); len(got) != 1 || !got[want] {
			t.Errorf("%s %s leads to %v, want %s", protocol, dst, got, want)
		}
	}
	p.onPod(pod("1", "", v1.PodPending), false)
	reaches("udp", "192.168.0.2:5353", "192.168.0.2:5353")
	p.onPod(pod("1", "10.244.2.7", v1.PodRunning), false)
	reaches("udp", "192.168.0.2:5353", "10.244.2.7:53")
	reaches("tcp", "192.168.0.2:8081", "10.244.2.7:8080")
	reaches("tcp", "192.168.0.2:9090", "192.168.0.2:9090") // It is open to the node alone.
	reaches("tcp", "192.168.0.1:8081", "192.168.0.1:8081") // Another node.
	// A successor takes the port before the last word of its predecessor.
	p.onPod(pod("2", "10.244.2.8", v1.PodRunning), false)
	p.onPod(pod("1", "10.244.2.7", v1.PodSucceeded), false)
	p.onPod(pod("1", "10.244.2.7", v1.PodSucceeded), true)
	reaches("tcp", "192.168.0.2:8081", "10.244.2.8:8080")
	p.onPod(pod("2", "10.244.2.8", v1.PodRunning), true)
	if len(p.routes)+len(p.hostPort) != 0 {
		t.Errorf("something is left: %v %v", p.routes, p.hostPort)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset(service(nil))
		f := informers.NewSharedInformerFactory(c, 0)
		p := newProxy()
		if _, err := p.Watch(f); err != nil {
			t.Fatal(err)
		}
		f.StartWithContext(t.Context())
		f.WaitForCacheSync(t.Context().Done())
		if _, err := c.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), slice("web-1", "10.244.1.3@n1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := targets(t, p, client, "tcp", "10.96.0.20:80"); !got["10.244.1.3:8080"] {
			t.Errorf("%v", got)
		}
		if err := c.CoreV1().Services("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := targets(t, p, client, "tcp", "10.96.0.20:80"); !got["10.96.0.20:80"] {
			t.Errorf("%v", got)
		}
	})
}

// TestOneSeedOneChoice: which pod a connection gets follows from the seed and the pods' names, whatever
// their addresses are, in whatever order they are listed, and however many others connect.
func TestOneSeedOneChoice(t *testing.T) {
	choices := func(seed uint64, noise int, pods ...string) (chosen []string) {
		n := vnet.New(vnet.Config{})
		p, names := New(n), map[string]string{}
		var endpoints []string
		for i, addr := range pods {
			h, err := n.AddHost(netip.MustParseAddr(addr))
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			h.SetKind(fmt.Sprintf("shop/web-%d", i)) // As of a StatefulSet.
			names[addr+":8080"] = fmt.Sprintf("web-%d", i)
			endpoints = append(endpoints, addr+"@n1")
		}
		slices.Sort(endpoints)
		p.onService(service(nil), false)
		p.onSlice(slice("web-1", endpoints...), false)
		n.Seed(seed)
		for range 100 {
			for range noise {
				_, _ = p.Route(netip.MustParseAddr("10.244.1.8"), "tcp", netip.MustParseAddrPort("10.96.0.20:80"))
			}
			to, err := p.Route(client, "tcp", netip.MustParseAddrPort("10.96.0.20:80"))
			if err != nil {
				t.Fatal(err)
			}
			chosen = append(chosen, names[to.String()])
		}
		return chosen
	}
	one := choices(7, 0, "10.244.1.3", "10.244.1.4", "10.244.1.5")
	if got := choices(7, 3, "10.244.1.29", "10.244.1.11", "10.244.1.20"); !slices.Equal(got, one) {
		t.Errorf("with one seed:\n%v\n%v", one, got)
	}
	if slices.Equal(one, choices(8, 0, "10.244.1.3", "10.244.1.4", "10.244.1.5")) {
		t.Error("with another seed it is the same")
	}
	for i := range 3 {
		name := fmt.Sprintf("web-%d", i)
		count := 0
		for _, c := range one {
			if c == name {
				count++
			}
		}
		if count < 20 || count > 50 {
			t.Errorf("%s gets %d of 100 connections", name, count)
		}
	}
}
