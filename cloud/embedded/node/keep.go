package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

const (
	keepPoll = 5 * time.Millisecond
	// listenPatience is how long a container that was put back may take to listen again.
	listenPatience = 3 * time.Second
)

// Kept is a container as it was, see [cri.Runtime.Keep].
type Kept struct {
	*cri.Kept
	Container string // its name

	node    *Node
	machine *machine
	pod     *v1.Pod
	ports   []uint16 // that it listened on
}

// Keep records a running container before a command is run in it. The name of the container may be empty if its pod
// has one. The error says why it cannot be kept.
func (f *Fleet) Keep(ctx context.Context, namespace, pod, container string, command []string) (*Kept, error) {
	w := f.worker(namespace, pod)
	if w == nil {
		return nil, fmt.Errorf("there is no pod %s on any node", pod)
	}
	k := &Kept{node: w.kubelet.node, machine: w.kubelet.machine, pod: w.current(), Container: container}
	spec, err := k.spec()
	if err != nil {
		return nil, err
	}
	observed, err := w.observe(ctx)
	if err != nil {
		return nil, err
	}
	runs := runsOf(observed, k.Container)
	if len(runs) == 0 || runs[0].State != kubecontainer.ContainerStateRunning {
		return nil, errors.New("it does not run")
	}
	volumes, claims := w.volumes.writable(k.pod)
	if k.Kept, err = k.machine.runtime.Keep(ctx, runs[0].ID.ID, volumes, claims, command); err != nil {
		return nil, err
	}
	if host := f.cfg.Network.Host(parseAddr(k.pod.Status.PodIP)); host != nil && !k.pod.Spec.HostNetwork {
		for _, p := range spec.Ports {
			if (p.Protocol == v1.ProtocolTCP || p.Protocol == "") && host.Listens(uint16(p.ContainerPort)) {
				k.ports = append(k.ports, uint16(p.ContainerPort))
			}
		}
	}
	return k, nil
}

// PodUID is that of the pod that the container is in.
func (k *Kept) PodUID() string { return string(k.pod.UID) }

// worker finds the worker of a pod.
func (f *Fleet) worker(namespace, pod string) *worker {
	for _, n := range f.Nodes() {
		k := n.current()
		if k == nil {
			continue
		}
		for _, w := range k.all() {
			if w.namespace == namespace && w.name == pod && !w.removed() {
				return w
			}
		}
	}
	return nil
}

// spec is what the pod says of the container. It completes the name.
func (k *Kept) spec() (*v1.Container, error) {
	own := k.pod.Spec.Containers
	if k.Container == "" && len(own) == 1 {
		k.Container = own[0].Name
	}
	i := slices.IndexFunc(own, func(c v1.Container) bool { return c.Name == k.Container })
	switch {
	case k.Container == "":
		return nil, errors.New("the pod has several: name one with -c")
	case i < 0:
		return nil, errors.New("it is none that the pod is made of")
	}
	return &own[i], nil
}

// writable returns where on the node the volumes of a pod are that nobody else has a say in, and those of claims.
func (v *podVolumes) writable(pod *v1.Pod) (volumes, claims []string) {
	for _, s := range pod.Spec.Volumes {
		at, ok := v.path(s.Name)
		switch {
		case !ok || at == "":
		case s.EmptyDir != nil:
			volumes = append(volumes, at)
		case s.PersistentVolumeClaim != nil || s.Ephemeral != nil:
			claims = append(claims, at)
		}
	}
	return volumes, claims
}

// PutBack has the container be as it was: it is killed, and started again as the pod's next one. Where its pod is gone
// and a volume of it is not, that is put back, and whatever uses it now is started again. It says what was done.
func (k *Kept) PutBack(ctx context.Context) (done string, err error) {
	kubelet := k.node.current()
	if kubelet == nil || kubelet.machine != k.machine {
		return "", errors.New("its node was started anew")
	}
	w := kubelet.worker(k.pod.UID)
	for w != nil && w.terminating() && !w.terminated() { // It writes until it has ended.
		select {
		case <-time.After(keepPoll):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		w = kubelet.worker(k.pod.UID)
	}
	if w == nil || w.terminated() {
		return k.putBackVolumes(ctx, kubelet)
	}
	err = w.do(ctx, func() error {
		observed, err := w.observe(ctx)
		if err != nil {
			return err
		}
		runs := runsOf(observed, k.Container)
		if len(runs) == 0 {
			return errors.New("it is gone")
		}
		return k.restart(kubelet, w, runs[0].ID.ID)
	})
	if errors.Is(err, errWorkerEnded) {
		return k.putBackVolumes(ctx, kubelet)
	}
	if err != nil {
		return "", err
	}
	k.awaitPorts(ctx)
	return "its files, volumes and data are as they were, and it was started again", nil
}

// restart puts back what was kept, as a container's worker.
func (k *Kept) restart(kubelet *kubelet, w *worker, id string) error {
	pod := w.current()
	tell := func(reason, format string, args ...any) {
		kubelet.recorder.Eventf(pod, v1.EventTypeNormal, reason, format, args...)
	}
	tell(events.KillingContainer, "Stopping container %s", k.Container)
	if err := k.machine.runtime.PutBack(id, k.Kept); err != nil {
		return err
	}
	tell(events.CreatedContainer, "Container created")
	tell(events.StartedContainer, "Container started")
	return nil
}

// putBackVolumes puts back what outlives the pod, which is gone.
func (k *Kept) putBackVolumes(ctx context.Context, kubelet *kubelet) (done string, err error) {
	if !k.Lasting() {
		return "its pod is gone, and all that was in it", nil
	}
	ids, pods := k.machine.runtime.Using(k.Kept)
	switch len(ids) {
	case 0:
		return "its pod is gone; its persistent volumes are as they were", k.machine.runtime.FillPlaces(k.Kept, true)
	case 1:
	default:
		return "", errors.New("its pod is gone, and several others use its volumes")
	}
	w := kubelet.worker(types.UID(pods[0]))
	if w == nil {
		return "", errors.New("its pod is gone, and its volumes are in use")
	}
	err = w.do(ctx, func() error { return k.restart(kubelet, w, ids[0]) })
	return "its pod is gone; its persistent volumes are as they were, and what uses them was started again", err
}

// awaitPorts returns when the container listens again where it did, or after a time.
func (k *Kept) awaitPorts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, listenPatience)
	defer cancel()
	host := k.node.fleet.cfg.Network.Host(parseAddr(k.pod.Status.PodIP))
	for _, p := range k.ports {
		for host != nil && !host.Listens(p) && ctx.Err() == nil {
			select {
			case <-time.After(keepPoll):
			case <-ctx.Done():
			}
		}
	}
}
