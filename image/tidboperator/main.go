package tidboperator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	// program is what the operator is called in events.
	program = "tidb-controller-manager"
	version = "v1.6.0"
	// lookEvery is how often a cluster is looked at when nothing has changed.
	lookEvery = 5 * time.Second
	// What PD says must be so for doubtTime before a cluster is said not to be ready; meanwhile it is asked often.
	doubtTime  = 6 * time.Second
	doubtEvery = time.Second
	// What fails is tried again, after ever longer.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Image is the operator.
func Image() kit.Image {
	return kit.Image{
		Names: []string{"pingcap/tidb-operator"}, Tags: `v1\.6\.\d+`, Entrypoint: []string{"/usr/local/bin/" + program},
		Programs: map[string]kit.Program{"/usr/local/bin/" + program: Main}, Memory: 40 << 20, Size: 120 << 20,
	}
}

// Main is tidb-controller-manager.
func Main(ctx context.Context, env *kit.Env) error {
	f := pflag.NewFlagSet(program, pflag.ContinueOnError)
	f.SetOutput(env.Stderr)
	scoped := f.Bool("cluster-scoped", false, "whether it cares for all namespaces; only its own is supported")
	auto := f.Bool("auto-failover", true, "whether who has failed for long is replaced")
	periods := map[string]*time.Duration{}
	for _, name := range []string{pd, tikv, tidb} {
		periods[name] = f.Duration(name+"-failover-period", failoverPeriod, "how long a server of "+name+
			" must have failed before it is replaced")
	}
	address := f.String("metrics-addr", ":6060", "where to serve metrics")
	if err := f.Parse(env.Args[1:]); err != nil {
		return kit.Exit(2)
	}
	if *scoped {
		fmt.Fprintln(env.Stderr, "the operator cares for its own namespace alone: give it --cluster-scoped=false")
		return kit.Exit(2)
	}
	config, err := incluster.Config(env)
	if err != nil {
		return fmt.Errorf("failed to get config: %w", err)
	}
	config.UserAgent = program + "/" + version
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	transport := env.HTTPTransport()
	defer transport.CloseIdleConnections()
	o := &operator{
		env: env, namespace: incluster.Namespace(env), client: client, dynamic: dyn,
		driver: &httpDriver{&http.Client{Transport: transport}}, auto: *auto, periods: map[string]time.Duration{},
	}
	for name, d := range periods {
		o.periods[name] = *d
	}
	o.count()
	ln, err := env.Net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.metrics, promhttp.HandlerOpts{}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer srv.Close()
	wg.Go(func() { _ = srv.Serve(ln) })
	o.logf('I', "Welcome to TiDB Operator. TiDB Operator Version: %s", version)
	return o.run(ctx)
}

// operator watches the clusters of a namespace.
type operator struct {
	env       *kit.Env
	namespace string
	client    kubernetes.Interface
	dynamic   dynamic.Interface
	driver    driver
	auto      bool                     // failover, and after how long
	periods   map[string]time.Duration // by component

	queue    workqueue.TypedRateLimitingInterface[string]
	clusters cache.GenericLister
	syncer   *syncer
	said     map[string]string    // what was logged last of a cluster that waits
	doubted  map[string]time.Time // since when a cluster seems not to be ready any more

	metrics  *prometheus.Registry
	failures *prometheus.CounterVec
	replicas *prometheus.GaugeVec
}

// logf writes a line as klog does.
func (o *operator) logf(level byte, format string, args ...any) {
	fmt.Fprintf(o.env.Stderr, "%c%s       1 tidb_cluster_controller.go:1] %s\n", level,
		time.Now().UTC().Format("0102 15:04:05.000000"), fmt.Sprintf(format, args...))
}

func (o *operator) count() {
	labels := []string{"namespace", "name"}
	o.metrics = prometheus.NewRegistry()
	o.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tidb_operator_cluster_update_errors", Help: "Total number of errors while a cluster was synced.",
	}, labels)
	o.replicas = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tidb_operator_cluster_spec_replicas", Help: "Desired replicas of each component in TidbCluster.",
	}, append(labels, "component"))
	o.metrics.MustRegister(o.failures, o.replicas)
}

func (o *operator) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: o.client.CoreV1().Events(o.namespace)})
	factory := informers.NewSharedInformerFactoryWithOptions(o.client, 0, informers.WithNamespace(o.namespace))
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(o.dynamic, 0, o.namespace, nil)
	o.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry))
	o.said, o.doubted = map[string]string{}, map[string]time.Time{}
	o.clusters = custom.ForResource(Resource).Lister()
	o.syncer = &syncer{
		client: o.client, driver: o.driver, get: newListers(factory), now: time.Now, auto: o.auto, periods: o.periods,
		evictions: map[string]eviction{},
		events:    broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: program}),
	}
	if err := o.watch(factory, custom); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	custom.Start(ctx.Done())
	defer factory.Shutdown()
	defer custom.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	custom.WaitForCacheSync(ctx.Done())
	defer context.AfterFunc(ctx, o.queue.ShutDown)()
	o.logf('I', "Starting tidbcluster controller")
	for o.next(ctx) {
	}
	return nil
}

