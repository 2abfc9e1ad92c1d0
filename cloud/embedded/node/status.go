package node

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/utils/ptr"
)

// What containers wait for before they are started.
const (
	containerCreating = "ContainerCreating"
	podInitializing   = "PodInitializing"
)

// status describes a pod for the API, from what the runtime says of its containers. over means that
// none of them will be started again.
func (w *worker) status(pod *v1.Pod, observed *kubecontainer.PodStatus, over bool) v1.PodStatus {
	k := w.kubelet
	old, ok := k.statuses.GetPodStatus(pod.UID)
	if !ok {
		old = pod.Status
	}
	s := v1.PodStatus{QOSClass: v1qos.GetPodQOS(pod), ObservedGeneration: pod.Generation}
	for _, ip := range observed.IPs {
		s.PodIPs = append(s.PodIPs, v1.PodIP{IP: ip})
	}
	s.InitContainerStatuses = w.containerStatuses(pod, pod.Spec.InitContainers, observed, old.InitContainerStatuses)
	s.ContainerStatuses = w.containerStatuses(pod, pod.Spec.Containers, observed, old.ContainerStatuses)
	var ephemeral []v1.Container
	for _, c := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, v1.Container(c.EphemeralContainerCommon))
	}
	s.EphemeralContainerStatuses = w.containerStatuses(pod, ephemeral, observed, old.EphemeralContainerStatuses)
	k.probes.fill(pod, &s)

	s.Phase = podPhase(pod, &s, over, kubecontainer.HasAnyActiveRegularContainerStarted(&pod.Spec, observed))
	for _, before := range []v1.PodPhase{old.Phase, pod.Status.Phase} {
		if before == v1.PodFailed || before == v1.PodSucceeded {
			s.Phase = before // There is no way back.
		}
	}
	if s.Phase == old.Phase {
		s.Reason, s.Message = cmp.Or(old.Reason, pod.Status.Reason), cmp.Or(old.Message, pod.Status.Message)
	}
	s.Conditions = w.conditions(pod, observed, &old, &s)
	w.addresses(pod, &s)
	return s
}

func (w *worker) addresses(pod *v1.Pod, s *v1.PodStatus) {
	host := w.kubelet.node.spec.Address.String()
	s.HostIP, s.HostIPs = host, []v1.HostIP{{IP: host}}
	if pod.Spec.HostNetwork && len(s.PodIPs) == 0 {
		s.PodIPs = []v1.PodIP{{IP: host}}
	}
	if len(s.PodIPs) > 0 {
		s.PodIP = s.PodIPs[0].IP
	}
}

func (w *worker) conditions(pod *v1.Pod, observed *kubecontainer.PodStatus, old, s *v1.PodStatus) []v1.PodCondition {
	k := w.kubelet
	var list []v1.PodCondition
	for _, c := range pod.Status.Conditions {
		if !kubetypes.PodConditionByKubelet(c.Type) {
			list = append(list, c)
		}
	}
	for _, c := range k.statuses.GetPodResizeConditions(pod.UID) {
		list = append(list, *c)
	}
	if _, c := podutil.GetPodConditionFromList(old.Conditions, v1.DisruptionTarget); c != nil {
		list = slices.DeleteFunc(list, func(o v1.PodCondition) bool { return o.Type == v1.DisruptionTarget })
		list = append(list, *c)
	}
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.Conditions = list // Readiness gates are looked up here.
	list = append(list,
		status.GeneratePodReadyToStartContainersCondition(pod, old, observed),
		status.GeneratePodInitializedCondition(pod, old, all, s.Phase),
		status.GeneratePodReadyCondition(pod, old, list, all, s.Phase),
		status.GenerateContainersReadyCondition(pod, old, all, s.Phase),
		v1.PodCondition{
			Type: v1.PodScheduled, Status: v1.ConditionTrue,
			ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(old, pod.Generation, v1.PodScheduled),
		})
	if podutil.AllContainersCouldRestart(&pod.Spec) {
		list = append(list, status.GenerateAllContainersRestartingCondition(pod, observed, old, s.Phase))
	}
	return list
}

// containerStatuses describes containers in the order of their specification.
func (w *worker) containerStatuses(pod *v1.Pod, specs []v1.Container, observed *kubecontainer.PodStatus,
	before []v1.ContainerStatus,
) []v1.ContainerStatus {
	var list []v1.ContainerStatus
	for i := range specs {
		old, _ := podutil.GetContainerStatus(before, specs[i].Name)
		list = append(list, w.containerStatus(pod, &specs[i], observed, old))
	}
	return list
}

