package node

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// states makes container statuses of words, NAME=STATE: run, wait, creating, exit0, exit1, and the
// same with "again" for one that waits after such an end. A ! says that a sidecar has not started.
func states(words string) (list []v1.ContainerStatus) {
	for w := range strings.FieldsSeq(words) {
		name, state, _ := strings.Cut(w, "=")
		state, unstarted := strings.CutSuffix(state, "!")
		s := v1.ContainerStatus{Name: name, Started: ptr.To(!unstarted)}
		ended := func(code string) *v1.ContainerStateTerminated {
			return &v1.ContainerStateTerminated{ExitCode: int32(code[0] - '0')}
		}
		switch {
		case state == "run":
			s.State.Running = &v1.ContainerStateRunning{}
		case state == "wait":
			s.State.Waiting = &v1.ContainerStateWaiting{}
		case strings.HasPrefix(state, "again"):
			s.State.Waiting = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
			s.LastTerminationState.Terminated = ended(strings.TrimPrefix(state, "again"))
		case strings.HasPrefix(state, "exit"):
			s.State.Terminated = ended(strings.TrimPrefix(state, "exit"))
		}
		list = append(list, s)
	}
	return list
}

func TestPodPhase(t *testing.T) {
	const always, onFailure, never = v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever
	tests := []struct {
		name        string
		policy      v1.RestartPolicy
		init, main  string
		over, ready bool
		want        v1.PodPhase
	}{
		{"nothing yet", always, "", "a=none b=none", false, false, v1.PodPending},
		{"creating", always, "", "a=wait b=run", false, false, v1.PodPending},
		{"running", always, "", "a=run b=run", false, true, v1.PodRunning},
		{"one crashes", always, "", "a=run b=again1", false, true, v1.PodRunning},
		{"all crash", always, "", "a=again1 b=again1", false, true, v1.PodRunning},
		{"ended, to be restarted", always, "", "a=exit0 b=exit1", false, true, v1.PodRunning},
		{"ended for good", always, "", "a=exit0 b=exit1", true, true, v1.PodFailed},
		{"a job has done its work", onFailure, "", "a=exit0 b=exit0", false, true, v1.PodSucceeded},
		{"a job is tried again", onFailure, "", "a=exit0 b=exit1", false, true, v1.PodRunning},
		{"one has done its work", never, "", "a=exit0 b=run", false, true, v1.PodRunning},
		{"failed", never, "", "a=exit0 b=exit1", false, true, v1.PodFailed},
		{"succeeded", never, "", "a=exit0 b=exit0", false, true, v1.PodSucceeded},

		{"init runs", always, "i=run", "a=wait b=wait", false, false, v1.PodPending},
		{"init waits", always, "i=wait", "a=wait b=wait", false, false, v1.PodPending},
		{"init is done", always, "i=exit0", "a=run b=run", false, true, v1.PodRunning},
		{"init crashes", always, "i=again1", "a=wait b=wait", false, false, v1.PodPending},
		{"init failed", never, "i=exit1", "a=wait b=wait", false, false, v1.PodFailed},
		{"init failed and waits", never, "i=again1", "a=wait b=wait", false, false, v1.PodFailed},

		{"sidecar starts", always, "s=run!", "a=wait b=wait", false, false, v1.PodPending},
		{"sidecar runs", always, "s=run", "a=run b=run", false, true, v1.PodRunning},
		{"sidecar starts anew", always, "s=run!", "a=run b=run", false, true, v1.PodRunning},
		{"sidecar outlives", never, "s=run", "a=exit0 b=exit0", false, true, v1.PodRunning},
		{"all have ended", never, "s=exit1", "a=exit0 b=exit0", false, true, v1.PodSucceeded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{RestartPolicy: tt.policy, Containers: []v1.Container{{Name: "a"}, {Name: "b"}}}}
			s := &v1.PodStatus{InitContainerStatuses: states(tt.init), ContainerStatuses: states(tt.main)}
			for _, c := range s.InitContainerStatuses {
				spec := v1.Container{Name: c.Name}
				if c.Name == "s" {
					spec.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
				}
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, spec)
			}
			if got := podPhase(pod, s, tt.over, tt.ready); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
