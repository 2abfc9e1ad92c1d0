package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/aiopslab/aiopslab/cloud"
)

const (
	// lookTime is how often a disturbance looks which pods there are.
	lookTime = time.Second
	// injectTime is how long a disturbance may take to have effect, and undoTime how long to have none.
	injectTime = time.Minute
	undoTime   = time.Minute
	// A disturbance that grows does so in at most rampSteps steps. In a cluster each takes a moment, in which there is
	// none, so there are fewer than anybody could tell apart.
	rampSteps   = 10
	minRampStep = 5 * time.Second
)

var (
	_ cloud.Chaos  = (*Cloud)(nil)
	_ cloud.Choosy = (*Cloud)(nil)
)

// Refuses implements cloud.Choosy. To kill pods takes nothing but the API; all else takes Chaos Mesh, see mesh.
func (c *Cloud) Refuses(d cloud.Disturbance) string {
	if killsPods(d) {
		return ""
	}
	return c.mesh.refuses(d)
}

func killsPods(d cloud.Disturbance) bool { return d.Pod != nil && d.Pod.Action == cloud.PodKill }

// Disturb implements cloud.Chaos, for pods in the namespaces of the run's claim. It follows them by looking every
// second. What Chaos Mesh is asked to do is in a namespace of its own that goes with the claim, so that nothing is left
// of it when the run is, however it ends.
func (c *Cloud) Disturb(ctx context.Context, spec cloud.Disturbance) (stop func(context.Context) error, err error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if why := c.Refuses(spec); why != "" {
		return nil, errors.New(why)
	}
	if c.run == "" || len(c.names.allowed) == 0 {
		return nil, errors.New("pods can be disturbed only in namespaces that a run has claimed")
	}
	d := &disturbance{cloud: c, spec: spec, done: make(chan struct{})}
	if killsPods(spec) {
		d.means = &killing{cloud: c}
	} else {
		d.means = newMeshing(c, spec)
	}
	if err := d.begin(ctx); err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
		defer cancel()
		if left := d.means.end(undo); left != nil {
			err = fmt.Errorf("%w; and %w", err, left)
		}
		return nil, fmt.Errorf("disturb %v: %w", spec.Selector, err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	go d.follow(run)
	return d.stop, nil
}

// means is how a disturbance is brought about. Its methods are called one after the other.
type means interface {
	// apply works towards effect on exactly these pods, to a degree between 0 (none) and 1 (in full). It does not wait:
	// it is called again and again, and settled once there is effect and nothing is left to do for these pods.
	apply(ctx context.Context, pods []v1.Pod, degree float64) (settled bool, err error)
	// pending says why it is not settled, as far as that is known.
	pending(ctx context.Context) string
	// end undoes what can be undone and returns when that is done. It can be called again.
	end(ctx context.Context) error
}

// disturbance is one that was asked for.
type disturbance struct {
	cloud  *Cloud
	spec   cloud.Disturbance
	means  means
	cancel context.CancelFunc
	done   chan struct{} // nobody follows any more
	mu     sync.Mutex    // of who stops it
}

// at is to which degree there is effect some time after it began, and when that changes.
func (d *disturbance) at(elapsed time.Duration) (degree float64, change time.Duration) {
	return d.spec.Schedule.At(elapsed, max(d.spec.Schedule.Ramp/rampSteps, minRampStep))
}

// begin returns when the pods that match now are disturbed.
func (d *disturbance) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, injectTime, fmt.Errorf("it has no effect after %v", injectTime))
	defer cancel()
	if n := d.spec.Network; n != nil && n.Target != nil {
		if pods, err := d.cloud.selected(ctx, *n.Target); err != nil || len(pods) == 0 {
			return firstError(err, fmt.Errorf("network.target: no pod matches %v", *n.Target))
		}
	}
	first, _ := d.at(0)
	for {
		pods, err := d.cloud.selected(ctx, d.spec.Selector)
		settled := false
		switch {
		case err == nil && len(pods) == 0:
			return fmt.Errorf("no pod matches %v", d.spec.Selector)
		case err == nil:
			settled, err = d.means.apply(ctx, pods, first)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w%s", context.Cause(ctx), d.means.pending(context.WithoutCancel(ctx)))
		}
		if err != nil || settled {
			return err
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
		}
	}
}

// firstError is the first of two errors, or the second if there is no first.
func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// follow keeps the disturbance up to date until ctx ends or the cloud is closed. What fails is tried again with the
// next look.
func (d *disturbance) follow(ctx context.Context) {
	defer close(d.done)
	for started := time.Now(); ; {
		degree, change := d.at(time.Since(started))
		wait := lookTime
		if pods, err := d.cloud.selected(ctx, d.spec.Selector); err == nil {
			if settled, err := d.means.apply(ctx, pods, degree); err == nil && !settled && degree > 0 {
				wait = pollTime
			}
		}
		if change > 0 {
			wait = min(wait, change)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		case <-d.cloud.names.stop:
			return
		}
	}
}

// stop ends the disturbance.
func (d *disturbance) stop(ctx context.Context) error {
	d.cancel()
	ctx, cancel := context.WithTimeoutCause(ctx, undoTime, fmt.Errorf("it is not undone after %v", undoTime))
	defer cancel()
	select {
	case <-d.done:
	case <-ctx.Done():
		return fmt.Errorf("stop disturbing %v: %w", d.spec.Selector, context.Cause(ctx))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.means.end(ctx); err != nil {
		return fmt.Errorf("stop disturbing %v: %w", d.spec.Selector, err)
	}
	return nil
}

// selected lists the pods that a selector chooses. A namespace that is not the run's has none for it.
func (c *Cloud) selected(ctx context.Context, s cloud.Selector) (pods []v1.Pod, err error) {
	spaces := c.names.allowed
	if s.Namespace != "" {
		if !slices.Contains(spaces, s.Namespace) {
			return nil, fmt.Errorf("namespace %s is not the run's, and its pods are left alone", s.Namespace)
		}
		spaces = []string{s.Namespace}
	}
	var service *v1.Service
	if s.Service != "" {
		service, err = c.client.CoreV1().Services(s.Namespace).Get(ctx, s.Service, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		} else if err != nil {
			return nil, fmt.Errorf("look for service %s: %w", s.Service, err)
		}
	}
	for _, space := range spaces {
		list, err := c.client.CoreV1().Pods(space).List(ctx, metav1.ListOptions{
			LabelSelector: labels.SelectorFromSet(s.Labels).String(),
		})
		if err != nil {
			return nil, fmt.Errorf("list the pods of %s: %w", space, err)
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil && s.Chooses(&p, service) {
				pods = append(pods, p)
			}
		}
	}
	return pods, nil
}
