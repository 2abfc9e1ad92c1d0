package embedded

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/chaos"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/kubeproxy"
	"github.com/aiopslab/aiopslab/cloud/embedded/netpolicy"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
	"github.com/aiopslab/aiopslab/cloud/embedded/provisioner"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
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

// Defaults of Options.
const (
	DefaultNodes  = 3
	DefaultCores  = 8
	DefaultMemory = 32 << 30
	DefaultDisk   = 100 << 30
	MaxNodes      = 100
	clusterDomain = "cluster.local"
	serverPort    = 6443
	// gcPercent favours memory over time, from the start: a lazier collector would save a tenth of
	// its CPU time, and leave the heap in pieces that can never be given back.
	gcPercent = 75
)

// Options say what kind of cluster to start. Only Images is required.
type Options struct {
	Images *kit.Registry // what containers can be made of
	// Commands are what the nodes themselves have in /usr/bin, by name: what one can run on a node, as
	// with kubectl debug node and chroot.
	Commands map[string]kit.Program

	Nodes  int   // how many; as many as the snapshot has, or DefaultNodes
	Cores  int   // of each node; DefaultCores
	Memory int64 // of each node, in bytes; DefaultMemory
	Disk   int64 // of each node, in bytes; DefaultDisk

	Listen   string    // where the API is served on the host; any port of 127.0.0.1 by default
	Dir      string    // the cluster's own, removed by Close; a new temporary directory by default
	Snapshot *Snapshot // what to start from; a new cluster by default

	Clock    clock.WithTicker    // paces pods (back-off, probes); the real one by default
	Timing   controlplane.Timing // of the controllers
	Progress func(step string)   // is told what is being done
	Log      *slog.Logger        // is told what Kubernetes and etcd log, at level debug; may be nil
}

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
)

func (o *Options) complete() error {
	if o.Images == nil {
		return errors.New("no images are registered")
	}
	if s := o.Snapshot; s != nil && o.Nodes == 0 {
		o.Nodes = len(s.Nodes)
	} else if s != nil && o.Nodes != len(s.Nodes) {
		return fmt.Errorf("the snapshot has %d nodes, not %d", len(s.Nodes), o.Nodes)
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Nodes, DefaultNodes}, {&o.Cores, DefaultCores}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{{&o.Memory, DefaultMemory}, {&o.Disk, DefaultDisk}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		return fmt.Errorf("a cluster has 1 to %d nodes, not %d", MaxNodes, o.Nodes)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}

// Start brings a cluster up. It returns when the API is ready, all controllers are synced and all nodes are Ready.
// The add-ons are installed in the background; WaitReady waits for them. The cluster lives until Close.
func Start(ctx context.Context, opts Options) (*Cloud, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	debug.SetGCPercent(gcPercent)
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

// openNetwork makes the cluster's network and opens the API's port on it and on the host.
func (c *Cloud) openNetwork() error {
	var err error
	if c.listen, err = net.Listen("tcp", c.opts.Listen); err != nil {
		return fmt.Errorf("listen for the Kubernetes API: %w", err)
	}
	c.network = vnet.New(vnet.Config{
		Subnets: []netip.Prefix{nodeSubnet, podSubnet},
		Virtual: []netip.Prefix{serviceSubnet},
	})
	c.network.SetRouter(noServices{})
	if c.server, err = c.network.AddHost(serverAddr); err != nil {
		return err
	}
	c.stack = c.server.NewStack()
	files := vfs.NewTree(vfs.Options{})
	env := &kit.Env{FS: files.Root(), Dir: "/"}
	if err := env.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	conf := fmt.Sprintf("nameserver %s\nsearch svc.%s %s\noptions ndots:5\n", dnsService, clusterDomain, clusterDomain)
	if err := env.WriteFile("/etc/resolv.conf", []byte(conf), 0o644); err != nil {
		return err
	}
	c.names = cri.NewNetwork(c.stack, files.Root())
	return nil
}

// noServices routes until there is a kube-proxy. An API server that starts from a snapshot asks at
// once for the APIs that pods serve, and is not ready before it knows that they do not answer.
type noServices struct{}

func (noServices) Route(_ netip.Addr, _ string, dst netip.AddrPort) (netip.AddrPort, error) {
	if serviceSubnet.Contains(dst.Addr()) {
		return dst, vnet.ErrReject
	}
	return dst, nil
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
	dir := filepath.Join(c.dir, "controlplane")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	c.plane, err = controlplane.Start(ctx, controlplane.Config{
		Dir: dir, Listener: listenBoth(inside, c.listen), Port: serverPort, PKI: c.pki,
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

// loops is everything that acts on the cluster's state by itself. It is stopped during a reset.
type loops struct {
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	factory informers.SharedInformerFactory
	events  record.EventBroadcaster
}

// startLoops starts what acts on the state, and returns when all of it has seen the state. If there
// are nodes to restore, it does so in between: their programs find the network as it was, and the
// kubelets find the programs.
func (c *Cloud) startLoops(ctx context.Context, restore *Snapshot) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &loops{cancel: cancel}
	c.loops = l
	var err error
	if l.factory, err = c.plane.NewInformers(); err != nil {
		return err
	}
	l.events = record.NewBroadcaster(record.WithContext(run))
	l.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	prov, err := provisioner.New(c.client, l.factory, c.fleet,
		l.events.NewRecorder(scheme.Scheme, v1.EventSource{Component: provisioner.Name}))
	if err != nil {
		return err
	}
	if err := c.plane.PrepareLoops(ctx, l.factory); err != nil {
		return err
	}
	if err := c.startNetwork(ctx, run, l.factory); err != nil {
		return err
	}
	if restore != nil {
		if err := c.fleet.Restore(restore.Nodes); err != nil {
			return err
		}
	}
	l.wg.Go(func() { prov.Run(run) })
	var g errgroup.Group
	g.Go(c.plane.StartLoops)
	g.Go(func() error { return c.fleet.Start(ctx, l.factory) })
	g.Go(func() error {
		l.factory.WaitForCacheSync(ctx.Done())
		return ctx.Err()
	})
	return g.Wait()
}

// startNetwork makes services and policies follow the informers, which it starts. Until it knows
// everything, the containers that run are served by what was there before.
func (c *Cloud) startNetwork(ctx, run context.Context, f informers.SharedInformerFactory) error {
	proxy, policy := kubeproxy.New(c.network), netpolicy.New(c.network)
	services, err := proxy.Watch(f)
	if err != nil {
		return err
	}
	policies, err := policy.Watch(f)
	if err != nil {
		return err
	}
	if err := c.chaos.Watch(f); err != nil {
		return err
	}
	f.Start(run.Done())
	if !cache.WaitFor(ctx, "", append(services, policies...)...) {
		return ctx.Err()
	}
	c.network.SetRouter(proxy)
	c.network.SetAdmitter(policy)
	return nil
}

// stopLoops ends what startLoops started and waits for it.
func (c *Cloud) stopLoops() {
	l := c.loops
	if l == nil {
		return
	}
	c.loops = nil
	l.cancel()
	var wg sync.WaitGroup
	wg.Go(c.plane.StopLoops)
	wg.Go(c.fleet.Stop)
	wg.Wait()
	l.wg.Wait()
	l.factory.Shutdown()
	l.events.Shutdown()
}

// RESTConfig implements cloud.Cloud. Requests do not leave the process.
func (c *Cloud) RESTConfig() *rest.Config { return c.plane.RESTConfig("aiopslab") }

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

// Address returns where the API is served on the host.
func (c *Cloud) Address() string { return c.listen.Addr().String() }

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
			c.listen.Close()
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
