package noise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/record"
)

const (
	// pace is how long it is from one step of a release to the next.
	pace = 200 * time.Millisecond
	// rolloutTime is how long the pods of a service take to be replaced and to settle, on a machine that is
	// not too busy, and rolloutTimeout how long they may take.
	rolloutTime    = 3 * time.Second
	rolloutTimeout = time.Minute
	pollEvery      = 50 * time.Millisecond
)

// Life is what goes on in an application. Its methods are called one after the other.
type Life struct {
	Env   *fault.Env
	Level Level
	Seed  uint64
	// Dressed are services to which Env.Dress adds something that they must have, even if nothing else is released.
	Dressed []string
	// Later is what faults reach that come after the release, by somebody else.
	Later []fault.Reach
	// Library knows the images that a release may use instead of others. It may be nil.
	Library cloud.Librarian
	// Surge has a part more users than usual come for a time; what they do is drawn from the seed. It may be nil.
	Surge func(ctx context.Context, part float64, lasting time.Duration, seed uint64)

	build   string // of the release
	parts   []*part
	reached []string // services that faults reach
	alone   []string // services that are never scaled, see [fault.Reach]

	mu      sync.Mutex
	changes []record.Change
	applied map[string]*unstructured.Unstructured // what was applied last of each Deployment, by name

	certified string        // the version of the certificate that nobody else has written since
	stirred   []string      // the services that are scaled
	restarted []string      // pods whose containers were killed
	handed    chan struct{} // closed when an agent has its turn

	stop   func() // of what Go began; nil if nothing goes on
	stir   *stir
	upkeep *upkeep
}

// Span is how long a release takes with a fault in the middle of it, on a machine that is not too busy.
func Span(a *app.App, l Level) (time.Duration, error) {
	if l.quiet() {
		return 0, nil
	}
	parts, err := partsOf(a)
	return time.Duration(len(parts))*pace + rolloutTime, err
}

// draw returns the random numbers for a purpose.
func (l *Life) draw(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(l.Seed, 0x6c696665+purpose))
}

// Changes returns what was changed since it was asked for the last time.
func (l *Life) Changes() []record.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.changes
	l.changes = nil
	return list
}

func (l *Life) note(c record.Change) {
	c.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, c)
}

// Release deploys the application anew, service by service in a drawn order, with a difference that
// makes none to users, and brings faults about in the middle of it. Where no noise is wanted it only does
// the latter.
//
// A fault that deploys the whole application anew is a release itself. After it, some of what it does not break is
// released once more.
func (l *Life) Release(ctx context.Context, injections []Injection) (err error) {
	whole := slices.ContainsFunc(injections, func(i Injection) bool { return i.Reach.Whole })
	l.reach(injections)
	for _, r := range l.Later {
		l.reach([]Injection{{Reach: r}})
	}
	if l.parts, err = partsOf(l.Env.App); err != nil {
		return err
	}
	r := l.draw(1)
	l.build = fmt.Sprintf("%08x", r.Uint32())
	if !l.Level.quiet() {
		l.wear()
	}
	if whole || l.Level.quiet() {
		for _, i := range injections {
			if err := i.Do(ctx); err != nil {
				return err
			}
		}
		if err := l.deployDressed(ctx); err != nil || l.Level.quiet() {
			return err
		}
		l.build = fmt.Sprintf("%08x", r.Uint32())
		return l.roll(ctx, plan(r, l.Env.App, l.some(r), nil))
	}
	return l.roll(ctx, plan(r, l.Env.App, l.parts, injections))
}

// reach notes what faults reach.
func (l *Life) reach(injections []Injection) {
	for _, i := range injections {
		needs := i.needs(l.Env.App)
		l.reached, l.alone = slices.Concat(l.reached, i.applied(), needs), append(l.alone, i.Reach.Alone...)
		if !i.Reach.Known {
			l.alone = append(l.alone, needs...)
		}
	}
}

