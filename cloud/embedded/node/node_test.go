package node

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/utils/clock"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// podAddress is where the pod of these tests is.
var podAddress = netip.MustParseAddr("10.244.0.2")

// testKubelet returns a kubelet that has seen the given objects and works on nothing by itself.
func testKubelet(t *testing.T, objects ...any) *kubelet {
	t.Helper()
	network := vnet.New(vnet.Config{Subnets: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("192.168.0.0/24")}})
	spec := Spec{Name: "n1", Address: netip.MustParseAddr("192.168.0.1"), Pods: netip.MustParsePrefix("10.244.0.0/24"), Cores: 4, Memory: 8 << 30, Disk: 64 << 30}
	host, err := network.AddHost(spec.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	fleet := &Fleet{cfg: Config{
		Client: fake.NewClientset(), Network: network, Images: cri.NewImages(kit.NewRegistry()), Dir: t.TempDir(), Clock: clock.RealClock{},
	}}
	n := &Node{spec: spec, fleet: fleet, host: host}
	machine, err := newMachine(n, vfs.NewTree(vfs.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubelet{
		node: n, machine: machine, watches: testWatches(t, objects...), ctx: ctx, cancel: cancel,
		logger: klog.Background(), recorder: record.NewFakeRecorder(64), statuses: &statuses{}, workers: map[types.UID]*worker{},
	}
	k.probes = newProber(k)
	t.Cleanup(func() {
		cancel()
		k.probes.stop()
		machine.runtime.Shutdown()
	})
	return k
}

// testWatches returns listers of objects.
func testWatches(t *testing.T, objects ...any) *watches {
	t.Helper()
	f := informers.NewSharedInformerFactory(nil, 0) // Its informers are filled, not started.
	core := f.Core().V1()
	for _, obj := range objects {
		var i cache.SharedIndexInformer
		switch obj.(type) {
		case *v1.Service:
			i = core.Services().Informer()
		case *v1.ConfigMap:
			i = core.ConfigMaps().Informer()
		case *v1.Secret:
			i = core.Secrets().Informer()
		}
		if err := i.GetIndexer().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &watches{services: core.Services().Lister(), configs: core.ConfigMaps().Lister(), secrets: core.Secrets().Lister()}
}

// add makes the kubelet work for a pod.
func (k *kubelet) add(pod *v1.Pod) *worker {
	w := &worker{kubelet: k, uid: pod.UID, namespace: pod.Namespace, name: pod.Name, pod: pod, wakes: make(chan struct{}, 1)}
	w.volumes = &podVolumes{worker: w, mounted: map[string]*volume{}}
	k.workers[pod.UID] = w
	return w
}

// testPod returns a pod with one container, c.
func testPod(change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{NodeName: "n1", ServiceAccountName: "robot", RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "c"}}},
		Status:     v1.PodStatus{PodIP: podAddress.String()},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// statuses remembers what probes say of a pod. What else a status manager does is not needed.
type statuses struct {
	status.Manager

	mu             sync.Mutex
	ready, started []bool // one for each change
}

func (s *statuses) GetPodStatus(types.UID) (v1.PodStatus, bool) {
	return v1.PodStatus{PodIP: podAddress.String()}, true
}

func (s *statuses) SetContainerReadiness(_ klog.Logger, _ types.UID, _ kubecontainer.ContainerID, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, ready)
}

func (s *statuses) SetContainerStartup(_ klog.Logger, _ types.UID, _ kubecontainer.ContainerID, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, started)
}

// events returns what has been recorded so far.
func (k *kubelet) events() (list []string) {
	for {
		select {
		case e := <-k.recorder.(*record.FakeRecorder).Events:
			list = append(list, strings.TrimSpace(e))
		default:
			return list
		}
	}
}
