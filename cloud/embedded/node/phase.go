package node

import (
	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// podPhase sums a pod's containers up, by the kubelet's rules.
func podPhase(pod *v1.Pod, s *v1.PodStatus, over, initialized bool) v1.PodPhase {
	if failedInit(pod, s) {
		return v1.PodFailed
	}
	pending := false // an init container has not done its part
	running, waiting, stopped, succeeded, restarting := 0, 0, 0, 0, 0
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		c, _ := podutil.GetContainerStatus(s.InitContainerStatuses, spec.Name)
		neverEnded := c.State.Terminated == nil && c.LastTerminationState.Terminated == nil
		switch {
		case !podutil.IsRestartableInitContainer(spec):
			if c.State.Running != nil || c.State.Waiting != nil && neverEnded {
				pending = true
			}
		case c.State.Running != nil:
			running++
			if c.Started == nil || !*c.Started {
				pending = pending || !initialized
			}
		case c.State.Waiting != nil && neverEnded:
			waiting++
			pending = pending || !initialized
		}
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		c, _ := podutil.GetContainerStatus(s.ContainerStatuses, spec.Name)
		ended := c.State.Terminated
		if ended == nil && c.State.Waiting != nil {
			ended = c.LastTerminationState.Terminated
		}
		switch {
		case c.State.Running != nil:
			running++
		case ended == nil:
			waiting++
		default:
			stopped++
			if c.State.Terminated != nil && ended.ExitCode == 0 {
				succeeded++
			}
			if podutil.ContainerShouldRestart(*spec, pod.Spec, ended.ExitCode) {
				restarting++
			}
		}
	}
	switch {
	case pending, waiting > 0:
		return v1.PodPending
	case running > 0:
		return v1.PodRunning
	case stopped == 0:
		return v1.PodPending
	case restarting > 0 && !over:
		return v1.PodRunning
	case stopped == succeeded:
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// failedInit reports whether an init container failed and will not be tried again.
func failedInit(pod *v1.Pod, s *v1.PodStatus) bool {
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		if podutil.IsRestartableInitContainer(spec) {
			continue
		}
		c, _ := podutil.GetContainerStatus(s.InitContainerStatuses, spec.Name)
		ended := c.State.Terminated
		if ended == nil && c.State.Waiting != nil {
			ended = c.LastTerminationState.Terminated
		}
		if ended != nil && ended.ExitCode != 0 && !podutil.ContainerShouldRestart(*spec, pod.Spec, ended.ExitCode) {
			return true
		}
	}
	return false
}
