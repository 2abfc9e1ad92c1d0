package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/clustertrustbundle"
	"k8s.io/kubernetes/pkg/kubelet/runtimeclass"
	"k8s.io/kubernetes/pkg/kubelet/token"
	"k8s.io/utils/clock"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// KubeletPort is where a node serves the kubelet's API.
const KubeletPort = 10250

// Config is what a fleet works with.
type Config struct {
	Client  clientset.Interface
	Network *vnet.Network
	Images  *cri.Images
	Nodes   []Spec
	// Commands are what a node's own system has in /usr/bin, by name.
	Commands map[string]kit.Program

	ClusterDNS    netip.Addr
	ClusterDomain string
	Version       string // of Kubernetes
	Server        string // URL of the API
	CA            []byte // that signed the API server's certificate, as PEM

	// The kubelet API's certificate, and who may call it.
	TLS      tls.Certificate
	ClientCA *x509.CertPool

	Dir   string           // a directory of the host's
	Clock clock.WithTicker // paces pods: back-off, probes; the real one by default
	Log   *slog.Logger     // is told of errors of the kubelets' servers, at level debug; may be nil
}

// Spec is the hardware of a node.
type Spec struct {
	Name    string
	Address netip.Addr
	Pods    netip.Prefix // addresses of its pods
	Cores   int
	Memory  int64 // bytes
	Disk    int64 // bytes
	Labels  map[string]string
}

// Fleet is the nodes of a cluster.
type Fleet struct {
	cfg    Config
	nodes  map[string]*Node
	tokens *token.Manager
	gate   atomic.Pointer[func(http.Handler) http.Handler]

	mu      sync.Mutex
	running *watches // nil while the kubelets are stopped
}

// watches are what the kubelets of a fleet see of the cluster while they run.
type watches struct {
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	factory  informers.SharedInformerFactory
	events   record.EventBroadcaster
	classes  *runtimeclass.Manager
	trust    clustertrustbundle.Manager
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	services corelisters.ServiceLister
	configs  corelisters.ConfigMapLister
	secrets  corelisters.SecretLister
	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
}

// NewFleet builds the nodes' hardware. Nothing runs yet.
func NewFleet(cfg Config) (*Fleet, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	f := &Fleet{cfg: cfg, nodes: map[string]*Node{}, tokens: token.NewManager(cfg.Client)}
	for _, spec := range cfg.Nodes {
		n, err := newNode(f, spec)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", spec.Name, err)
		}
		f.nodes[spec.Name] = n
	}
	return f, nil
}

// SetGate puts a handler in front of the kubelets' APIs. Requests of the API server pass it. Nil removes it.
func (f *Fleet) SetGate(gate func(kubelet http.Handler) http.Handler) {
	if gate == nil {
		f.gate.Store(nil)
		return
	}
	f.gate.Store(&gate)
}

// Node returns a node by name, or nil.
func (f *Fleet) Node(name string) *Node { return f.nodes[name] }

// Nodes returns all nodes in the order of the configuration.
func (f *Fleet) Nodes() []*Node {
	list := make([]*Node, 0, len(f.nodes))
	for _, spec := range f.cfg.Nodes {
		list = append(list, f.nodes[spec.Name])
	}
	return list
}

// Start starts the kubelets: they register, adopt what runs, and take pods. They see the cluster
// through the informers of factory, which the caller shuts down after Stop. It returns once all nodes
// have registered.
func (f *Fleet) Start(ctx context.Context, factory informers.SharedInformerFactory) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running != nil {
		return nil
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := f.watch(run, factory)
	w.cancel = cancel
	f.running = w
	for _, n := range f.Nodes() {
		if err := n.startKubelet(run, w); err != nil {
			f.stopLocked()
			return fmt.Errorf("start kubelet of %s: %w", n.spec.Name, err)
		}
	}
	if err := f.dispatch(run, w); err != nil {
		f.stopLocked()
		return err
	}
	return nil
}

