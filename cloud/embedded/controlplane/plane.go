package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane/definitions"
)

// Config says how a control plane runs.
type Config struct {
	Dir      string       // scratch directory, which must exist and be empty
	Listener net.Listener // where the API is served over TLS
	Port     int          // of Listener
	PKI      *PKI

	Address     net.IP // of the API server in the cluster's network
	ServiceIP   net.IP // of the service "kubernetes"
	ServiceCIDR string
	Dial        Dialer // into the cluster's network

	State  State // what the store holds at the start; nil for a new cluster
	Timing Timing
	// Log is told what Kubernetes and etcd log, at level debug. It may be nil.
	Log *slog.Logger
}

// Timing holds the periods of kube-controller-manager that are too long for tests. Zero values are the stock
// defaults.
type Timing struct {
	NodeMonitorPeriod           time.Duration // how often nodes are looked at: 5 s
	NodeMonitorGrace            time.Duration // how long a node may be silent: 50 s
	AutoscalerSync              time.Duration // how often autoscalers act: 15 s
	AutoscalerCPUInitialization time.Duration // for how long a starting pod's CPU is ignored: 5 min
}

func (t *Timing) complete() {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&t.NodeMonitorPeriod, 5*time.Second)
	set(&t.NodeMonitorGrace, 50*time.Second)
	set(&t.AutoscalerSync, 15*time.Second)
	set(&t.AutoscalerCPUInitialization, 5*time.Minute)
}

// Plane is a running control plane.
type Plane struct {
	cfg    Config
	etcd   *etcdserver.EtcdServer
	broken *failure
	store  *clientv3.Client
	api    *apiServer
	client clientset.Interface
	stop   context.CancelFunc

	mu         sync.Mutex
	startLoops func() error
	stopLoops  func() // nil while there are none
}

// Start runs etcd and the API server, and returns when the API is ready. The loops do not run yet.
// The plane lives until Close, whatever becomes of ctx.
func Start(ctx context.Context, cfg Config) (*Plane, error) {
	cfg.Timing.complete()
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Plane{cfg: cfg, stop: stop, broken: newFailure(cfg.Log)}
	captureLogs(p.broken)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-p.broken.done:
			cancel()
		case <-run.Done():
		}
	}()
	if err := p.start(ctx, run); err != nil {
		p.Close()
		return nil, cmp.Or(p.Err(), err)
	}
	return p, nil
}

// start does what Start says; run is for what outlives it.
func (p *Plane) start(ctx, run context.Context) (err error) {
	types := definitions.Ahead()
	var endpoint string
	if p.etcd, endpoint, err = startEtcd(p.cfg.Dir, p.broken); err != nil {
		return err
	}
	p.store = newDirectStore(p.etcd).client()
	if p.cfg.State != nil {
		if err := waitEtcd(ctx, p.etcd); err != nil {
			return err
		}
		if _, err := writeState(ctx, p.store, p.cfg.State); err != nil {
			return err
		}
	}
	if p.api, err = startAPIServer(run, p.cfg, endpoint, types); err != nil {
		return err
	}
	if p.client, err = clientset.NewForConfig(p.RESTConfig("aiopslab")); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	if p.cfg.State == nil {
		g.Go(func() error { return bootstrap(gctx, p.client, p.cfg.ServiceCIDR) })
	}
	g.Go(func() error { return p.api.waitReady(gctx, p.client.CoreV1().RESTClient()) })
	return g.Wait()
}

// RESTConfig returns a configuration for clients in the process with the API server's own
// identity. The name is what managed fields and audit show as the client.
func (p *Plane) RESTConfig(name string) *rest.Config {
	c := rest.CopyConfig(p.api.config)
	c.UserAgent = fmt.Sprintf("%s/%s (linux/amd64) kubernetes", name, Version)
	return c
}

// NewInformers returns informers that controllers can share. They leave out managed fields.
func (p *Plane) NewInformers() (informers.SharedInformerFactory, error) {
	c, err := clientset.NewForConfig(p.RESTConfig(controllerManager))
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactoryWithOptions(c, informerResync, informers.WithTransform(dropManagedFields)),
		nil
}

// PrepareLoops builds the controllers on the given informers, which must not run yet: no handler of a half built
// controller may be called. The caller shuts the informers down.
func (p *Plane) PrepareLoops(ctx context.Context, f informers.SharedInformerFactory) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopLoops != nil {
		return errors.New("the loops run already")
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c, err := buildControllers(run, p.RESTConfig(controllerManager), f, p.cfg)
	if err != nil {
		cancel()
		return err
	}
	var done [2]<-chan struct{}
	p.startLoops = func() error {
		var g errgroup.Group
		g.Go(func() (err error) {
			done[0], err = c.start(run)
			p.api.parts.manager.running.Store(err == nil)
			return err
		})
		g.Go(func() (err error) {
			done[1], err = startScheduler(run, p.RESTConfig("kube-scheduler"))
			p.api.parts.scheduler.running.Store(err == nil)
			return err
		})
		return g.Wait()
	}
	p.stopLoops = func() {
		cancel()
		p.api.parts.manager.running.Store(false)
		p.api.parts.scheduler.running.Store(false)
		for _, d := range done {
			if d != nil {
				<-d
			}
		}
	}
	return nil
}

// StartLoops runs the controllers that PrepareLoops built, and the scheduler. It returns when their
// caches are filled.
func (p *Plane) StartLoops() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.startLoops()
}

// StopLoops ends the controllers and the scheduler and waits for them.
func (p *Plane) StopLoops() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopLoops != nil {
		p.stopLoops()
		p.stopLoops = nil
	}
}

// Revision is that of the store: the resource version of its last write.
func (p *Plane) Revision() int64 { return p.etcd.KV().Rev() }

// State reads the store. Leases are returned apart.
func (p *Plane) State(ctx context.Context) (state, leases State, err error) {
	return readState(ctx, p.store)
}

// Restore makes the store hold exactly s, which has leases as well. The loops must be stopped meanwhile: they would
// react to a state that is half restored, and remember objects that are gone. It returns when the API server has seen
// all changes.
func (p *Plane) Restore(ctx context.Context, s State) error {
	written, err := writeState(ctx, p.store, s)
	if err != nil {
		return err
	}
	return p.awaitCaches(ctx, written)
}

// Done is closed when the control plane breaks down, and Err tells why then. All that is left to do
// with it is Close.
func (p *Plane) Done() <-chan struct{} { return p.broken.done }

// Err returns why the control plane broke down, or nil.
func (p *Plane) Err() error {
	if p.broken.failed() {
		return p.broken.err
	}
	return nil
}

// Close stops everything. After a breakdown it does not wait for what cannot stop any more.
func (p *Plane) Close() {
	if p.broken.failed() {
		p.stop()
		return
	}
	p.StopLoops()
	p.stop()
	if p.api != nil {
		<-p.api.stopped
	}
	if p.store != nil {
		p.store.Close()
	}
	if p.etcd != nil {
		p.etcd.Stop()
	}
}
