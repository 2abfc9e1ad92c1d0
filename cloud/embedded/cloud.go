package embedded

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/chaos"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// The cluster's addresses are those of a kind cluster.
var (
	nodeSubnet    = netip.MustParsePrefix("172.18.0.0/16")
	podSubnet     = netip.MustParsePrefix("10.244.0.0/16")
	serviceSubnet = netip.MustParsePrefix("10.96.0.0/16")
	serverAddr    = netip.MustParseAddr("172.18.0.2") // at serverPort
	serverService = netip.MustParseAddr("10.96.0.1")
	dnsService    = netip.MustParseAddr("10.96.0.10")
)

const (
	clusterDomain = "cluster.local"
	serverPort    = 6443
	// startMemory is how much a cluster that starts from a snapshot may use before it collects anything. Nearly all
	// that such a start makes stays, so there is little to collect; under load the heap is as big anyway.
	startMemory = 512 << 20
)

// Cloud is a cluster inside the process.
type Cloud struct {
	opts    Options
	dir     string
	pki     *controlplane.PKI
	network *vnet.Network
	server  *vnet.Host // the control plane's place in the network
	stack   *vnet.Stack
	names   kit.Network // resolves the cluster's names
	listen  net.Listener
	plane   *controlplane.Plane
	client  clientset.Interface
	fleet   *node.Fleet
	chaos   *chaos.Engine
	addons  addons

	collector collector

	mu    sync.Mutex // serialises Snapshot, Reset and Close
	seed  uint64     // the last one
	loops *loops     // nil while they are stopped

	closeOnce sync.Once
}

var (
	_ cloud.Cloud    = (*Cloud)(nil)
	_ cloud.Resetter = (*Cloud)(nil)
	_ cloud.Chaos    = (*Cloud)(nil)
	_ cloud.Director = (*Cloud)(nil)
	_ cloud.Gated    = (*Cloud)(nil)
	_ cloud.Seeder   = (*Cloud)(nil)
	_ cloud.Reviser  = (*Cloud)(nil)
)

// Start brings a cluster up. It returns when the API is ready, all controllers are synced and all nodes are Ready.
// The add-ons are installed in the background; WaitReady waits for them. The cluster lives until Close.
func Start(ctx context.Context, opts Options) (*Cloud, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	debug.SetGCPercent(gcPercent)
	if opts.Snapshot != nil {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(startMemory))
	}
	c := &Cloud{opts: opts}
	if err := c.start(ctx); err != nil {
		err = cmp.Or(c.Err(), err)
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cloud) start(ctx context.Context) (err error) {
	if c.dir = c.opts.Dir; c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "aiopslab-"); err != nil {
			return err
		}
	}
	if err := c.openNetwork(); err != nil {
		return err
	}
	c.opts.Progress("starting etcd and the API server")
	if err := c.startPlane(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.plane.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	c.opts.Progress("starting controllers, scheduler and nodes")
	if err := c.startFleet(); err != nil {
		return err
	}
	c.chaos = c.newChaos()
	if err := c.startLoops(ctx, c.opts.Snapshot); err != nil {
		return err
	}
	if s := c.opts.Snapshot; s != nil {
		return c.awaitPrograms(ctx, s)
	}
	if err := c.waitSchedulable(ctx); err != nil {
		return err
	}
	c.addons.start(c.plane.Done(), c.installAddons)
	return nil
}

// waitSchedulable returns when the node controller has seen that the nodes are ready. Pods that are
// created earlier end up in the scheduler's back-off.
func (c *Cloud) waitSchedulable(ctx context.Context) error {
	for {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes.Items, func(n v1.Node) bool {
			return len(n.Spec.Taints) > 0
		}) && len(nodes.Items) == c.opts.Nodes {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the nodes are not ready: %w", ctx.Err())
		}
	}
}

// Settle gives back the memory that is not in use. Call it when the cluster is ready, and after
// something big.
func (c *Cloud) Settle() {
	runtime.GC() // What is in pools goes with the second collection after its last use.
	debug.FreeOSMemory()
	releaseCode()
}

// Seed implements cloud.Seeder.
func (c *Cloud) Seed(seed uint64) {
	c.mu.Lock() // Not in the middle of a reset.
	defer c.mu.Unlock()
	c.seed = seed
	c.network.Seed(seed)
}

func (c *Cloud) startPlane(ctx context.Context) (err error) {
	var state controlplane.State
	if s := c.opts.Snapshot; s != nil {
		pki := s.PKI
		c.pki, state = &pki, s.State
		err = c.pki.Load()
	} else {
		c.pki, err = controlplane.NewPKI()
	}
	if err != nil {
		return err
	}
	inside, err := c.stack.Listen("tcp", netip.AddrPortFrom(serverAddr, serverPort).String())
	if err != nil {
		return err
	}
	doors := []net.Listener{inside}
	if c.listen != nil {
		doors = append(doors, c.listen)
	}
	dir := filepath.Join(c.dir, "controlplane")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	c.plane, err = controlplane.Start(ctx, controlplane.Config{
		Dir: dir, Listener: listenAll(doors...), Port: serverPort, PKI: c.pki,
		Address: serverAddr.AsSlice(), ServiceIP: serverService.AsSlice(), ServiceCIDR: serviceSubnet.String(),
		Dial: c.stack.DialContext, State: state, Timing: c.opts.Timing, Log: c.opts.Log,
	})
	if err != nil {
		return err
	}
	c.client, err = clientset.NewForConfig(c.plane.RESTConfig("aiopslab"))
	return err
}

