package node

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/utils/ptr"
)

func podGrace(pod *v1.Pod) int64 {
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		return *s
	}
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
}

// terminate stops the pod's containers and reports how they ended.
func (w *worker) terminate(ctx context.Context) error {
	k, pod := w.kubelet, w.current()
	observed, err := w.observe(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	kill := w.kill
	w.mu.Unlock()
	rejected := !w.admitted && len(observed.ContainerStatuses) == 0
	st := w.status(pod, observed, false)
	if kill != nil && kill.status != nil {
		kill.status(&st)
	}
	if !rejected {
		k.statuses.SetPodStatus(k.logger, pod, st)
	}
	k.probes.stopLiveness(w.uid)
	if err := w.killContainers(ctx, pod, observed, kill); err != nil {
		k.recorder.Eventf(pod, v1.EventTypeWarning, events.FailedToKillPod, "error killing pod: %v", err)
		return err
	}
	k.probes.remove(w.uid)
	stopped, err := w.observe(ctx)
	if err != nil {
		return err
	}
	for _, c := range stopped.ContainerStatuses {
		if c.State == kubecontainer.ContainerStateRunning {
			return fmt.Errorf("container %s still runs", c.Name)
		}
	}
	stopped.IPs = observed.IPs
	if !rejected {
		k.statuses.SetPodStatus(k.logger, pod, w.status(pod, stopped, true))
	}
	if err := w.volumes.unmount(); err != nil {
		return err
	}
	w.advance(terminated)
	k.statuses.TerminatePod(k.logger, pod)
	return nil
}

// killContainers stops what runs. A shorter grace period that comes in meanwhile takes effect.
func (w *worker) killContainers(ctx context.Context, pod *v1.Pod, observed *kubecontainer.PodStatus,
	kill *killRequest,
) error {
	running := kubecontainer.ConvertPodStatusToRunningPod(w.kubelet.runtime.Type(), observed)
	w.mu.Lock()
	gone, sooner := w.gone, w.sooner
	w.mu.Unlock()
	grace := podGrace(pod)
	var override *int64
	switch {
	case kill != nil:
		override = &kill.grace
	case gone && pod.DeletionTimestamp == nil:
		override = ptr.To(int64(1)) // It was deleted by force.
	case pod.DeletionGracePeriodSeconds != nil:
		override = &grace
	}
	done := make(chan error, 1)
	go func() { done <- w.kubelet.runtime.KillPod(context.WithoutCancel(ctx), pod, running, override) }()
	for {
		select {
		case err := <-done:
			return err
		case <-sooner:
			w.mu.Lock()
			left := time.Duration(podGrace(w.pod)) * time.Second
			sooner = w.sooner
			w.mu.Unlock()
			time.AfterFunc(left, func() {
				for _, c := range running.Containers {
					w.kubelet.machine.runtime.Kill(c.ID.ID)
				}
			})
		}
	}
}

// remove deletes what is left of a pod that the API has forgotten.
func (w *worker) remove(ctx context.Context) error {
	n := w.kubelet.machine
	sandboxes, err := n.runtime.SandboxesOf(string(w.uid))
	if err != nil {
		return err
	}
	for _, id := range sandboxes {
		if err := n.runtime.RemovePodSandbox(ctx, id); err != nil {
			return err
		}
	}
	w.kubelet.containers.groups.remove(w.uid)
	w.kubelet.forgetCertificates(ctx, w.current())
	w.kubelet.statuses.RemoveOrphanedStatuses(w.kubelet.logger, w.kubelet.knownPods(w.uid))
	return n.env().RemoveAll(podDir(w.uid))
}

// knownPods is the set of pods with a worker, without one.
func (k *kubelet) knownPods(except types.UID) map[types.UID]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := make(map[types.UID]bool, len(k.workers))
	for uid := range k.workers {
		if uid != except {
			known[uid] = true
		}
	}
	return known
}
