package node

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
)

// syncRetry is how soon the kubelet tries again after an error that has no back-off of its own.
const syncRetry = 10 * time.Second

// phase is how far a pod's worker has come. It only moves forward.
type phase int

const (
	syncing     phase = iota // containers are started and kept running
	terminating              // containers are being stopped
	terminated               // none runs any more
)

// worker brings one pod to the state the API asks for and reports what it sees.
type worker struct {
	kubelet         *kubelet
	uid             types.UID
	namespace, name string
	wakes           chan struct{}
	jobs            chan func()   // done between two steps
	ended           chan struct{} // closed with the worker

	// Owned by the worker's goroutine.
	reasons  reasons
	volumes  *podVolumes
	admitted bool

	mu     sync.Mutex
	pod    *v1.Pod
	gone   bool // the API has no such pod any more
	phase  phase
	kill   *killRequest
	sooner chan struct{} // closed and replaced when the grace period shrinks
}

// killRequest ends a pod for the node's own reasons, such as eviction.
type killRequest struct {
	grace  int64
	status func(*v1.PodStatus)
}

func newWorker(k *kubelet, pod *v1.Pod) *worker {
	w := &worker{
		kubelet: k, uid: pod.UID, namespace: pod.Namespace, name: pod.Name, wakes: make(chan struct{}, 1),
		pod: pod, reasons: reasons{}, sooner: make(chan struct{}), jobs: make(chan func()),
		ended: make(chan struct{}),
	}
	w.volumes = newPodVolumes(w)
	k.probes.adopt(pod)
	return w
}

// current returns the pod as the API last had it.
func (w *worker) current() *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

func (w *worker) update(pod *v1.Pod, gone bool) {
	w.mu.Lock()
	if was, is := w.pod.DeletionGracePeriodSeconds,
		pod.DeletionGracePeriodSeconds; is != nil && (was == nil || *is < *was) {
		close(w.sooner)
		w.sooner = make(chan struct{})
	}
	w.pod, w.gone = pod, w.gone || gone
	w.mu.Unlock()
	w.wake()
}

// wake makes the worker look at its pod.
func (w *worker) wake() {
	select {
	case w.wakes <- struct{}{}:
	default:
	}
}

// evict asks the worker to kill the pod.
func (w *worker) evict(grace int64, status func(*v1.PodStatus)) {
	w.mu.Lock()
	if w.kill == nil {
		w.kill = &killRequest{grace, status}
	}
	w.mu.Unlock()
	w.wake()
}

func (w *worker) terminating() bool { return w.reached(terminating) }
func (w *worker) terminated() bool  { return w.reached(terminated) }

func (w *worker) reached(p phase) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.phase >= p
}

func (w *worker) removed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

func (w *worker) advance(p phase) {
	w.mu.Lock()
	w.phase = max(w.phase, p)
	w.mu.Unlock()
}

// run is the worker's life.
func (w *worker) run() {
	defer close(w.ended)
	ctx := w.kubelet.ctx
	for ctx.Err() == nil {
		switch {
		case !w.terminating() && !w.mustEnd():
			w.sync(ctx)
		case !w.terminated():
			w.advance(terminating)
			w.retry(ctx, w.terminate)
		case !w.removed():
			w.wait(ctx, 0) // Only the API can end it now.
		default:
			w.retry(ctx, w.remove)
			w.kubelet.forget(w)
			return
		}
	}
}

// mustEnd reports whether the pod has been deleted, killed, or was over when it was first seen.
func (w *worker) mustEnd() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone || w.pod.DeletionTimestamp != nil || w.kill != nil || podutil.IsPodTerminal(w.pod)
}

// wait returns when there may be something to do. Zero is no limit.
func (w *worker) wait(ctx context.Context, d time.Duration) {
	var timer <-chan time.Time
	if d > 0 {
		t := w.kubelet.node.fleet.cfg.Clock.NewTimer(d)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-w.wakes:
	case f := <-w.jobs:
		f()
	case <-timer:
	case <-ctx.Done():
	}
}

