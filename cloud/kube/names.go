package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// target is where a connection ends: a port of a pod, or of a machine.
type target struct {
	namespace, pod string
	port           int
	host           string // of a machine; then there is no pod
}

// names finds out where the addresses of a cluster lead: what its DNS and its kube-proxy do.
type names struct {
	client  kubernetes.Interface
	allowed []string // the namespaces that can be reached; none for all
	stop    chan struct{}
	closed  sync.Once

	mu         sync.Mutex
	namespaces map[string]*namespace
}

// namespace is what is watched of one: a connection is made every few milliseconds, and none asks the API.
type namespace struct {
	services, slices cache.SharedIndexInformer
}

func newNames(client kubernetes.Interface) *names {
	return &names{client: client, stop: make(chan struct{}), namespaces: map[string]*namespace{}}
}

func (n *names) close() { n.closed.Do(func() { close(n.stop) }) }

// resolve finds out where an address leads now. If it leads to several pods, one is drawn.
func (n *names) resolve(ctx context.Context, address string) (t target, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return t, err
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return t, &net.AddrError{Err: "invalid port", Addr: address}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return n.resolveIP(ctx, ip.Unmap().String(), int(port))
	}
	service, space, pod, ok := split(host)
	if !ok || !n.may(space) {
		return t, unknown(host)
	}
	s, err := n.service(ctx, space, service)
	if err != nil {
		return t, noService(err, host)
	}
	if pod == "" {
		return n.endpoint(ctx, s, int32(port), nil)
	}
	is := func(e discoveryv1.Endpoint) bool { return ptr.Deref(e.Hostname, "") == pod }
	t, err = n.endpoint(ctx, s, int32(port), is)
	if err != nil {
		err = unknown(host)
	}
	return t, err
}

// split takes a name apart: service.namespace, with .svc and a domain or without, and a pod of a headless service
// before it.
func split(host string) (service, space, pod string, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	if i := slices.Index(parts, "svc"); i >= 0 {
		parts = parts[:i]
	}
	switch {
	case slices.Contains(parts, ""):
		return "", "", "", false
	case len(parts) == 2:
		return parts[0], parts[1], "", true
	case len(parts) == 3:
		return parts[1], parts[2], parts[0], true
	}
	return "", "", "", false
}

// service returns a service. What the watch has not seen yet is asked for.
func (n *names) service(ctx context.Context, space, name string) (*v1.Service, error) {
	w, err := n.watch(ctx, space)
	if err != nil {
		return nil, err
	}
	if o, ok, _ := w.services.GetStore().GetByKey(space + "/" + name); ok {
		return o.(*v1.Service), nil
	}
	return n.client.CoreV1().Services(space).Get(ctx, name, metav1.GetOptions{})
}

// endpoint draws one of a service's endpoints, of those that are chosen. Nobody listens where there is none.
func (n *names) endpoint(ctx context.Context, s *v1.Service, port int32, chosen func(discoveryv1.Endpoint) bool,
) (t target, err error) {
	w, err := n.watch(ctx, s.Namespace)
	if err != nil {
		return t, err
	}
	name, found := "", s.Spec.ClusterIP == v1.ClusterIPNone // A headless service has whatever ports its pods have.
	for _, p := range s.Spec.Ports {
		if p.Port == port && p.Protocol != v1.ProtocolUDP {
			name, found = p.Name, true
		}
	}
	var list []target
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: s.Name})
	for _, o := range w.slices.GetStore().List() {
		slice := o.(*discoveryv1.EndpointSlice)
		if !found || !of.Matches(labels.Set(slice.Labels)) {
			continue
		}
		to := port
		for _, p := range slice.Ports {
			if s.Spec.ClusterIP != v1.ClusterIPNone && ptr.Deref(p.Name, "") == name {
				to = ptr.Deref(p.Port, port)
			}
		}
		for _, e := range slice.Endpoints {
			if r := e.TargetRef; r != nil && r.Kind == "Pod" && ptr.Deref(e.Conditions.Ready, true) &&
				(chosen == nil || chosen(e)) {
				list = append(list, target{namespace: s.Namespace, pod: r.Name, port: int(to)})
			}
		}
	}
	if len(list) == 0 {
		return t, syscall.ECONNREFUSED
	}
	return list[rand.IntN(len(list))], nil
}

// may reports whether what is in a namespace can be reached.
func (n *names) may(space string) bool {
	return len(n.allowed) == 0 || slices.Contains(n.allowed, space)
}

// resolveIP finds the pod, the service or the machine that has an address. Where not everything can be reached, a
// machine is no more than the node ports of services that can.
func (n *names) resolveIP(ctx context.Context, ip string, port int) (t target, err error) {
	pods, err := n.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("status.podIP", ip).String(),
	})
	if err != nil {
		return t, fmt.Errorf("find the pod at %s: %w", ip, err)
	}
	for _, p := range pods.Items {
		if p.Status.PodIP == ip && !p.Spec.HostNetwork && p.Status.Phase == v1.PodRunning && n.may(p.Namespace) {
			return target{namespace: p.Namespace, pod: p.Name, port: port}, nil
		}
	}
	services, err := n.client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return t, fmt.Errorf("find the service at %s: %w", ip, err)
	}
	services.Items = slices.DeleteFunc(services.Items, func(s v1.Service) bool { return !n.may(s.Namespace) })
	for _, s := range services.Items {
		if slices.Contains(s.Spec.ClusterIPs, ip) {
			return n.endpoint(ctx, &s, int32(port), nil)
		}
	}
	nodes, err := n.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return t, fmt.Errorf("find the node at %s: %w", ip, err)
	}
	is := func(a v1.NodeAddress) bool { return a.Address == ip }
	if !slices.ContainsFunc(nodes.Items, func(n v1.Node) bool { return slices.ContainsFunc(n.Status.Addresses, is) }) {
		return t, syscall.EHOSTUNREACH
	}
	if len(n.allowed) == 0 {
		return target{host: ip, port: port}, nil
	}
	for _, s := range services.Items {
		for _, p := range s.Spec.Ports {
			if p.NodePort == int32(port) && p.Protocol != v1.ProtocolUDP {
				return n.endpoint(ctx, &s, p.Port, nil)
			}
		}
	}
	return t, syscall.ECONNREFUSED
}

// watch returns what is watched of a namespace, once all of it is known.
func (n *names) watch(ctx context.Context, space string) (*namespace, error) {
	n.mu.Lock()
	w := n.namespaces[space]
	if w == nil {
		f := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithNamespace(space))
		w = &namespace{f.Core().V1().Services().Informer(), f.Discovery().V1().EndpointSlices().Informer()}
		n.namespaces[space] = w
		f.Start(n.stop)
	}
	n.mu.Unlock()
	if !cache.WaitForCacheSync(ctx.Done(), w.services.HasSynced, w.slices.HasSynced) {
		return nil, fmt.Errorf("list the services of %s: %w", space, context.Cause(ctx))
	}
	return w, nil
}

func unknown(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func noService(err error, host string) error {
	if apierrors.IsNotFound(err) {
		return unknown(host)
	}
	return err
}