// startFleet builds the nodes.
func (c *Cloud) startFleet() error {
	var specs []node.Spec
	var ips []net.IP
	for i := range c.opts.Nodes {
		addr := netip.AddrFrom4([4]byte{172, 18, 0, byte(3 + i)})
		ips = append(ips, addr.AsSlice())
		specs = append(specs, node.Spec{
			Name: fmt.Sprintf("node-%d", i+1), Address: addr,
			Pods: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(i), 0}), 24), Cores: c.opts.Cores,
			Memory: c.opts.Memory, Disk: c.opts.Disk,
			Labels: map[string]string{
				v1.LabelTopologyZone:   fmt.Sprintf("zone-%c", 'a'+i%3),
				v1.LabelTopologyRegion: "region-1",
			},
		})
	}
	cert, err := c.pki.TLS(controlplane.Identity{Name: "system:node", Groups: []string{"system:nodes"}, IPs: ips})
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.pki.CACert)
	client, err := clientset.NewForConfig(c.plane.RESTConfig("kubelet"))
	if err != nil {
		return err
	}
	c.fleet, err = node.NewFleet(node.Config{
		Client: client, Network: c.network, Images: cri.NewImages(c.opts.Images), Commands: c.opts.Commands,
		Nodes:  specs,
		Server: fmt.Sprintf("https://%s", netip.AddrPortFrom(serverAddr, serverPort)), CA: c.pki.CACert,
		ClusterDNS: dnsService, ClusterDomain: clusterDomain, Version: controlplane.Version,
		TLS: cert, ClientCA: pool, Dir: filepath.Join(c.dir, "nodes"), Clock: c.opts.Clock, Log: c.opts.Log,
	})
	return err
}

// RESTConfig implements cloud.Cloud. Requests do not leave the process.
func (c *Cloud) RESTConfig() *rest.Config { return c.plane.RESTConfig("aiopslab") }

// Revision implements cloud.Reviser.
func (c *Cloud) Revision() int64 { return c.plane.Revision() }

// DirectConfig implements cloud.Director.
func (c *Cloud) DirectConfig() *rest.Config { return c.plane.DirectConfig("aiopslab") }

// SetGate implements cloud.Gated. Kubelets and controllers, which are in the process, do not meet the
// gate.
func (c *Cloud) SetGate(g *cloud.Gate) {
	if g == nil {
		g = &cloud.Gate{}
	}
	c.plane.SetGate(g.API)
	c.fleet.SetGate(g.Kubelet)
}

// Dial implements cloud.Cloud.
func (c *Cloud) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return c.names.DialContext(ctx, network, address)
}

// Address returns where the API is served on the host; nothing if it is not.
func (c *Cloud) Address() string {
	if c.listen == nil {
		return ""
	}
	return c.listen.Addr().String()
}

// Dir returns the directory that holds the cluster's files until Close.
func (c *Cloud) Dir() string { return c.dir }

// Node returns a node by name, or nil.
func (c *Cloud) Node(name string) *node.Node { return c.fleet.Node(name) }

// Network returns the cluster's network.
func (c *Cloud) Network() *vnet.Network { return c.network }

// Done is closed when the cluster breaks down, for instance because its disk is full, and Err tells
// why then. All that is left to do with it is Close.
func (c *Cloud) Done() <-chan struct{} { return c.plane.Done() }

// Err returns why the cluster broke down, or nil.
func (c *Cloud) Err() error {
	if c.plane == nil {
		return nil
	}
	return c.plane.Err()
}

// Close implements cloud.Cloud.
func (c *Cloud) Close() error {
	var err error
	c.closeOnce.Do(func() {
		c.addons.stop()
		if c.chaos != nil {
			c.chaos.Close()
		}
		if c.Err() != nil { // What waits for the store would wait forever.
			c.plane.Close()
			if c.listen != nil {
				c.listen.Close()
			}
			err = removeAll(c.dir)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stopLoops()
		if c.fleet != nil {
			c.fleet.Close()
		}
		if c.plane != nil {
			c.plane.Close()
		}
		if c.server != nil {
			c.server.Close()
		}
		if c.listen != nil {
			c.listen.Close()
		}
		if c.dir != "" {
			err = removeAll(c.dir)
		}
	})
	return err
}

// removeAll removes a directory that something may still be writing to.
func removeAll(dir string) (err error) {
	for range 20 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		runtime.Gosched()
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
