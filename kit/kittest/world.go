package kittest

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// patience is how long a test waits for something that should happen at once.
const patience = time.Minute

// World is a network of machines.
type World struct {
	t   testing.TB
	net *vnet.Network

	mu    sync.Mutex
	names map[string]string // host name -> address
}

// New returns an empty world that ends with the test.
func New(t testing.TB) *World {
	return &World{
		t:     t,
		names: map[string]string{},
		net: vnet.New(vnet.Config{
			Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
			Virtual: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		}),
	}
}

// Name lets a name be resolved to an address.
func (w *World) Name(name, addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = addr
}

// Machine adds a machine with an empty file system. Its name can be resolved.
func (w *World) Machine(name, addr string) *Machine {
	w.t.Helper()
	host, err := w.net.AddHost(netip.MustParseAddr(addr))
	if err != nil {
		w.t.Fatal(err)
	}
	w.Name(name, addr)
	tree := vfs.NewTree(vfs.Options{Type: "overlay"})
	m := &Machine{
		World: w, Name: name, Addr: addr,
		Tree: tree, Namespace: vfs.NewNamespace(tree),
		Programs: map[string]kit.Program{},
		net:      network{host.NewStack(), w},
		scratch:  filepath.Join(w.t.TempDir(), name),
	}
	w.t.Cleanup(host.Close)
	return m
}

// network is a machine's kit.Network: the wire, and the names of the world.
type network struct {
	*vnet.Stack
	world *World
}

var _ kit.Network = network{}

func (n network) LookupHost(_ context.Context, host string) ([]string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []string{addr.String()}, nil
	}
	if host == "localhost" {
		return []string{"127.0.0.1"}, nil
	}
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if addr, ok := n.world.names[host]; ok {
		return []string{addr}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.96.0.10:53", IsNotFound: true}
}

func (n network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" {
		addrs, err := n.LookupHost(ctx, host)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		address = net.JoinHostPort(addrs[0], port)
	}
	return n.Stack.DialContext(ctx, network, address)
}

func (n network) Addrs() []net.IP { return []net.IP{n.Host().Addr().AsSlice()} }

// Client returns an HTTP client on the machine.
func (m *Machine) Client() *http.Client {
	transport := m.Env().HTTPTransport()
	m.World.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// WaitListen waits until somebody accepts connections at an address, which is the machine's own if
// it has no host.
func (m *Machine) WaitListen(address string) {
	m.World.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c, err := m.net.DialContext(context.Background(), "tcp", address)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			m.World.t.Fatalf("nobody listens on %s: %v", address, err)
		}
	}
}
