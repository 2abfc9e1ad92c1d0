package whisk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// Label is the label of the Deployments and pods of an action; its value is the action's name.
	Label = "openwhisk.apache.org/action"
	// Annotations of a Deployment that limit its action: how many pods it may have, and how many invocations each of
	// them runs at once.
	maxInstances = "openwhisk.apache.org/max-instances"
	concurrency  = "openwhisk.apache.org/concurrency"
)

// Limits of an action that says nothing else, and the most that it can say.
const (
	defaultInstances, mostInstances     = 3, 20
	defaultConcurrency, mostConcurrency = 8, 64
	// maxWaiting is how many invocations of an action may wait for a pod.
	maxWaiting = 64
	// shunned is how long a pod gets no invocations after it could not be reached.
	shunned = time.Second
)

// errUnknown says that there is no such action.
var errUnknown = errors.New("the requested resource does not exist")

// busyError says that too many invocations of an action wait.
type busyError struct{ waiting int }

func (e busyError) Error() string {
	return fmt.Sprintf("too many concurrent requests in flight (count: %d, allowed: %d)", e.waiting+1, maxWaiting)
}

// action is an action and its pods.
type action struct {
	name        string
	deployment  string
	version     string // of the Deployment
	replicas    int32  // that the Deployment wants
	instances   int32  // at most
	concurrency int

	pods    map[types.UID]*instance
	waiting int
	running int
	changed chan struct{} // closed when there may be room

	refused error // why it could not be scaled
	refusal time.Time
}

// instance is a pod of an action.
type instance struct {
	name, address string
	ready         bool
	active        int
	shun          time.Time // until then it is not asked
}

// fleet has all actions. Its methods may be called concurrently.
type fleet struct {
	mu      sync.Mutex
	actions map[string]*action
	// orphans are the pods of actions that are not known yet.
	orphans map[types.UID]*v1.Pod
	// lacks is told of an action that has too few pods.
	lacks func(name string)
}

func newFleet(lacks func(name string)) *fleet {
	return &fleet{actions: map[string]*action{}, orphans: map[types.UID]*v1.Pod{}, lacks: lacks}
}

// limit reads a limit from an annotation.
func limit(d *appsv1.Deployment, key string, otherwise, most int) int {
	n, err := strconv.Atoi(d.Annotations[key])
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, most)
}

// setDeployment notes an action as it is now.
func (f *fleet) setDeployment(d *appsv1.Deployment) {
	name := d.Labels[Label]
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.actions[name]
	if a == nil {
		a = &action{name: name, pods: map[types.UID]*instance{}, changed: make(chan struct{})}
		f.actions[name] = a
		for uid, p := range f.orphans {
			if p.Labels[Label] == name {
				a.set(p)
				delete(f.orphans, uid)
			}
		}
	}
	a.deployment, a.version, a.replicas = d.Name, d.ResourceVersion, ptr.Deref(d.Spec.Replicas, 1)
	a.instances = int32(limit(d, maxInstances, defaultInstances, mostInstances))
	a.concurrency = limit(d, concurrency, defaultConcurrency, mostConcurrency)
	a.wake()
}

// dropDeployment forgets an action. Who waits for it is told.
func (f *fleet) dropDeployment(d *appsv1.Deployment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.actions[d.Labels[Label]]; a != nil {
		delete(f.actions, a.name)
		a.wake()
	}
}

// setPod notes a pod as it is now.
func (f *fleet) setPod(p *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.actions[p.Labels[Label]]; a != nil {
		a.set(p)
		a.wake()
	} else if p.DeletionTimestamp == nil {
		f.orphans[p.UID] = p
	}
}

// dropPod forgets a pod.
func (f *fleet) dropPod(p *v1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.orphans, p.UID)
	if a := f.actions[p.Labels[Label]]; a != nil {
		delete(a.pods, p.UID)
		a.wake()
	}
}

// set takes over what a pod says of itself. One that is on its way out gets no more invocations.
func (a *action) set(p *v1.Pod) {
	if p.DeletionTimestamp != nil || p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded {
		delete(a.pods, p.UID)
		return
	}
	i := a.pods[p.UID]
	if i == nil {
		i = &instance{name: p.Name}
		a.pods[p.UID] = i
	}
	i.address = p.Status.PodIP
	i.ready = i.address != "" && slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// wake wakes who waits for room.
func (a *action) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// free is the pod with the most room, or nil.
func (a *action) free(now time.Time) (best *instance) {
	for _, i := range a.pods {
		if !i.ready || i.active >= a.concurrency || now.Before(i.shun) {
			continue
		}
		if best == nil || i.active < best.active || i.active == best.active && i.name < best.name {
			best = i
		}
	}
	return best
}

// wanted is how many pods an action should have for what there is to do.
func (a *action) wanted() int32 {
	work := a.running + a.waiting
	return min(a.instances, int32((work+a.concurrency-1)/a.concurrency))
}

// acquire waits for a pod of an action that has room, and takes it. The caller gives it back with release.
func (f *fleet) acquire(ctx context.Context, name string) (*instance, error) {
	since := time.Now()
	var queued *action // where it is counted as waiting
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() {
		if queued != nil {
			queued.waiting--
		}
	}()
	for {
		a := f.actions[name]
		if a == nil {
			return nil, errUnknown
		}
		if i := a.free(time.Now()); i != nil {
			i.active++
			a.running++
			return i, nil
		}
		if a.refusal.After(since) {
			return nil, a.refused
		}
		if queued != a {
			if a.waiting >= maxWaiting {
				return nil, busyError{a.waiting}
			}
			if queued != nil {
				queued.waiting--
			}
			a.waiting++
			queued = a
		}
		changed := a.changed
		f.mu.Unlock()
		f.lacks(name)
		again := time.NewTimer(shunned) // A pod that is shunned does not tell when it is over.
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		f.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// release gives back what acquire took. Unreached says that nobody was there.
func (f *fleet) release(name string, i *instance, unreached bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i.active--
	if unreached {
		i.shun = time.Now().Add(shunned)
	}
	if a := f.actions[name]; a != nil {
		a.running = max(0, a.running-1)
		a.wake()
	}
}

// refuse tells who waits for an action why it cannot be scaled.
func (f *fleet) refuse(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.actions[name]; a != nil {
		a.refused, a.refusal = err, time.Now()
		a.wake()
	}
}

// state is an action at one moment.
type state struct {
	name, deployment, version string
	replicas, wanted          int32
	instances                 int32
	concurrency               int
	idle                      bool // nothing runs or waits, as far as this controller knows
	pods                      []string
	unready                   int
}

// state returns an action as it is, with the addresses of its pods that are ready.
func (f *fleet) state(name string) (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.actions[name]
	if a == nil {
		return state{}, false
	}
	s := state{
		name: a.name, deployment: a.deployment, version: a.version, replicas: a.replicas, wanted: a.wanted(),
		instances: a.instances, concurrency: a.concurrency, idle: a.running+a.waiting == 0,
	}
	for _, i := range a.pods {
		if i.ready {
			s.pods = append(s.pods, i.address)
		} else {
			s.unready++
		}
	}
	return s, true
}

// names are the actions there are.
func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.actions))
}