// watch has clusters looked at when they, or what was made for them, change.
func (o *operator) watch(factory informers.SharedInformerFactory,
	custom dynamicinformer.DynamicSharedInformerFactory,
) error {
	enqueue := func(obj any) {
		if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		m, ok := obj.(metav1.Object)
		if !ok {
			return
		}
		name := m.GetLabels()[labelInstance]
		if u, ok := obj.(*unstructured.Unstructured); ok {
			name = u.GetName()
		}
		if name != "" {
			o.queue.Add(name)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, DeleteFunc: enqueue,
		UpdateFunc: func(old, obj any) {
			if o, ok := old.(metav1.Object); ok && o.GetResourceVersion() == obj.(metav1.Object).GetResourceVersion() {
				return
			}
			enqueue(obj)
		},
	}
	core := factory.Core().V1()
	for _, i := range []cache.SharedIndexInformer{
		custom.ForResource(Resource).Informer(), factory.Apps().V1().StatefulSets().Informer(),
		core.Services().Informer(), core.ConfigMaps().Informer(), core.Pods().Informer(),
		core.PersistentVolumeClaims().Informer(),
	} {
		if _, err := i.AddEventHandler(handler); err != nil {
			return err
		}
	}
	return nil
}

// next cares for one cluster.
func (o *operator) next(ctx context.Context) bool {
	name, down := o.queue.Get()
	if down {
		return false
	}
	defer o.queue.Done(name)
	err := o.care(ctx, name)
	var soon errSoon
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		o.queue.Forget(name)
		o.queue.AddAfter(name, lookEvery)
		o.said[name] = ""
	case errors.Is(err, errStale):
		o.queue.AddAfter(name, firstRetry)
	case onlyWaits(err):
		o.queue.Forget(name)
		after := lookEvery
		if errors.As(err, &soon) {
			after = doubtEvery
		}
		o.queue.AddAfter(name, after)
		if o.said[name] != err.Error() {
			o.said[name] = err.Error()
			o.logf('I', "TidbCluster: %s/%s, still need sync: %v, requeuing", o.namespace, name, oneLine(err))
		}
	default:
		o.failures.WithLabelValues(o.namespace, name).Inc()
		o.logf('E', "TidbCluster: %s/%s, sync failed %v, requeuing", o.namespace, name, oneLine(err))
		o.queue.AddRateLimited(name)
	}
	return true
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// onlyWaits reports whether nothing is wrong.
func onlyWaits(err error) bool {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			if !onlyWaits(e) {
				return false
			}
		}
		return true
	}
	switch err.(type) {
	case errWait, errSoon:
		return true
	}
	return false
}

// care brings a cluster a step further and tells how it is.
func (o *operator) care(ctx context.Context, name string) error {
	obj, err := o.clusters.ByNamespace(o.namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil // What was made for it goes with it.
	}
	if err != nil {
		return err
	}
	u := obj.(*unstructured.Unstructured)
	if u.GetDeletionTimestamp() != nil {
		return nil
	}
	c := &cluster{}
	b, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil {
		return fmt.Errorf("the specification cannot be read: %w", err)
	}
	for _, component := range []string{pd, tikv, tidb} {
		if p := c.component(component); p != nil {
			o.replicas.WithLabelValues(o.namespace, name, component).Set(float64(p.Replicas))
		}
	}
	synced, failed := o.syncer.sync(ctx, c)
	st, heard, err := o.syncer.observe(ctx, c, synced, time.Now())
	if err == nil && o.doubts(c, st) {
		o.queue.AddAfter(name, doubtEvery)
		return failed
	}
	if err == nil {
		replaced := o.syncer.failover(ctx, c, st, heard, time.Now())
		if !equality.Semantic.DeepEqual(st, &c.Status) {
			err = o.writeStatus(ctx, c, st)
		}
		err = errors.Join(replaced, err)
	}
	return errors.Join(failed, err)
}

// doubts reports whether it is too early to say that a cluster is not ready any more: servers that were just started
// have not heard of each other yet.
func (o *operator) doubts(c *cluster, st *status) bool {
	was, is := len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Status == v1.ConditionTrue, st.Conditions[0]
	if !was || is.Status == v1.ConditionTrue || is.Reason != reasonPD && is.Reason != reasonTiKV {
		delete(o.doubted, c.Name)
		return false
	}
	if o.doubted[c.Name].IsZero() {
		o.doubted[c.Name] = time.Now()
	}
	return time.Since(o.doubted[c.Name]) < doubtTime
}

func (o *operator) writeStatus(ctx context.Context, c *cluster, st *status) error {
	m, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(st)
	if err != nil {
		return err
	}
	// What was noted must not be lost to a status that was made of an older one.
	patch, err := json.Marshal([]any{
		map[string]any{"op": "add", "path": "/metadata/resourceVersion", "value": c.ResourceVersion},
		map[string]any{"op": "add", "path": "/status", "value": m},
	})
	if err != nil {
		return err
	}
	_, err = o.dynamic.Resource(Resource).Namespace(c.Namespace).Patch(ctx, c.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: program}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return errStale
	}
	return err
}

// listers read from what was watched.
type listers struct {
	f informers.SharedInformerFactory
}

func newListers(f informers.SharedInformerFactory) listers { return listers{f} }

// orNil turns an object that is not there into nil.
func orNil[T any](v *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return v, err
}

func (l listers) service(namespace, name string) (*v1.Service, error) {
	return orNil(l.f.Core().V1().Services().Lister().Services(namespace).Get(name))
}

func (l listers) configMap(namespace, name string) (*v1.ConfigMap, error) {
	return orNil(l.f.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace).Get(name))
}

func (l listers) statefulSet(namespace, name string) (*appsv1.StatefulSet, error) {
	return orNil(l.f.Apps().V1().StatefulSets().Lister().StatefulSets(namespace).Get(name))
}

func (l listers) claim(namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return orNil(l.f.Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(namespace).Get(name))
}

func (l listers) pod(namespace, name string) (*v1.Pod, error) {
	return orNil(l.f.Core().V1().Pods().Lister().Pods(namespace).Get(name))
}
