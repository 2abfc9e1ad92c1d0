package node

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	"go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/podcertificate"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// The kubelet's back-off: for containers that crash and for images that cannot be pulled.
const (
	backOffInitial = 10 * time.Second
	backOffMax     = 300 * time.Second

	maxPods      = 110
	resyncPeriod = time.Minute // how often a pod is looked at without a reason
	gcPeriod     = time.Minute // how often dead containers are removed

	stopPatience = 300 * time.Millisecond
)

// kubelet runs the pods of one node.
type kubelet struct {
	node     *Node
	machine  *machine
	watches  *watches
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	logger   klog.Logger
	recorder record.EventRecorderLogger

	runtime    kuberuntime.KubeGenericRuntime
	statuses   status.Manager
	containers *containerManager
	backOff    *flowcontrol.Backoff
	probes     *prober
	server     *http.Server

	certificates func() *podcertificate.IssuingManager

	conditions nodeConditions

	mu      sync.Mutex
	workers map[types.UID]*worker
	stopped bool
}

func newKubelet(ctx context.Context, n *Node, w *watches) (*kubelet, error) {
	machine := n.hardware()
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, machine.journal.logger()))
	k := &kubelet{
		node: n, machine: machine, watches: w, ctx: ctx, cancel: cancel, logger: klog.FromContext(ctx),
		recorder: w.recorder(n.spec.Name), workers: map[types.UID]*worker{},
	}
	clk := n.fleet.cfg.Clock
	k.backOff = flowcontrol.NewFakeBackOff(backOffInitial, backOffMax, clk)
	k.backOff.HasExpiredFunc = crashLoopExpired
	k.statuses = status.NewManager(n.fleet.cfg.Client, k, k, ignoreLatency{})
	k.containers = newContainerManager()
	k.probes = newProber(k)
	k.certificates = sync.OnceValue(k.startCertificates)
	root := filepath.Join(k.machine.dir, "kubelet")
	// The pull records and checkpoints of an earlier kubelet would outlive what they tell of.
	if err := os.RemoveAll(root); err != nil {
		cancel()
		return nil, err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		cancel()
		return nil, err
	}
	stack := n.host.NewStack()
	context.AfterFunc(ctx, stack.Close)
	var err error
	k.runtime, _, err = kuberuntime.NewKubeGenericRuntimeManager(
		ctx, k.recorder, k.probes.liveness, k.probes.readiness, k.probes.startup, root, "/var/log/pods",
		&cadvisorapi.MachineInfo{NumCores: n.spec.Cores, MemoryCapacity: uint64(n.spec.Memory)}, k, maxPods,
		nodeOS{k.machine}, &runtimeHelper{k},
		&http.Client{
			Transport: &http.Transport{DialContext: stack.DialContext, DisableKeepAlives: true},
			Timeout:   30 * time.Second,
		}, flowcontrol.NewFakeBackOff(backOffInitial, backOffMax, clk), false, nil, 0, 0,
		string(kubeletconfig.NeverVerify), nil, "", "", ptr.To(false), true,
		metav1.Duration{Duration: 100 * time.Millisecond}, nil, k.machine.runtime, k.machine.runtime, k.containers,
		logs.NewStubContainerLogManager(), w.classes, false, "", func() v1.ResourceList {
			return n.allocatable()
		}, nil, kubeletconfig.NoneMemoryReservationPolicy,
		ignoreLatency{}, noop.NewTracerProvider(), nil, nil, ignoreLatency{})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("create runtime manager: %w", err)
	}
	return k, nil
}

// crashLoopExpired says when a container has run long enough for its back-off to start over.
func crashLoopExpired(eventTime, lastUpdate time.Time, maxDuration time.Duration) bool {
	return eventTime.Sub(lastUpdate) > 600*time.Second
}

// start registers the node and starts the kubelet's loops.
func (k *kubelet) start() error {
	k.logger.Info("Kubelet version", "kubeletVersion", k.node.fleet.cfg.Version)
	if err := k.serve(); err != nil {
		return err
	}
	if err := k.register(); err != nil {
		return err
	}
	k.logger.Info("Successfully registered node", "node", klog.KRef("", k.node.spec.Name))
	k.statuses.Start(k.ctx)
	k.wg.Go(k.heartbeat)
	k.wg.Go(k.watchPressure)
	k.wg.Go(k.collectGarbage)
	return nil
}

