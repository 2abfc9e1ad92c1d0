package embedded_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/aiopslab/aiopslab/cloud/embedded"
)

// A container that keeps crashing is restarted after 10 s, and then after twice as long each time,
// up to five minutes. Only the test moves the clock.
func TestCrashLoopBackOff(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	c := fresh(t, embedded.Options{Clock: clock})
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  containers: [{name: main, image: busybox, command: [sh, -c, "echo no luck; exit 3"]}]
`)
	// The first restart is at once.
	pod := c.awaitPod(t, ns, "crash", "in its first back-off", inBackOff(1, "10s"))
	restarts := int32(1)
	for _, next := range []string{"20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"} {
		d, err := time.ParseDuration(backOffOf(pod))
		if err != nil {
			t.Fatal(err)
		}
		// A second too early, nothing happens: the kubelet sees the same back-off when it looks.
		clock.Step(d - time.Second)
		clock.Step(time.Second + time.Millisecond)
		restarts++
		pod = c.awaitPod(t, ns, "crash", "in a back-off of "+next, inBackOff(restarts, next))
	}
	s := pod.Status.ContainerStatuses[0]
	if s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("the last state is %+v", s.LastTerminationState)
	}
}

// inBackOff says whether a pod's container waits in a back-off of the given length after so many
// restarts.
func inBackOff(restarts int32, length string) func(*v1.Pod) bool {
	return func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].RestartCount == restarts && backOffOf(p) == length
	}
}

// backOffOf reads the length of the back-off from the message.
func backOffOf(p *v1.Pod) (length string) {
	w := p.Status.ContainerStatuses[0].State.Waiting
	if w == nil || w.Reason != "CrashLoopBackOff" {
		return ""
	}
	if n, _ := fmt.Sscanf(w.Message, "back-off %s restarting failed container=main pod=crash_", &length); n != 1 {
		return w.Message
	}
	return length
}
