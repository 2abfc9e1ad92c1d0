package coredns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/miekg/dns"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/aiopslab/aiopslab/image/incluster"
)

// cluster answers for the names of a cluster.
type cluster struct {
	zones    []string
	ttl      uint32
	pods     podMode
	podNames bool     // endpoints without a host name have the name of their pod
	only     []string // the namespaces to answer for; none means all
	pass     []string // the zones in which others are asked for what does not exist
	services corelisters.ServiceLister
	podList  cache.SharedIndexInformer // if pods are verified
	spaces   corelisters.NamespaceLister
	slices   cache.SharedIndexInformer
	sync     []cache.InformerSynced

	once sync.Once
	quit chan struct{}
}

const byService, byAddress = "service", "address"

// podMode is how names of pods, a-b-c-d.namespace.pod, are answered.
type podMode string

const (
	podsDisabled podMode = "disabled"
	podsInsecure podMode = "insecure" // for any address
	podsVerified podMode = "verified" // if there is such a pod
)

// parseCluster reads the configuration of the kubernetes plug-in. The zones of its block are its
// own if it names none.
func parseCluster(d directive, zones []zone) (*cluster, error) {
	c := &cluster{ttl: 5, pods: podsDisabled, quit: make(chan struct{})}
	for _, z := range d.args {
		c.zones = append(c.zones, dns.Fqdn(strings.ToLower(z)))
	}
	if len(d.args) == 0 {
		for _, z := range zones {
			c.zones = append(c.zones, z.name)
		}
	}
	for _, line := range d.body {
		rest := strings.Join(line[1:], " ")
		switch line[0] {
		case "pods":
			c.pods = podMode(rest)
			if !slices.Contains([]podMode{podsDisabled, podsInsecure, podsVerified}, c.pods) {
				return nil, fmt.Errorf("wrong value for pods: %s,  only 'disabled', 'verified', 'insecure'", rest)
			}
		case "ttl":
			n, err := strconv.ParseUint(rest, 10, 32)
			if err != nil || n > 3600 {
				return nil, fmt.Errorf("ttl must be in range [0, 3600]: %s", rest)
			}
			c.ttl = uint32(n)
		case "fallthrough":
			c.pass = line[1:]
			if len(c.pass) == 0 {
				c.pass = []string{"."}
			}
		case "endpoint_pod_names":
			c.podNames = true
		case "namespaces":
			c.only = line[1:]
		case "upstream", "startup_timeout", "apiserver_qps": // They make no difference here.
		case "noendpoints", "labels", "kubeconfig", "endpoint", "tls", "namespace_labels", "ignore":
			return nil, fmt.Errorf("property '%s' is not supported", line[0])
		default:
			return nil, fmt.Errorf("unknown property '%s'", line[0])
		}
	}
	return c, nil
}

// newCluster starts to watch the cluster.
func (s *server) newCluster(d directive, zones []zone) (*cluster, error) {
	c, err := parseCluster(d, zones)
	if err != nil {
		return nil, err
	}
	config, err := incluster.Config(s.env)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(func(obj any) (any, error) {
		if m, err := meta.Accessor(obj); err == nil {
			m.SetManagedFields(nil)
			m.SetAnnotations(nil)
		}
		return obj, nil
	}))
	all, err := c.watch(f)
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if err := i.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
			fmt.Fprintf(s.env.Stdout, "[ERROR] plugin/kubernetes: Failed to watch %s: %v\n", r.TypeDescription(), err)
		}); err != nil {
			return nil, err
		}
		c.sync = append(c.sync, i.HasSynced)
	}
	f.Start(c.quit)
	return c, nil
}

// watch makes the informers the answers come from.
func (c *cluster) watch(f informers.SharedInformerFactory) ([]cache.SharedIndexInformer, error) {
	core := f.Core().V1()
	c.services, c.spaces = core.Services().Lister(), core.Namespaces().Lister()
	c.slices = f.Discovery().V1().EndpointSlices().Informer()
	if err := c.slices.AddIndexers(cache.Indexers{byService: serviceOf, byAddress: addressesOf}); err != nil {
		return nil, err
	}
	all := []cache.SharedIndexInformer{core.Services().Informer(), core.Namespaces().Informer(), c.slices}
	if c.pods == podsVerified {
		c.podList = core.Pods().Informer()
		if err := c.podList.AddIndexers(cache.Indexers{byAddress: addressesOf}); err != nil {
			return nil, err
		}
		all = append(all, c.podList)
	}
	return all, nil
}

func serviceOf(obj any) ([]string, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	return []string{s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]}, nil
}

func addressesOf(obj any) (list []string, err error) {
	switch o := obj.(type) {
	case *discoveryv1.EndpointSlice:
		for _, e := range o.Endpoints {
			list = append(list, e.Addresses...)
		}
	case *v1.Pod:
		list = append(list, o.Status.PodIP)
	}
	return list, nil
}

func (c *cluster) stop() { c.once.Do(func() { close(c.quit) }) }

func (c *cluster) synced() bool {
	for _, done := range c.sync {
		if !done() {
			return false
		}
	}
	return true
}

// serve is the plug-in.
func (c *cluster) serve(r *request) bool {
	zone := ""
	for _, z := range c.zones { // The longest counts.
		if dns.IsSubDomain(z, r.name) && len(z) > len(zone) {
			zone = z
		}
	}
	if zone == "" {
		return false
	}
	if !c.synced() {
		return r.done(dns.RcodeServerFailure)
	}
	r.msg.Authoritative = true
	var found bool
	if strings.HasSuffix(zone, "arpa.") {
		found = c.reverse(r)
	} else {
		found = c.forward(r, zone)
	}
	if found {
		if len(r.msg.Answer) == 0 {
			r.msg.Ns = append(r.msg.Ns, c.soa(zone))
		}
		return r.done(dns.RcodeSuccess)
	}
	for _, z := range c.pass {
		if dns.IsSubDomain(dns.Fqdn(z), r.name) {
			return false
		}
	}
	r.msg.Ns = append(r.msg.Ns, c.soa(zone))
	return r.done(dns.RcodeNameError)
}

func (c *cluster) soa(zone string) dns.RR {
	h := header(dns.TypeSOA, c.ttl)
	h.Name = zone
	return &dns.SOA{
		Hdr: h, Ns: "ns.dns." + zone, Mbox: "hostmaster." + zone, Serial: 1, Refresh: 7200, Retry: 1800,
		Expire: 86400, Minttl: c.ttl,
	}
}
