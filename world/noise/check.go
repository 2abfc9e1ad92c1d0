package noise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/world"
)

const (
	// checkName is how the pods are called in which somebody tries whether something can be reached.
	checkName = "connectivity-check"
	// CheckImage is what they run.
	CheckImage = "busybox:1.36"
	// checkPort is one that nobody listens on.
	checkPort = 81
	// checkKept is how long such a pod is there: longer than it takes for an alert of a failed pod.
	checkKept = 35 * time.Second
	// checker is who kubectl run says that it is.
	checker = "kubectl-run"
)

// check has somebody try by hand, from a pod of his own, whether the frontend answers, on a wrong port. The pod fails,
// an alert tells of it, and after a while he takes it away. No user notices. It comes only when an agent has its turn:
// an alert before that would be what he is called for.
func (l *Life) check(ctx context.Context, r *rand.Rand) {
	select {
	case <-l.handed:
	case <-ctx.Done():
		return
	}
	pods := l.Env.Client.CoreV1().Pods(l.Env.App.Namespace)
	name := fmt.Sprintf("%s-%05x", checkName, r.IntN(1<<20))
	pod, container := world.Unprivileged()
	_, err := pods.Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"run": name}},
		Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, SecurityContext: pod, Containers: []v1.Container{{
			Name: name, Image: l.Env.App.Image(CheckImage), SecurityContext: container,
			Command: []string{"nc", "-z", "-w", "2", l.Env.App.Frontend.Service, fmt.Sprint(checkPort)},
		}}},
	}, metav1.CreateOptions{FieldManager: checker})
	if err != nil {
		return
	}
	l.note(record.Change{What: "failed check"})
	_ = until(ctx, time.Now().Add(checkKept))
	// However it ends, nothing is left of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	_ = pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}
