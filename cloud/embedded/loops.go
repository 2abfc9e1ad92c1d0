package embedded

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/aiopslab/aiopslab/cloud/embedded/kubeproxy"
	"github.com/aiopslab/aiopslab/cloud/embedded/netpolicy"
	"github.com/aiopslab/aiopslab/cloud/embedded/provisioner"
)

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
