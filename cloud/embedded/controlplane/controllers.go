package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
)

const (
	informerResync = 12 * time.Hour // kube-controller-manager's
	mapperReset    = 30 * time.Second

	controllerManager = "kube-controller-manager" // as managed fields name it
)

// controller is one loop of kube-controller-manager.
type controller struct {
	name string
	// build makes the controller; it registers its informers. The functions it returns run until
	// their context ends.
	build func(ctx context.Context, k *controllerKit) (run []func(context.Context), err error)
}

// controllerKit is what controllers are made of: one client and one set of informers for all.
type controllerKit struct {
	config    *rest.Config
	client    clientset.Interface
	metadata  metadata.Interface
	informers informers.SharedInformerFactory
	objects   informerfactory.InformerFactory // of any kind, built-in or not
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	started   chan struct{} // closed once the informers run
	pki       *PKI
	dir       string // where the authority's files are
	timing    Timing
}

func newControllerKit(config *rest.Config, f informers.SharedInformerFactory, cfg Config) (*controllerKit, error) {
	c, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	md, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	k := &controllerKit{
		config: config, client: c, metadata: md, informers: f, started: make(chan struct{}),
		pki: cfg.PKI, dir: cfg.Dir, timing: cfg.Timing,
	}
	k.objects = informerfactory.NewInformerFactory(k.informers,
		metadatainformer.NewSharedInformerFactoryWithOptions(md, informerResync,
			metadatainformer.WithTransform(dropManagedFields)))
	k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(c.Discovery()))
	return k, nil
}

// builtControllers are controllers that do not run yet.
type builtControllers struct {
	kit  *controllerKit
	runs []func(context.Context)
}

// buildControllers builds all controllers, which register what they watch.
func buildControllers(ctx context.Context, config *rest.Config, f informers.SharedInformerFactory,
	cfg Config,
) (*builtControllers, error) {
	k, err := newControllerKit(config, f, cfg)
	if err != nil {
		return nil, fmt.Errorf("build controllers: %w", err)
	}
	b := &builtControllers{kit: k}
	for _, c := range controllers {
		runs, err := c.build(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("build %s controller: %w", c.name, err)
		}
		b.runs = append(b.runs, runs...)
	}
	return b, nil
}

// start runs the controllers until ctx ends. It returns once their caches are filled; done is closed
// when all have stopped.
func (b *builtControllers) start(ctx context.Context) (done <-chan struct{}, err error) {
	k := b.kit
	k.informers.Start(ctx.Done())
	k.objects.Start(ctx.Done())
	close(k.started)
	var wg sync.WaitGroup
	wg.Go(func() { wait.UntilWithContext(ctx, func(context.Context) { k.mapper.Reset() }, mapperReset) })
	for _, run := range b.runs {
		wg.Go(func() { run(ctx) })
	}
	k.informers.WaitForCacheSync(ctx.Done())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		wg.Wait()
	}()
	return stopped, ctx.Err()
}