// stop ends the kubelet and waits for its pods' workers. Containers go on.
func (k *kubelet) stop() {
	k.mu.Lock()
	k.stopped = true
	k.mu.Unlock()
	k.cancel()
	if k.server != nil {
		k.server.Close()
	}
	// It wakes its loop, which ends: see GetUIDTranslations.
	k.statuses.SetPodStatus(k.logger, &v1.Pod{}, v1.PodStatus{})
	// What still waits for a container to end, or for a hook, is called off.
	k.machine.runtime.Interrupt()
	done := make(chan struct{})
	go func() {
		k.probes.stop()
		k.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(stopPatience): // A hook that sleeps cannot be woken. It has nothing left to do.
	}
	k.machine.runtime.Resume()
}

// update takes a pod's state from the API.
func (k *kubelet) update(pod *v1.Pod, gone bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	w := k.workers[pod.UID]
	if w == nil {
		if gone {
			return
		}
		w = newWorker(k, pod)
		k.workers[pod.UID] = w
		k.wg.Go(w.run)
		return
	}
	w.update(pod, gone)
}

func (k *kubelet) worker(uid types.UID) *worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.workers[uid]
}

func (k *kubelet) forget(w *worker) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.workers[w.uid] == w {
		delete(k.workers, w.uid)
	}
}

func (k *kubelet) wake(uid types.UID) {
	if w := k.worker(uid); w != nil {
		w.wake()
	}
}

// all returns the workers.
func (k *kubelet) all() []*worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]*worker, 0, len(k.workers))
	for _, w := range k.workers {
		list = append(list, w)
	}
	return list
}

func (k *kubelet) refreshVolumes(namespace string) {
	for _, w := range k.all() {
		if w.namespace == namespace {
			w.wake()
		}
	}
}

// collectGarbage removes dead containers, of which one per container is kept for its log.
func (k *kubelet) collectGarbage() {
	t := time.NewTicker(gcPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-k.ctx.Done():
			return
		}
		policy := kubecontainer.GCPolicy{MaxPerPodContainer: 1, MaxContainers: -1}
		if err := k.runtime.GarbageCollect(k.ctx, policy, true, false); err != nil {
			k.logger.Error(err, "Container garbage collection failed")
		}
		k.backOff.GC()
	}
}

// What follows makes the kubelet what its parts ask about pods.

// GetPodByUID implements status.PodManager.
func (k *kubelet) GetPodByUID(uid types.UID) (*v1.Pod, bool) {
	if w := k.worker(uid); w != nil {
		return w.current(), true
	}
	return nil, false
}

// GetMirrorPodByPod implements status.PodManager. There are no static pods, so no mirrors.
func (k *kubelet) GetMirrorPodByPod(*v1.Pod) (*v1.Pod, bool) { return nil, false }

// TranslatePodUID implements status.PodManager.
func (k *kubelet) TranslatePodUID(uid types.UID) kubetypes.ResolvedPodUID {
	return kubetypes.ResolvedPodUID(uid)
}

// GetUIDTranslations implements status.PodManager. It is called by the loop of the status manager alone, at the
// beginning of each round. That loop never ends by itself, and would hold the pods, the disk and the logs of a kubelet
// that was stopped for as long as the process lives; so it is ended here.
func (k *kubelet) GetUIDTranslations() (
	map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID,
) {
	if k.ctx.Err() != nil {
		runtime.Goexit()
	}
	return nil, nil
}

// PodCouldHaveRunningContainers implements status.PodDeletionSafetyProvider.
func (k *kubelet) PodCouldHaveRunningContainers(pod *v1.Pod) bool {
	w := k.worker(pod.UID)
	return w != nil && !w.terminated()
}

// IsPodTerminationRequested tells the runtime manager whether a pod is being killed.
func (k *kubelet) IsPodTerminationRequested(uid types.UID) bool {
	w := k.worker(uid)
	return w == nil || w.terminating()
}

// ShouldPodContentBeRemoved tells the runtime manager whether a pod's containers may go.
func (k *kubelet) ShouldPodContentBeRemoved(uid types.UID) bool {
	w := k.worker(uid)
	return w == nil || w.terminated() && w.removed()
}

// ShouldPodRuntimeBeRemoved tells the runtime manager whether a pod's sandbox may go.
func (k *kubelet) ShouldPodRuntimeBeRemoved(uid types.UID) bool {
	return k.ShouldPodContentBeRemoved(uid)
}

// ignoreLatency stands for the kubelet's start-up latency metrics.
type ignoreLatency struct{}

func (ignoreLatency) RecordStatusUpdated(klog.Logger, *v1.Pod)         {}
func (ignoreLatency) DeletePodStartupState(types.UID)                  {}
func (ignoreLatency) RecordImageStartedPulling(types.UID)              {}
func (ignoreLatency) RecordImageFinishedPulling(types.UID)             {}
func (ignoreLatency) RecordInitContainerStarted(types.UID, time.Time)  {}
func (ignoreLatency) RecordInitContainerFinished(types.UID, time.Time) {}
