package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
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

// settledHealth is health with another time for pods to settle. It looks at the pods once more after
// the answers: a container that has just been restarted answers before its pod says so.
func settledHealth(ctx context.Context, e *Env, settle time.Duration, services ...string) (string, error) {
	if symptom, err := unsettledOf(ctx, e, services, settle); symptom != "" || err != nil {
		return symptom, err
	}
	for _, s := range services {
		if err := ask(ctx, e, s, askTimeout); err != nil {
			return fmt.Sprintf("%s does not answer: %v", s, err), ctx.Err()
		}
	}
	return unsettledOf(ctx, e, services, settle)
}

// unsettledOf is the first symptom that the pods of services show.
func unsettledOf(ctx context.Context, e *Env, services []string, settle time.Duration) (string, error) {
	for _, s := range services {
		if symptom, err := unsettled(ctx, e, s, settle); symptom != "" || err != nil {
			return symptom, err
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
	if s, _ := e.App.Service(service); s.Elastic {
		return "", nil // Pods come and go. Whether they can be had, its answer tells.
	}
	want, ok, err := wanted(ctx, e, service)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "there is no Deployment, StatefulSet or DaemonSet " + service, nil
	case want == 0:
		return service + " is scaled to 0 pods", nil
	}
	if e.Spare != nil {
		want = max(1, want-e.Spare(service))
	}
	pods, err := podsOf(ctx, e, service)
	if err != nil {
		return "", err
	}
	ready, reasons := 0, []string(nil)
	for _, p := range pods {
		if why := unready(&p, settle); why != "" && !untouched(&p, e.Injected) {
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
	if since, ready := ReadySince(p); ready {
		if age := time.Since(since); age < settle {
			return fmt.Sprintf("has been ready for %v only", max(age, 0).Round(100*time.Millisecond))
		}
		return ""
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return "is " + string(p.Status.Phase) + ": " + c.Message
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

// untouched reports whether a pod has been ready since before a time. Kubernetes tells whole seconds, so
// one that changed in the same second may have done so afterwards.
func untouched(p *v1.Pod, injected time.Time) bool {
	since, ready := ReadySince(p)
	return ready && since.Before(injected.Truncate(time.Second))
}

// ReadySince returns when a ready pod became ready, or when its last container was restarted, if that was later:
// after a fast restart the pod may never have been reported as not ready.
func ReadySince(p *v1.Pod) (since time.Time, ready bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			since, ready = c.LastTransitionTime.Time, true
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if run := c.State.Running; c.RestartCount > 0 && run != nil && run.StartedAt.After(since) {
			since = run.StartedAt.Time
		}
	}
	return since, ready
}