// do has the worker call f between two of its steps, and returns what that does. Nothing else happens to the pod's
// containers by the kubelet meanwhile.
func (w *worker) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case w.jobs <- func() { done <- f() }:
		return <-done
	case <-w.ended:
		return errWorkerEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errWorkerEnded = errors.New("the pod is gone")

// retry calls f until it succeeds.
func (w *worker) retry(ctx context.Context, f func(context.Context) error) {
	for ctx.Err() == nil {
		err := f(ctx)
		if err == nil {
			return
		}
		w.kubelet.logger.Error(err, "Pod worker failed", "pod", w.namespace+"/"+w.name)
		w.wait(ctx, time.Second)
	}
}

// observe reads the pod's containers from the runtime.
func (w *worker) observe(ctx context.Context) (*kubecontainer.PodStatus, error) {
	p, err := w.kubelet.runtime.GetPod(ctx, w.uid)
	if errors.Is(err, kubecontainer.ErrPodNotFound) {
		return &kubecontainer.PodStatus{ID: w.uid, Name: w.name, Namespace: w.namespace}, nil
	}
	if err != nil {
		return nil, err
	}
	return w.kubelet.runtime.GetPodStatus(ctx, p)
}

// sync brings the pod one step closer to its specification and waits for a reason to go on.
func (w *worker) sync(ctx context.Context) {
	acted, over, err := w.step(ctx)
	switch {
	case over:
		w.advance(terminating)
	case err != nil:
		wait := syncRetry
		if t, ok := kubecontainer.MinBackoffExpiration(err); ok {
			if wait = t.Sub(w.kubelet.node.fleet.cfg.Clock.Now()); wait <= 0 {
				return // It is over already.
			}
		} else if d, ok := errors.AsType[*volumeError](err); ok {
			wait = d.retry
		}
		w.wait(ctx, wait)
	case !acted:
		w.wait(ctx, w.nextLook())
	}
}

// nextLook is when the pod wants attention without an event: to refresh its volumes, or at its
// deadline.
func (w *worker) nextLook() time.Duration {
	d := resyncPeriod
	pod := w.current()
	if s := pod.Spec.ActiveDeadlineSeconds; s != nil && pod.Status.StartTime != nil {
		left := time.Duration(*s)*time.Second - w.kubelet.node.fleet.cfg.Clock.Since(pod.Status.StartTime.Time)
		d = min(d, max(left, time.Millisecond))
	}
	return d
}

// step reports the pod's status and starts, restarts or kills containers. It reports whether it
// changed anything, and whether the pod is over.
func (w *worker) step(ctx context.Context) (acted, over bool, err error) {
	k, pod := w.kubelet, w.current()
	observed, err := w.observe(ctx)
	if err != nil {
		return false, false, err
	}
	if !w.admitted {
		if reason, message := k.admit(pod, len(observed.ContainerStatuses) > 0); reason != "" {
			w.reject(pod, reason, message)
			return false, true, nil
		}
		w.admitted = true
		k.containers.groups.create(pod)
		k.runtime.InitializeActuatedPod(k.logger, pod)
	}
	if w.pastDeadline(pod) {
		return false, true, nil
	}
	w.noteResize(pod, observed)
	st := w.status(pod, observed, false)
	published := publish(func() { k.statuses.SetPodStatus(k.logger, pod, st) })
	if st.Phase == v1.PodSucceeded || st.Phase == v1.PodFailed {
		published.now()
		return false, true, nil
	}
	if len(observed.ContainerStatuses) > 0 {
		published.now()
	}
	observed.IPs = nil
	for _, ip := range st.PodIPs {
		observed.IPs = append(observed.IPs, ip.IP)
	}
	if err := w.volumes.mount(ctx, pod); err != nil {
		published.now()
		return false, false, err
	}
	// A kubelet that is stopping must not leave half a pod behind, so this is not interrupted.
	secrets, missing := w.pullSecrets(pod)
	result := k.runtime.SyncPod(context.WithoutCancel(ctx), pod, observed, secrets, k.backOff, restartsAll(st))
	w.reasons.record(result)
	w.noteSecrets(pod, missing, result)
	for _, r := range result.SyncResults {
		if r.Action == kubecontainer.ResizePodInPlace && r.Error != nil {
			k.statuses.SetPodResizeInProgressCondition(w.uid, v1.PodReasonError, r.Message, pod.Generation)
		}
	}
	acted = len(result.SyncResults) > 0
	if acted {
		published.drop() // The next status comes at once.
	} else {
		published.now()
	}
	if err := result.Error(); err != nil {
		// What failed shows in the status of the next look; do not wait for the back-off to show it.
		if o, oerr := w.observe(ctx); oerr == nil {
			k.statuses.SetPodStatus(k.logger, pod, w.status(pod, o, false))
			w.startProbes(pod, o)
		}
		return false, false, err
	}
	if o, oerr := w.observe(ctx); oerr == nil {
		w.startProbes(pod, o)
	}
	return acted, false, nil
}

