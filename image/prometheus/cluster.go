package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

// cluster is what Prometheus knows of the cluster it runs in. Prometheus' own discovery connects to
// the API server through the machine's network and watches everything once per job; this one uses
// the container's network and shares the watches. The targets are made by Prometheus' own code.
type cluster struct {
	ctx context.Context // of the program; its end stops the watches
	env *kit.Env

	mu      sync.Mutex
	client  clientset.Interface
	watches map[watchKey]cache.SharedIndexInformer
	roles   map[kubernetes.Role]bool // of targets
	wg      sync.WaitGroup
}

type watchKey struct {
	role             kubernetes.Role
	namespace        string
	labels, selector string
}

// roleNamespace is no role of a target: namespaces only add labels to others.
const roleNamespace kubernetes.Role = "namespace"

// clusterConfig is a kubernetes_sd_config of the container's own cluster.
type clusterConfig struct {
	*kubernetes.SDConfig
	cluster *cluster
}

var _ discovery.Config = (*clusterConfig)(nil)

// NewDiscoverer implements discovery.Config.
func (c *clusterConfig) NewDiscoverer(o discovery.DiscovererOptions) (discovery.Discoverer, error) {
	switch {
	case c.APIServer.URL != nil, c.KubeConfig != "":
		return nil, errors.New("kubernetes_sd_configs: only the cluster of this pod can be discovered; remove " +
			"api_server and kubeconfig_file")
	case c.AttachMetadata.Deployment, c.AttachMetadata.Job, c.AttachMetadata.CronJob:
		return nil, errors.New("kubernetes_sd_configs: attach_metadata supports node and namespace only")
	}
	if err := c.cluster.connect(c.Role); err != nil {
		return nil, err
	}
	return &discoverer{
		config: c.SDConfig, cluster: c.cluster, log: o.Logger,
		events: o.Metrics.(*clusterMetrics).events,
	}, nil
}

// clusterMetrics count what the watches see.
type clusterMetrics struct {
	reg    prometheus.Registerer
	events *prometheus.CounterVec
}

func newClusterMetrics(reg prometheus.Registerer) *clusterMetrics {
	return &clusterMetrics{reg, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: discovery.KubernetesMetricsNamespace + "_events_total", Help: "The number of Kubernetes events handled.",
	}, []string{"role", "event"})}
}

func (m *clusterMetrics) Register() error { return m.reg.Register(m.events) }
func (m *clusterMetrics) Unregister()     { m.reg.Unregister(m.events) }

func newCluster(ctx context.Context, env *kit.Env) *cluster {
	return &cluster{
		ctx: ctx, env: env, watches: map[watchKey]cache.SharedIndexInformer{}, roles: map[kubernetes.Role]bool{},
	}
}

// wait returns when the watches have ended, after the context did.
func (c *cluster) wait() { c.wg.Wait() }

// connect makes ready to find targets of a role.
func (c *cluster) connect(role kubernetes.Role) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roles[role] = true
	if c.client != nil {
		return nil
	}
	cfg, err := incluster.Config(c.env)
	if err != nil {
		return err
	}
	cfg.UserAgent = "Prometheus/" + Version
	cfg.ContentType = runtime.ContentTypeProtobuf
	c.client, err = clientset.NewForConfig(cfg)
	return err
}

