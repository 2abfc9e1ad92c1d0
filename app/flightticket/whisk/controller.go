package whisk

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	program = "controller"
	// Port is where the controller listens.
	Port = "3233"
	// defaultIdle is after how long an action without work is scaled to nothing, unless IDLE_TIMEOUT says otherwise.
	defaultIdle = 20 * time.Second
	// A scaling that fails is tried again, after ever longer.
	firstRetry, lastRetry = 50 * time.Millisecond, 2 * time.Second
	scalers               = 2
)

// controller takes invocations and scales actions.
type controller struct {
	s         *service.Service
	client    kubernetes.Interface
	namespace string
	idle      time.Duration

	fleet    *fleet
	store    *store
	m        *metrics
	queue    workqueue.TypedRateLimitingInterface[string] // actions that have too few pods
	pods     *http.Client                                 // traced, for invocations
	plain    *http.Client
	room     chan struct{}
	invoking sync.WaitGroup
}

// Main is the program controller, in a pod.
func Main(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: "owdev-controller"})
	if err != nil {
		return err
	}
	defer s.Close()
	config, err := incluster.Config(env)
	if err != nil {
		return s.Fatal(ctx, "There is no cluster to run actions in", err)
	}
	config.UserAgent, config.QPS, config.Burst = program, 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return s.Fatal(ctx, "There is no cluster to run actions in", err)
	}
	return Run(ctx, s, client, incluster.Namespace(env))
}

// Run is the controller of the actions in a namespace. It serves once it knows all of them. REDIS_ADDRESS is where it
// shares activations with others, and IDLE_TIMEOUT after how long an idle action is scaled to nothing.
func Run(ctx context.Context, s *service.Service, client kubernetes.Interface, namespace string) error {
	c := &controller{
		s: s, client: client, namespace: namespace, idle: defaultIdle, m: newMetrics(s.Registerer()),
		pods: s.HTTPClient(runWait), room: make(chan struct{}, maxInFlight),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}
	if text := s.Env.Getenv("IDLE_TIMEOUT"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			s.Log.Error("IDLE_TIMEOUT makes no sense, want a duration of a second at least", "IDLE_TIMEOUT", text)
			return kit.Exit(1)
		}
		c.idle = d
	}
	transport := s.Env.HTTPTransport()
	defer transport.CloseIdleConnections()
	c.plain = &http.Client{Transport: transport}
	c.fleet = newFleet(c.queue.Add)
	var redis *service.Redis
	if address := s.Env.Getenv("REDIS_ADDRESS"); address != "" {
		redis = s.Redis(address)
	}
	c.store = newStore(s, redis)
	c.recall()

	// What is under way when it is told to stop is finished, and may need pods for that.
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = Label }))
	defer factory.Shutdown()
	defer stop()
	if err := c.watch(going, factory); err != nil {
		return s.Fatal(ctx, "Actions cannot be watched", err)
	}
	for _, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return ctx.Err()
		}
	}
	defer c.invoking.Wait()
	wg.Go(func() { c.store.run(going) })
	wg.Go(func() { c.shrink(going) })
	for range scalers {
		wg.Go(func() { c.work(going) })
	}
	defer c.queue.ShutDown()
	s.Log.Info("Serving actions", "port", Port, "actions", len(c.fleet.names()), "idle_timeout", c.idle)
	return s.ServeHTTP(ctx, c.handler(), ":"+cmp.Or(s.Env.Getenv("PORT"), Port))
}

// work scales actions up that have too few pods, until the queue is shut down.
func (c *controller) work(ctx context.Context) {
	for {
		name, shut := c.queue.Get()
		if shut {
			return
		}
		if c.grow(ctx, name) != nil {
			c.queue.AddRateLimited(name)
		} else {
			c.queue.Forget(name)
		}
		c.queue.Done(name)
	}
}

// watch begins to follow the Deployments and pods of actions.
func (c *controller) watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	err := follow(c, factory.Apps().V1().Deployments().Informer(), c.fleet.setDeployment, c.fleet.dropDeployment)
	if err != nil {
		return err
	}
	err = follow(c, factory.Core().V1().Pods().Informer(), c.fleet.setPod, c.fleet.dropPod)
	if err == nil {
		factory.Start(ctx.Done())
	}
	return err
}

// follow hands the objects of an informer on, and logs why they cannot be had.
func follow[T *appsv1.Deployment | *v1.Pod](c *controller, i cache.SharedIndexInformer, set, drop func(T)) error {
	err := i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		c.s.Log.Error("Actions cannot be watched", "error", err)
	})
	if err != nil {
		return err
	}
	_, err = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { set(o.(T)) }, UpdateFunc: func(_, o any) { set(o.(T)) },
		DeleteFunc: func(o any) {
			if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			if object, ok := o.(T); ok {
				drop(object)
			}
		},
	})
	return err
}