func (w *worker) containerStatus(pod *v1.Pod, spec *v1.Container, observed *kubecontainer.PodStatus,
	old v1.ContainerStatus,
) v1.ContainerStatus {
	runs := runsOf(observed, spec.Name)
	s := v1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, RestartCount: old.RestartCount,
		LastTerminationState: old.LastTerminationState,
	}
	s.VolumeMounts = mountStatuses(spec)
	switch {
	case len(runs) > 0:
		s = convert(runs[0], spec, s.VolumeMounts)
		if len(runs) > 1 {
			s.LastTerminationState = convert(runs[1], spec, nil).State
		}
		s.RestartCount = max(s.RestartCount, old.RestartCount)
	case old.State.Terminated != nil:
		return old // The container was collected; what is known of it stays.
	case len(pod.Spec.InitContainers) > 0:
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: podInitializing}
	default:
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: containerCreating}
	}
	if len(runs) > 0 && runs[0].State == kubecontainer.ContainerStateExited && runs[0].ExitCode == 0 &&
		isInit(pod, spec) {
		return s
	}
	if !kubecontainer.ShouldContainerBeRestarted(w.kubelet.logger, spec, pod, observed) {
		return s
	}
	if why, ok := w.reasons[spec.Name]; ok {
		if s.State.Terminated != nil {
			s.LastTerminationState = s.State
		}
		s.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: why.err.Error(), Message: why.message}}
	}
	return s
}

func isInit(pod *v1.Pod, spec *v1.Container) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c v1.Container) bool { return c.Name == spec.Name })
}

// runsOf returns the runs of a container, the latest first.
func runsOf(observed *kubecontainer.PodStatus, name string) []*kubecontainer.Status {
	var runs []*kubecontainer.Status
	for _, c := range observed.ContainerStatuses {
		if c.Name == name {
			runs = append(runs, c)
		}
	}
	slices.SortStableFunc(runs, func(a, b *kubecontainer.Status) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return runs
}

func mountStatuses(spec *v1.Container) (list []v1.VolumeMountStatus) {
	for _, m := range spec.VolumeMounts {
		s := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			s.RecursiveReadOnly = ptr.To(v1.RecursiveReadOnlyDisabled)
		}
		list = append(list, s)
	}
	return list
}

// convert describes one run of a container.
func convert(run *kubecontainer.Status, spec *v1.Container, mounts []v1.VolumeMountStatus) v1.ContainerStatus {
	s := v1.ContainerStatus{
		Name: run.Name, Image: run.Image, ImageID: run.ImageRef, ContainerID: run.ID.String(),
		RestartCount: int32(run.RestartCount), VolumeMounts: mounts, AllocatedResources: spec.Resources.Requests,
		Resources: resourcesOf(run, spec), StopSignal: run.StopSignal,
	}
	if u := run.User; u != nil && u.Linux != nil {
		s.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{
			UID: u.Linux.UID, GID: u.Linux.GID,
			SupplementalGroups: u.Linux.SupplementalGroups,
		}}
	}
	switch run.State {
	case kubecontainer.ContainerStateRunning:
		s.State.Running = &v1.ContainerStateRunning{StartedAt: metav1.NewTime(run.StartedAt)}
	case kubecontainer.ContainerStateExited:
		s.State.Terminated = &v1.ContainerStateTerminated{
			ExitCode: int32(run.ExitCode), Reason: run.Reason, Message: run.Message,
			StartedAt: metav1.NewTime(run.StartedAt), FinishedAt: metav1.NewTime(run.FinishedAt),
			ContainerID: run.ID.String(),
		}
	default:
		s.State.Waiting = &v1.ContainerStateWaiting{}
	}
	return s
}

// resourcesOf is what the container has, which may not be what it asks for while it is resized.
func resourcesOf(run *kubecontainer.Status, spec *v1.Container) *v1.ResourceRequirements {
	r := spec.Resources.DeepCopy()
	if run.State != kubecontainer.ContainerStateRunning || run.Resources == nil {
		return r
	}
	actual := run.Resources
	if r.Limits != nil {
		if q := actual.CPULimit; q != nil && q.MilliValue() > 10 { // The smallest quota the kernel takes.
			r.Limits[v1.ResourceCPU] = q.DeepCopy()
		}
		if q := actual.MemoryLimit; q != nil {
			r.Limits[v1.ResourceMemory] = q.DeepCopy()
		}
	}
	if r.Requests != nil {
		if q := actual.CPURequest; q != nil && q.MilliValue() > 2 { // The smallest weight.
			r.Requests[v1.ResourceCPU] = q.DeepCopy()
		}
		if q := actual.MemoryRequest; q != nil {
			r.Requests[v1.ResourceMemory] = q.DeepCopy()
		}
	}
	return r
}