// some are half of the parts that no fault reaches, drawn.
func (l *Life) some(r *rand.Rand) (parts []*part) {
	for _, i := range r.Perm(len(l.parts)) {
		if p := l.parts[i]; !slices.Contains(l.reached, p.service) {
			parts = append(parts, p)
		}
	}
	return parts[:(len(parts)+1)/2]
}

// roll takes the steps of a release, one after the other.
func (l *Life) roll(ctx context.Context, steps []step) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		one := make(chan struct{}, 1) // Faults come one after the other.
		for next := time.Now(); len(steps) > 0; next, steps = next.Add(pace), steps[1:] {
			if err := until(ctx, next); err != nil {
				return err
			}
			if err := l.apply(ctx, steps[0]); err != nil {
				return err
			}
			// The release goes on meanwhile: a pause would tell where in it a fault came.
			if i := steps[0].injection; i != nil {
				all.Go(func() error { return l.inject(ctx, i, one) })
			}
		}
		return nil
	})
	return all.Wait()
}

// deployDressed applies what must be dressed, and waits until that is rolled out.
func (l *Life) deployDressed(ctx context.Context) error {
	for _, p := range l.parts {
		if slices.Contains(l.Dressed, p.service) {
			if err := fault.Apply(ctx, l.Env, p.deployment); err != nil {
				return err
			}
		}
	}
	return l.await(ctx, l.Dressed, false)
}

// apply applies what a step has to apply.
func (l *Life) apply(ctx context.Context, s step) error {
	if s.part == nil {
		return nil
	}
	for _, u := range s.part.objects {
		if slices.Contains(s.leave, u.GetKind()+"/"+u.GetName()) {
			continue
		}
		if err := fault.Apply(ctx, l.Env, u); err != nil {
			return err
		}
	}
	l.note(record.Change{What: "release", Service: s.part.service})
	return nil
}

// inject brings a fault about when the release of what it needs is over.
func (l *Life) inject(ctx context.Context, i *Injection, one chan struct{}) error {
	if err := l.await(ctx, i.needs(l.Env.App), i.Reach.Settled); err != nil {
		return err
	}
	select {
	case one <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-one }()
	return i.Do(ctx)
}

// await waits until the pods of services are replaced, and have been ready for so long that nobody takes
// them for what a fault did.
func (l *Life) await(ctx context.Context, services []string, settled bool) error {
	ctx, cancel := context.WithTimeout(ctx, rolloutTimeout)
	defer cancel()
	for _, s := range services {
		if !l.rolls(s) {
			continue
		}
		for {
			done, err := l.rolledOut(ctx, s, settled)
			if err != nil {
				return fmt.Errorf("a release of %s: %w", s, err)
			}
			if done {
				break
			}
			if err := until(ctx, time.Now().Add(pollEvery)); err != nil {
				return fmt.Errorf("a release of %s is not over: %w", s, err)
			}
		}
	}
	return nil
}

func (l *Life) rolledOut(ctx context.Context, service string, settled bool) (bool, error) {
	ns := l.Env.App.Namespace
	d, err := l.Env.Client.AppsV1().Deployments(ns).Get(ctx, service, metav1.GetOptions{})
	if err != nil || !ready(d) || !settled {
		return err == nil && ready(d), err
	}
	pods, err := l.podsOf(ctx, service)
	if err != nil {
		return false, err
	}
	for _, p := range pods {
		since, ready := fault.ReadySince(&p)
		if !ready || !since.Before(time.Now().Truncate(time.Second)) {
			return false, nil
		}
	}
	return true, nil
}

// ready reports whether a Deployment has all its pods, and none of an earlier release.
func ready(d *appsv1.Deployment) bool {
	n, s := ptr.Deref(d.Spec.Replicas, 1), d.Status
	return s.ObservedGeneration >= d.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.ReadyReplicas == n
}

// until waits for a time.
func until(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