// watch returns the objects of a role, in all namespaces if it is "". Watches are shared.
func (c *cluster) watch(role kubernetes.Role, namespace string,
	selectors []kubernetes.SelectorConfig,
) cache.SharedIndexInformer {
	key := watchKey{role: role, namespace: namespace}
	for _, s := range selectors {
		if s.Role == role {
			key.labels, key.selector = s.Label, s.Field
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.watches[key]; w != nil {
		return w
	}
	getter, resource, object := c.source(role)
	lw := cache.NewFilteredListWatchFromClient(getter, resource, namespace, func(o *metav1.ListOptions) {
		o.LabelSelector, o.FieldSelector = key.labels, key.selector
	})
	w := cache.NewSharedIndexInformer(lw, object, 0, indexers(role))
	_ = w.SetTransform(trim) // It only fails once the informer runs.
	c.watches[key] = w
	c.wg.Go(func() { w.RunWithContext(c.ctx) })
	return w
}

// within reports whether the watches have seen what there is, and all nodes and pods that can be scraped are among the
// sources of targets, if those are made of nodes or pods.
func (c *cluster) within(sources map[string]bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	watched := map[kubernetes.Role]bool{}
	for key, w := range c.watches {
		if !w.HasSynced() {
			return false
		}
		watched[key.role] = true
		if !c.roles[key.role] {
			continue
		}
		for _, o := range w.GetStore().List() {
			if source := sourceOf(o); source != "" && !sources[source] {
				return false
			}
		}
	}
	for role := range c.roles {
		if !watched[role] {
			return false
		}
	}
	return true
}

// sourceOf is the source of the targets that Prometheus makes of a node or a pod; nothing if there are none.
func sourceOf(o any) string {
	switch o := o.(type) {
	case *v1.Node:
		return "node/" + o.Name
	case *v1.Pod:
		if o.Status.PodIP != "" {
			return "pod/" + o.Namespace + "/" + o.Name
		}
	}
	return ""
}

func (c *cluster) source(role kubernetes.Role) (cache.Getter, string, runtime.Object) {
	switch core := c.client.CoreV1().RESTClient(); role {
	case kubernetes.RoleNode:
		return core, "nodes", &v1.Node{}
	case kubernetes.RoleService:
		return core, "services", &v1.Service{}
	case kubernetes.RoleEndpoint:
		//lint:ignore SA1019 Prometheus has the role.
		return core, "endpoints", &v1.Endpoints{}
	case kubernetes.RoleEndpointSlice:
		return c.client.DiscoveryV1().RESTClient(), "endpointslices", &discoveryv1.EndpointSlice{}
	case kubernetes.RoleIngress:
		return c.client.NetworkingV1().RESTClient(), "ingresses", &networkingv1.Ingress{}
	case roleNamespace:
		return core, "namespaces", &v1.Namespace{}
	default:
		return core, "pods", &v1.Pod{}
	}
}

// trim drops what no target's labels are made of.
func trim(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	if p, ok := o.(*v1.Pod); ok {
		p.Spec.Volumes, p.Spec.Tolerations, p.Spec.Affinity = nil, nil, nil
		for _, list := range [][]v1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				c := &list[i]
				list[i] = v1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy}
			}
		}
	}
	return o, nil
}

