package kubeproxy

import (
	"net/netip"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// The host port of a pod is open on the addresses it names, and on loopback for its own node only.
func TestHostPorts(t *testing.T) {
	p := New(vnet.New(vnet.Config{}))
	for _, n := range []struct{ name, addr string }{{"node-1", "172.18.0.3"}, {"node-2", "172.18.0.4"}} {
		p.onNode(&v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.name},
			Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: n.addr}}},
		}, false)
	}
	pod := func(name, ip, node, hostIP string, protocol v1.Protocol) *v1.Pod {
		return &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: v1.PodSpec{Containers: []v1.Container{{Ports: []v1.ContainerPort{
				{HostIP: hostIP, HostPort: 54323, ContainerPort: 8080, Protocol: protocol},
			}}}},
			Status: v1.PodStatus{PodIP: ip, HostIP: node},
		}
	}
	local := pod("local", "10.244.0.2", "172.18.0.3", "127.0.0.1", v1.ProtocolTCP)
	for _, pod := range []*v1.Pod{
		local,
		pod("address", "10.244.0.3", "172.18.0.3", "172.18.0.3", v1.ProtocolTCP),
		pod("datagrams", "10.244.0.4", "172.18.0.3", "172.18.0.3", v1.ProtocolUDP),
		pod("everywhere", "10.244.1.2", "172.18.0.4", "", v1.ProtocolTCP),
	} {
		p.onPod(pod, false)
	}
	check := func(src, protocol, dst, want string) {
		t.Helper()
		got, err := p.Route(netip.MustParseAddr(src), protocol, netip.MustParseAddrPort(dst))
		if err != nil || got.String() != want {
			t.Errorf("%s from %s to %s leads to %s, %v; want %s", protocol, src, dst, got, err, want)
		}
	}
	check("172.18.0.3", "tcp", "127.0.0.1:54323", "10.244.0.2:8080")
	check("10.244.1.9", "tcp", "172.18.0.3:54323", "10.244.0.3:8080")
	check("10.244.1.9", "udp", "172.18.0.3:54323", "10.244.0.4:8080")
	check("172.18.0.3", "tcp", "172.18.0.4:54323", "10.244.1.2:8080")
	check("172.18.0.4", "tcp", "127.0.0.1:54323", "10.244.1.2:8080")
	check("10.244.0.9", "tcp", "127.0.0.1:54323", "127.0.0.1:54323") // A pod's loopback is its own.
	p.onPod(local, true)
	check("172.18.0.3", "tcp", "127.0.0.1:54323", "127.0.0.1:54323")
}
