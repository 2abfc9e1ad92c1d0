package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// firstProbe is how long after its start a container is probed for the first time, besides its
// initial delay. A kubelet probes at some moment of the first period. We look early and often in it,
// without counting failures, so that a pod is ready as soon as its program is.
const firstProbe = 20 * time.Millisecond

// probeRetries is how often a probe that could not be run is tried again at once.
const probeRetries = 3

// probeKind is what a probe decides.
type probeKind string

const (
	startupProbe   probeKind = "Startup"
	livenessProbe  probeKind = "Liveness"
	readinessProbe probeKind = "Readiness"
)

// prober runs the probes of a node's containers.
type prober struct {
	kubelet                      *kubelet
	stack                        *vnet.Stack
	startup, liveness, readiness *probeResults

	mu   sync.Mutex
	runs map[probeKey]*probeRun
	wg   sync.WaitGroup
}

// probeKey is one probe of one run of a container.
type probeKey struct {
	pod       types.UID
	container string // name
	kind      probeKind
}

type probeRun struct {
	id     kubecontainer.ContainerID
	cancel context.CancelFunc
}

func newProber(k *kubelet) *prober {
	return &prober{
		kubelet: k, stack: k.machine.host.NewStack(), runs: map[probeKey]*probeRun{},
		startup: newProbeResults(), liveness: newProbeResults(), readiness: newProbeResults(),
	}
}

func (p *prober) results(kind probeKind) *probeResults {
	switch kind {
	case startupProbe:
		return p.startup
	case livenessProbe:
		return p.liveness
	}
	return p.readiness
}