// indexers are the indexes in which Prometheus' discovery looks objects up, under its names.
func indexers(role kubernetes.Role) cache.Indexers {
	all := cache.Indexers{}
	if role != kubernetes.RoleNode && role != roleNamespace {
		all[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	}
	switch role {
	case kubernetes.RolePod:
		all["node"] = func(o any) ([]string, error) { return []string{o.(*v1.Pod).Spec.NodeName}, nil }
	case kubernetes.RoleEndpointSlice:
		all["service"] = func(o any) ([]string, error) {
			e := o.(*discoveryv1.EndpointSlice)
			if name, ok := e.Labels[discoveryv1.LabelServiceName]; ok {
				return []string{e.Namespace + "/" + name}, nil
			}
			return nil, nil
		}
		all["node"] = func(o any) (nodes []string, _ error) {
			for _, p := range o.(*discoveryv1.EndpointSlice).Endpoints {
				if p.NodeName != nil {
					nodes = append(nodes, *p.NodeName)
				}
			}
			return nodes, nil
		}
	case kubernetes.RoleEndpoint:
		addresses := func(o any) (list []v1.EndpointAddress) {
			//lint:ignore SA1019 Prometheus has the role.
			for _, s := range o.(*v1.Endpoints).Subsets {
				list = append(list, s.Addresses...)
			}
			return list
		}
		all["pod"] = func(o any) (pods []string, _ error) {
			for _, a := range addresses(o) {
				if a.TargetRef != nil && a.TargetRef.Kind == "Pod" {
					pods = append(pods, a.TargetRef.Namespace+"/"+a.TargetRef.Name)
				}
			}
			return pods, nil
		}
		all["node"] = func(o any) (nodes []string, _ error) {
			for _, a := range addresses(o) {
				if a.NodeName != nil {
					nodes = append(nodes, *a.NodeName)
				}
			}
			return nodes, nil
		}
	}
	return all
}

// discoverer finds the targets of one kubernetes_sd_config.
type discoverer struct {
	config  *kubernetes.SDConfig
	cluster *cluster
	log     *slog.Logger
	events  *prometheus.CounterVec
}

// Run implements discovery.Discoverer.
func (d *discoverer) Run(ctx context.Context, out chan<- []*targetgroup.Group) {
	var leases []*lease
	watch := func(role kubernetes.Role, namespace string) *lease {
		l := &lease{SharedIndexInformer: d.cluster.watch(role, namespace, d.config.Selectors)}
		leases = append(leases, l)
		return l
	}
	// A nil informer, not a nil *lease, tells Prometheus to leave the labels out.
	var nodes, namespaces cache.SharedInformer
	if d.config.AttachMetadata.Node {
		nodes = watch(kubernetes.RoleNode, "")
	}
	if d.config.AttachMetadata.Namespace {
		namespaces = watch(roleNamespace, "")
	}
	var wg sync.WaitGroup
	for _, ns := range d.namespaces() {
		var s discovery.Discoverer
		switch log := d.log.With("role", d.config.Role); d.config.Role {
		case kubernetes.RoleNode:
			s = kubernetes.NewNode(log, watch(kubernetes.RoleNode, ""), d.events)
		case kubernetes.RolePod:
			s = kubernetes.NewPod(log, watch(kubernetes.RolePod, ns), nodes, namespaces, nil, nil, false, false, false,
				d.events)
		case kubernetes.RoleService:
			s = kubernetes.NewService(log, watch(kubernetes.RoleService, ns), namespaces, d.events)
		case kubernetes.RoleIngress:
			s = kubernetes.NewIngress(log, watch(kubernetes.RoleIngress, ns), namespaces, d.events)
		case kubernetes.RoleEndpoint:
			//lint:ignore SA1019 Prometheus has the role.
			s = kubernetes.NewEndpoints(log, watch(kubernetes.RoleEndpoint, ns), watch(kubernetes.RoleService, ns),
				watch(kubernetes.RolePod, ns), nodes, namespaces, nil, nil, false, false, false, d.events)
		case kubernetes.RoleEndpointSlice:
			s = kubernetes.NewEndpointSlice(log, watch(kubernetes.RoleEndpointSlice, ns),
				watch(kubernetes.RoleService, ns), watch(kubernetes.RolePod, ns), nodes, namespaces, nil, nil, false,
				false, false, d.events)
		default:
			log.Error(fmt.Sprintf("unknown Kubernetes discovery kind %s", d.config.Role))
			continue
		}
		wg.Go(func() { s.Run(ctx, out) })
	}
	wg.Wait()
	<-ctx.Done()
	for _, l := range leases {
		l.end()
	}
}

// namespaces are those to look into; "" is all.
func (d *discoverer) namespaces() []string {
	list := d.config.NamespaceDiscovery.Names
	if d.config.NamespaceDiscovery.IncludeOwnNamespace {
		list = append(list[:len(list):len(list)], incluster.Namespace(d.cluster.env))
	}
	if len(list) == 0 || d.config.Role == kubernetes.RoleNode {
		return []string{""}
	}
	return list
}

// lease is the use of a shared watch by one discoverer.
type lease struct {
	cache.SharedIndexInformer
	handlers []cache.ResourceEventHandlerRegistration
}

func (l *lease) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	r, err := l.SharedIndexInformer.AddEventHandler(h)
	if err == nil {
		l.handlers = append(l.handlers, r)
	}
	return r, err
}

func (l *lease) end() {
	for _, r := range l.handlers {
		_ = l.RemoveEventHandler(r) // It only fails for a handler of somebody else.
	}
}
