package fault

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
)

// maxWitnesses is how many other services are asked whether the API server reaches anybody.
const maxWitnesses = 3

// fromAfar says how a disturbance of a service's network shows on a cluster that is somebody's, or "". The lab's own
// requests enter such a cluster in the pod that they ask, past its network. What the API server passes on comes over
// it; but if it does not reach the pods of any other service in time, that says nothing of this one.
func (p networkParams) fromAfar(ctx context.Context, e *Env, service string, pods []v1.Pod) (string, error) {
	o, err := read(e.App)
	if err != nil {
		return "", err
	}
	if port := o.metrics(service); port != "" && len(pods) > 0 {
		errs := make([]error, samples)
		var g errgroup.Group
		for i := range errs {
			g.Go(func() error {
				errs[i] = passedOn(ctx, e, pods[i%len(pods)].Name, port, p.Slow)
				return nil
			})
		}
		_ = g.Wait()
		if bad, last := failures(errs); bad >= enough && p.witnessed(ctx, e, o, service) {
			return fmt.Sprintf("%d of %d requests to %s over the network failed: %v", bad, samples, service, last),
				ctx.Err()
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return usersFail(ctx, e)
}

// witnessed reports whether the API server reaches another service in time.
func (p networkParams) witnessed(ctx context.Context, e *Env, o parts, service string) bool {
	asked := 0
	for _, s := range e.App.Services {
		port := o.metrics(s.Name)
		if s.Name == service || port == "" {
			continue
		}
		pods, err := podsOf(ctx, e, s.Name)
		if err != nil || len(pods) == 0 {
			continue
		}
		if passedOn(ctx, e, pods[0].Name, port, p.Slow) == nil {
			return true
		}
		if asked++; asked == maxWitnesses {
			return false
		}
	}
	return false
}

// passedOn has the API server read the metrics of a pod.
func passedOn(ctx context.Context, e *Env, pod, port string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
	defer cancel()
	_, err := e.Client.CoreV1().Pods(e.App.Namespace).ProxyGet("http", pod, port, "metrics", nil).DoRaw(ctx)
	return explain(ctx, err)
}

// failures counts errors, and returns the last.
func failures(errs []error) (bad int, last error) {
	for _, err := range errs {
		if err != nil {
			bad, last = bad+1, err
		}
	}
	return bad, last
}
