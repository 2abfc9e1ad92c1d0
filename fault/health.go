package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// How long a pod must have been ready to count as that. A container that dies soon after its start is
// ready for a moment again and again; one that is killed lives a little longer than one that fails.
const (
	settle     = 3 * time.Second
	killSettle = 10 * time.Second
)

// health says what is wrong with services: their pods first, then what they answer. It is empty if
// all of them are well. This is what a fault is seen by, so that whatever sets it right counts.
func health(ctx context.Context, e *Env, services ...string) (string, error) {
	return settledHealth(ctx, e, settle, services...)
}

// settledHealth is health with another time for pods to settle.
func settledHealth(ctx context.Context, e *Env, settle time.Duration, services ...string) (string, error) {
	for _, s := range services {
		if symptom, err := unsettled(ctx, e, s, settle); symptom != "" || err != nil {
			return symptom, err
		}
	}
	for _, s := range services {
		if err := ask(ctx, e, s, askTimeout); err != nil {
			return fmt.Sprintf("%s does not answer: %v", s, err), ctx.Err()
		}
	}
	return "", nil
}

// podSymptom says which pods of a service are lacking, and why.
func podSymptom(ctx context.Context, e *Env, service string) (string, error) {
	return unsettled(ctx, e, service, settle)
}

// unsettled is podSymptom with another time for pods to settle.
func unsettled(ctx context.Context, e *Env, service string, settle time.Duration) (string, error) {
	d, err := e.Client.AppsV1().Deployments(e.App.Namespace).Get(ctx, service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "there is no Deployment " + service, nil
	}
	if err != nil {
		return "", err
	}
	want := int(ptr.Deref(d.Spec.Replicas, 1))
	if want == 0 {
		return service + " is scaled to 0 pods", nil
	}
	pods, err := podsOf(ctx, e, service)
	if err != nil {
		return "", err
	}
	ready, reasons := 0, []string(nil)
	for _, p := range pods {
		if why := unready(&p, settle); why != "" {
			reasons = append(reasons, p.Name+" "+why)
		} else {
			ready++
		}
	}
	if ready >= want {
		return "", nil
	}
	symptom := fmt.Sprintf("%d of %d pods of %s are ready", ready, want, service)
	if len(reasons) > 0 {
		symptom += ": " + strings.Join(reasons, ", ")
	}
	return symptom, nil
}

// unready says why a pod does not count as ready, or "".
func unready(p *v1.Pod, settle time.Duration) string {
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse:
			return "is " + string(p.Status.Phase) + ": " + c.Message
		case c.Type == v1.PodReady && c.Status == v1.ConditionTrue:
			if age := time.Since(c.LastTransitionTime.Time); age < settle {
				return fmt.Sprintf("has been ready for %v only", max(age, 0).Round(100*time.Millisecond))
			}
			return ""
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		switch s := c.State; {
		case s.Waiting != nil && s.Waiting.Reason != "":
			return "is in " + s.Waiting.Reason
		case s.Terminated != nil:
			return fmt.Sprintf("has ended with code %d (%s)", s.Terminated.ExitCode, s.Terminated.Reason)
		case c.RestartCount > 0:
			return fmt.Sprintf("is not ready and has restarted %d times", c.RestartCount)
		}
	}
	return "is not ready"
}
