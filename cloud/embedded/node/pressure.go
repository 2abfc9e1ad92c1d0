package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

const (
	evictionPeriod     = 10 * time.Second // how often the node looks for pressure
	pressureTransition = 5 * time.Minute  // for how long it shows after it is gone
	evictionTimeout    = time.Minute
)

// evictionHard are the kubelet's default thresholds.
var evictionHard = map[string]string{
	"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%",
	"nodefs.inodesFree": "5%",
}

// newEvictions returns the kubelet's own eviction manager over the node's figures.
func (k *kubelet) newEvictions() (eviction.Manager, error) {
	thresholds, err := eviction.ParseThresholdConfig(nil, evictionHard, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg := eviction.Config{PressureTransitionPeriod: pressureTransition, Thresholds: thresholds}
	m, _ := eviction.NewManager(k, cfg, k.killPod, garbage{k}, garbage{k}, k.recorder, nodeRef(k.node.spec.Name),
		k.node.fleet.cfg.Clock, true)
	return m, nil
}

// killPod ends a pod for the eviction manager and waits until it has.
func (k *kubelet) killPod(pod *v1.Pod, _ bool, grace *int64, status func(*v1.PodStatus)) error {
	w := k.worker(pod.UID)
	if w == nil {
		return nil
	}
	seconds := podGrace(pod)
	if grace != nil {
		seconds = *grace
	}
	w.evict(seconds, status)
	ctx, cancel := context.WithTimeout(k.ctx, evictionTimeout)
	defer cancel()
	for !w.terminated() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// activePods are the pods an eviction could choose.
func (k *kubelet) activePods() (list []*v1.Pod) {
	for _, w := range k.all() {
		if pod := w.current(); !w.terminating() && !podutil.IsPodTerminal(pod) {
			list = append(list, pod)
		}
	}
	return list
}

// watchPressure runs the eviction manager and shows what it finds in the node's status.
func (k *kubelet) watchPressure() {
	m, err := k.newEvictions()
	if err != nil {
		k.logger.Error(err, "Eviction manager did not start")
		return
	}
	m.Start(k.ctx, wholeDisk{}, k.activePods, func(pod *v1.Pod) bool {
		w := k.worker(pod.UID)
		return w == nil || w.terminated()
	}, evictionPeriod)
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-k.ctx.Done():
			return
		}
		memory, disk := m.IsUnderMemoryPressure(), m.IsUnderDiskPressure()
		k.conditions.mu.Lock()
		changed := memory != k.conditions.memory || disk != k.conditions.disk
		k.conditions.memory, k.conditions.disk = memory, disk
		k.conditions.mu.Unlock()
		if changed {
			k.reportStatus(true)
		}
	}
}

// wholeDisk says that images, containers and volumes share one disk.
type wholeDisk struct{}

func (wholeDisk) HasDedicatedImageFs(context.Context) (bool, error)     { return false, nil }
func (wholeDisk) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }

// garbage is what can be thrown away before pods are.
type garbage struct{ kubelet *kubelet }

// DeleteUnusedImages: images take no space of the node's disk.
func (garbage) DeleteUnusedImages(context.Context) error { return nil }

func (g garbage) DeleteAllUnusedContainers(ctx context.Context) error {
	return g.kubelet.runtime.GarbageCollect(ctx, kubecontainer.GCPolicy{MaxContainers: 0}, true, true)
}