func probeOf(c *v1.Container, kind probeKind) *v1.Probe {
	switch kind {
	case startupProbe:
		return c.StartupProbe
	case livenessProbe:
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// probed returns the containers of a pod that can have probes.
func probed(pod *v1.Pod) (list []*v1.Container) {
	for i := range pod.Spec.InitContainers {
		if podutil.IsRestartableInitContainer(&pod.Spec.InitContainers[i]) {
			list = append(list, &pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		list = append(list, &pod.Spec.Containers[i])
	}
	return list
}

// sync starts the probes of containers that run and ends those of containers that do not.
func (p *prober) sync(pod *v1.Pod, observed *kubecontainer.PodStatus) {
	for _, c := range probed(pod) {
		var running *kubecontainer.Status
		if runs := runsOf(observed, c.Name); len(runs) > 0 && runs[0].State == kubecontainer.ContainerStateRunning {
			running = runs[0]
		}
		for _, kind := range []probeKind{startupProbe, livenessProbe, readinessProbe} {
			if spec := probeOf(c, kind); spec != nil {
				p.ensure(probeKey{pod.UID, c.Name, kind}, spec, running)
			}
		}
	}
}

// ensure makes a probe run exactly while its container does.
func (p *prober) ensure(key probeKey, spec *v1.Probe, running *kubecontainer.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[key]; r != nil {
		if running != nil && r.id == running.ID {
			return
		}
		r.cancel()
		p.results(key.kind).Remove(r.id)
		delete(p.runs, key)
	}
	if running == nil || p.kubelet.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.kubelet.ctx)
	p.runs[key] = &probeRun{running.ID, cancel}
	started := running.StartedAt
	p.wg.Go(func() { p.run(ctx, key, *spec, running.ID, started) })
}

// run probes a container until ctx ends.
func (p *prober) run(ctx context.Context, key probeKey, spec v1.Probe, id kubecontainer.ContainerID,
	started time.Time,
) {
	clk := p.kubelet.node.fleet.cfg.Clock
	period := time.Duration(max(spec.PeriodSeconds, 1)) * time.Second
	// A kubelet that adopts a container spreads its probes, by what the cluster draws; one that started it
	// probes soon.
	wait := time.Duration(spec.InitialDelaySeconds)*time.Second - clk.Since(started)
	if clk.Since(started) > period {
		wait = time.Duration(p.kubelet.node.fleet.cfg.Network.Chance().Draw(fmt.Sprint("probe ", key)) * float64(
			period))
	}
	wait = max(wait, 0) + firstProbe
	early := time.Duration(0) // how much of the first period is over, in which failures do not count
	var last results.Result = -1
	count := int32(0)
	for {
		t := clk.NewTimer(wait)
		select {
		case <-t.C():
		case <-ctx.Done():
			t.Stop()
			return
		}
		wait = period
		if key.kind != startupProbe && !p.hasStarted(key, id) {
			wait = min(period, 100*time.Millisecond) // Others wait for the startup probe.
			continue
		}
		if key.kind != livenessProbe && early < period {
			wait = max(firstProbe, early/4) // So late, at most, is it seen that a program is ready.
			early += wait
			if r, _, err := p.check(ctx, key, &spec, id); err != nil || r != probe.Success {
				continue
			}
			early, wait = period, period
		}
		result, ok := p.once(ctx, key, &spec, id)
		if !ok || ctx.Err() != nil {
			continue
		}
		if result == last {
			count++
		} else {
			last, count = result, 1
		}
		threshold := spec.SuccessThreshold
		if result == results.Failure {
			threshold = spec.FailureThreshold
		}
		if count < threshold {
			continue
		}
		if p.results(key.kind).set(id, result) {
			p.report(key, id, result)
		}
		if key.kind == startupProbe && result == results.Success {
			return
		}
		if key.kind != readinessProbe && result == results.Failure {
			return // The container will be killed; its next run is probed anew.
		}
	}
}

// hasStarted reports whether a container's startup probe has succeeded, if it has one.
func (p *prober) hasStarted(key probeKey, id kubecontainer.ContainerID) bool {
	w := p.kubelet.worker(key.pod)
	if w == nil {
		return false
	}
	c := containerSpec(w.current(), key.container)
	if c == nil || c.StartupProbe == nil {
		return true
	}
	r, ok := p.startup.Get(id)
	return ok && r == results.Success
}

func containerSpec(pod *v1.Pod, name string) *v1.Container {
	return kubecontainer.GetContainerSpec(pod, name)
}

// check runs a probe.
func (p *prober) check(ctx context.Context, key probeKey, spec *v1.Probe,
	id kubecontainer.ContainerID,
) (answer probe.Result, output string, err error) {
	pod, c := p.subject(key)
	if c == nil {
		return probe.Unknown, "", context.Canceled
	}
	st, _ := p.kubelet.statuses.GetPodStatus(key.pod)
	for range probeRetries {
		if answer, output, err = p.kubelet.check(ctx, spec, pod, c, id.ID, st.PodIP); err == nil || ctx.Err() != nil {
			break
		}
	}
	return answer, output, err
}

// subject returns what a probe is about; nil if it is gone.
func (p *prober) subject(key probeKey) (*v1.Pod, *v1.Container) {
	w := p.kubelet.worker(key.pod)
	if w == nil {
		return nil, nil
	}
	pod := w.current()
	return pod, containerSpec(pod, key.container)
}

// once runs a probe and records what an operator should see. ok is false if it said nothing.
func (p *prober) once(ctx context.Context, key probeKey, spec *v1.Probe,
	id kubecontainer.ContainerID,
) (result results.Result, ok bool) {
	answer, output, err := p.check(ctx, key, spec, id)
	pod, c := p.subject(key)
	if ctx.Err() != nil || c == nil {
		return 0, false
	}
	switch {
	case err != nil:
		p.event(pod, c, events.ContainerUnhealthy, "%s probe errored and resulted in %s state: %s", key.kind, answer,
			err)
		return results.Failure, true
	case answer == probe.Success:
		return results.Success, true
	case answer == probe.Warning:
		p.event(pod, c, events.ContainerProbeWarning, "%s probe warning: %s", key.kind, output)
		return results.Success, true
	case answer == probe.Failure:
		p.event(pod, c, events.ContainerUnhealthy, "%s probe failed: %s", key.kind, output)
	}
	return results.Failure, true
}

func (p *prober) event(pod *v1.Pod, c *v1.Container, reason, format string, args ...any) {
	ref, err := kubecontainer.GenerateContainerRef(pod, c)
	if err != nil {
		return
	}
	p.kubelet.recorder.Eventf(ref, v1.EventTypeWarning, reason, format, args...)
}

// report passes a changed result on.
func (p *prober) report(key probeKey, id kubecontainer.ContainerID, result results.Result) {
	k := p.kubelet
	switch key.kind {
	case readinessProbe:
		k.statuses.SetContainerReadiness(k.logger, key.pod, id, result == results.Success)
	case startupProbe:
		k.statuses.SetContainerStartup(k.logger, key.pod, id, result == results.Success)
	}
	k.wake(key.pod)
}

// fill sets what probes decide in a pod's status.
func (p *prober) fill(pod *v1.Pod, s *v1.PodStatus) {
	for i := range s.ContainerStatuses {
		p.fillOne(pod, &s.ContainerStatuses[i])
	}
	for i := range s.InitContainerStatuses {
		c := &s.InitContainerStatuses[i]
		if spec := containerSpec(pod, c.Name); spec != nil && podutil.IsRestartableInitContainer(spec) {
			p.fillOne(pod, c)
			continue
		}
		c.Ready = c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		c.Started = ptr.To(c.State.Running != nil)
	}
	for i := range s.EphemeralContainerStatuses {
		c := &s.EphemeralContainerStatuses[i]
		c.Started = ptr.To(c.State.Running != nil)
	}
}

func (p *prober) fillOne(pod *v1.Pod, c *v1.ContainerStatus) {
	c.Started = ptr.To(false)
	spec := containerSpec(pod, c.Name)
	if c.State.Running == nil || spec == nil {
		return
	}
	id := containerID(c.ContainerID)
	passed := func(r *probeResults, probe *v1.Probe) bool {
		if probe == nil {
			return true
		}
		result, ok := r.Get(id)
		return ok && result == results.Success
	}
	*c.Started = passed(p.startup, spec.StartupProbe)
	c.Ready = *c.Started && passed(p.readiness, spec.ReadinessProbe)
}

// adopt takes over what an earlier kubelet knew of a container.
func (p *prober) adopt(pod *v1.Pod) {
	for _, c := range append(append([]v1.ContainerStatus(nil), pod.Status.ContainerStatuses...),
		pod.Status.InitContainerStatuses...) {
		if c.State.Running == nil {
			continue
		}
		id := containerID(c.ContainerID)
		if c.Ready {
			p.readiness.set(id, results.Success)
		}
		if c.Started != nil && *c.Started {
			p.startup.set(id, results.Success)
		}
	}
}

// stopLiveness ends the probes that could restart a pod's containers.
func (p *prober) stopLiveness(uid types.UID) {
	p.end(func(k probeKey) bool { return k.pod == uid && k.kind != readinessProbe })
}

// remove ends all probes of a pod.
func (p *prober) remove(uid types.UID) {
	p.end(func(k probeKey) bool { return k.pod == uid })
}

func (p *prober) stop() {
	p.end(func(probeKey) bool { return true })
	p.wg.Wait()
	p.stack.Close()
}

func (p *prober) end(match func(probeKey) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, r := range p.runs {
		if match(key) {
			r.cancel()
			delete(p.runs, key)
		}
	}
}
