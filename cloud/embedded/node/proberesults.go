package node

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
)

// probeResults holds the latest result of one kind of probe. It is what the kubelet's runtime
// manager asks before it kills a container.
type probeResults struct {
	mu  sync.RWMutex
	all map[kubecontainer.ContainerID]results.Result
}

var _ results.Manager = (*probeResults)(nil)

func newProbeResults() *probeResults {
	return &probeResults{all: map[kubecontainer.ContainerID]results.Result{}}
}

// Get implements results.Manager.
func (r *probeResults) Get(id kubecontainer.ContainerID) (results.Result, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	result, ok := r.all[id]
	return result, ok
}

// set reports whether the result is a new one.
func (r *probeResults) set(id kubecontainer.ContainerID, result results.Result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.all[id]
	r.all[id] = result
	return !ok || old != result
}

// Set implements results.Manager.
func (r *probeResults) Set(id kubecontainer.ContainerID, result results.Result, _ *v1.Pod) {
	r.set(id, result)
}

// Remove implements results.Manager.
func (r *probeResults) Remove(id kubecontainer.ContainerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, id)
}

// Updates implements results.Manager; the prober wakes workers itself.
func (r *probeResults) Updates() <-chan results.Update { return nil }