// watch prepares the shared watches.
func (f *Fleet) watch(ctx context.Context, factory informers.SharedInformerFactory) *watches {
	w := &watches{factory: factory}
	core := w.factory.Core().V1()
	w.pods, w.nodes, w.services = core.Pods().Lister(), core.Nodes().Lister(), core.Services().Lister()
	w.configs, w.secrets = core.ConfigMaps().Lister(), core.Secrets().Lister()
	w.claims, w.volumes = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister()
	w.events = record.NewBroadcaster(record.WithContext(ctx))
	w.events.StartRecordingToSink(unhurried{&typedcorev1.EventSinkImpl{Interface: f.cfg.Client.CoreV1().Events("")}})
	w.classes = runtimeclass.NewManager(f.cfg.Client)
	w.classes.Start(ctx.Done())
	w.trust = clustertrustbundle.NewLazyInformerManager(ctx, f.cfg.Client, 2*maxPods)
	return w
}

// dispatch starts the watches and hands what they deliver to the kubelets.
func (f *Fleet) dispatch(ctx context.Context, w *watches) error {
	core := w.factory.Core().V1()
	pods := core.Pods().Informer()
	deliver := func(obj any, gone bool) {
		if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = d.Obj
		}
		if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName != "" {
			if n := f.nodes[pod.Spec.NodeName]; n != nil {
				n.deliver(pod, gone)
			}
		}
	}
	delivered, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { deliver(obj, false) },
		UpdateFunc: func(_, obj any) { deliver(obj, false) },
		DeleteFunc: func(obj any) { deliver(obj, true) },
	})
	if err != nil {
		return err
	}
	// A changed ConfigMap or Secret reaches the volumes of the pods in its namespace.
	refresh := func(obj any) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return
		}
		for _, n := range f.nodes {
			n.refreshVolumes(m.GetNamespace())
		}
	}
	handlers := cache.ResourceEventHandlerFuncs{
		AddFunc:    refresh,
		UpdateFunc: func(_, obj any) { refresh(obj) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			refresh(obj)
		},
	}
	for _, i := range []cache.SharedIndexInformer{core.ConfigMaps().Informer(), core.Secrets().Informer()} {
		if _, err := i.AddEventHandler(handlers); err != nil {
			return err
		}
	}
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	// From now on the kubelets know their pods, and answer for them.
	cache.WaitFor(ctx, "", delivered.HasSyncedChecker())
	return ctx.Err()
}

// Stop stops the kubelets and waits for them. Containers go on.
func (f *Fleet) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopLocked()
}

func (f *Fleet) stopLocked() {
	w := f.running
	if w == nil {
		return
	}
	f.running = nil
	w.cancel()
	for _, n := range f.nodes {
		n.stopKubelet()
	}
	w.events.Shutdown()
	w.wg.Wait()
}

// Close stops the kubelets and kills all containers.
func (f *Fleet) Close() {
	f.Stop()
	for _, n := range f.nodes {
		n.hardware().discard()
		n.host.Close()
	}
}

// recorder returns who records events in a node's name.
func (w *watches) recorder(node string) record.EventRecorderLogger {
	return w.events.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet", Host: node})
}

// eventDelay is by how much events stay behind what they tell of, so that a burst of pods gets its
// processor time first.
const eventDelay = 200 * time.Millisecond

// unhurried is an event sink that waits.
type unhurried struct{ record.EventSink }

func (u unhurried) Create(e *v1.Event) (*v1.Event, error) {
	time.Sleep(eventDelay - time.Since(e.LastTimestamp.Time))
	return u.EventSink.Create(e)
}

// nodeRef is how the kubelet refers to its node in events.
func nodeRef(name string) *v1.ObjectReference {
	return &v1.ObjectReference{Kind: "Node", Name: name, UID: types.UID(name)}
}