func restartsAll(st v1.PodStatus) bool {
	for _, c := range st.Conditions {
		if c.Type == v1.AllContainersRestarting && c.Status == v1.ConditionTrue {
			return true
		}
	}
	return false
}

func (w *worker) startProbes(pod *v1.Pod, observed *kubecontainer.PodStatus) {
	w.kubelet.probes.sync(pod, observed)
}

// noteResize keeps the condition that tells of a resize in progress.
func (w *worker) noteResize(pod *v1.Pod, observed *kubecontainer.PodStatus) {
	k := w.kubelet
	if k.runtime.IsPodResizeInProgress(pod, observed) {
		k.statuses.SetPodResizeInProgressCondition(w.uid, "", "", pod.Generation)
	} else if generation, cleared := k.statuses.ClearPodResizeInProgressCondition(w.uid); cleared {
		k.recorder.Eventf(pod, v1.EventTypeNormal, events.ResizeCompleted, "%s",
			events.PodResizeCompletedMsg(k.logger, pod, generation))
	}
}

// pastDeadline kills a pod that has been active for too long.
func (w *worker) pastDeadline(pod *v1.Pod) bool {
	s, start := pod.Spec.ActiveDeadlineSeconds, pod.Status.StartTime
	if s == nil || start == nil || w.kubelet.node.fleet.cfg.Clock.Since(start.Time) < time.Duration(*s)*time.Second {
		return false
	}
	const reason, message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	w.kubelet.recorder.Eventf(pod, v1.EventTypeNormal, reason, message)
	w.evict(podGrace(pod), func(st *v1.PodStatus) {
		st.Phase, st.Reason, st.Message = v1.PodFailed, reason, message
	})
	return true
}

// reject fails a pod that the node does not take.
func (w *worker) reject(pod *v1.Pod, reason, message string) {
	k := w.kubelet
	k.recorder.Eventf(pod, v1.EventTypeWarning, reason, "%s", message)
	k.statuses.SetPodStatus(k.logger, pod, v1.PodStatus{
		QOSClass: pod.Status.QOSClass, Phase: v1.PodFailed, Reason: reason,
		Message: "Pod was rejected: " + message, StartTime: pod.Status.StartTime,
	})
}

// reasons remembers why containers could not be started, for their status.
type reasons map[string]reason

type reason struct {
	err     error
	message string
}

// record takes over the outcome of a sync.
func (r reasons) record(result kubecontainer.PodSyncResult) {
	for _, s := range result.SyncResults {
		if s.Action != kubecontainer.StartContainer {
			continue
		}
		name, ok := s.Target.(string)
		if !ok {
			continue
		}
		if s.Error != nil {
			r[name] = reason{s.Error, s.Message}
		} else {
			delete(r, name)
		}
	}
}
