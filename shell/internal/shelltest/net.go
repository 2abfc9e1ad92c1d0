package shelltest

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// Net is the network as the container sees it. The container is 10.244.0.5.
type Net struct {
	*vnet.Stack
	Wire *vnet.Network

	t     testing.TB
	mu    sync.Mutex
	names map[string]string
	// Open are the sockets that netstat shows.
	Open []kit.Socket
}

var (
	_ kit.Network      = (*Net)(nil)
	_ kit.Pinger       = (*Net)(nil)
	_ kit.SocketLister = (*Net)(nil)
)

func newNet(t testing.TB) *Net {
	wire := vnet.New(vnet.Config{
		Subnets:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		Virtual:     []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		HostTimeout: 20 * time.Millisecond,
	})
	n := &Net{Wire: wire, t: t, names: map[string]string{"localhost": "127.0.0.1"}}
	n.Stack = n.Host("10.244.0.5")
	return n
}

// Host adds a host to the network.
func (n *Net) Host(addr string) *vnet.Stack {
	n.t.Helper()
	h, err := n.Wire.AddHost(netip.MustParseAddr(addr))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(h.Close)
	return h.NewStack()
}

// Name lets a name be resolved to an address.
func (n *Net) Name(name, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = addr
}

// LookupHost knows the names that were given.
func (n *Net) LookupHost(_ context.Context, host string) ([]string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []string{addr.String()}, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr, ok := n.names[host]; ok {
		return []string{addr}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// DialContext resolves names.
func (n *Net) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := n.LookupHost(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return n.Stack.DialContext(ctx, network, net.JoinHostPort(addrs[0], port))
}

// Addrs returns the container's address.
func (n *Net) Addrs() []net.IP { return []net.IP{net.IPv4(10, 244, 0, 5)} }

// Ping answers for every host there is.
func (n *Net) Ping(ctx context.Context, host string) (net.IP, time.Duration, error) {
	addrs, err := n.LookupHost(ctx, host)
	if err != nil {
		return nil, 0, err
	}
	ip := net.ParseIP(addrs[0])
	if n.Wire.Host(netip.MustParseAddr(addrs[0])) == nil {
		<-ctx.Done()
		return ip, 0, ctx.Err()
	}
	return ip, 123 * time.Microsecond, nil
}

// Sockets returns Open.
func (n *Net) Sockets() []kit.Socket { return n.Open }
